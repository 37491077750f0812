package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/client"
)

func TestReplies(t *testing.T) {
	for _, test := range []struct {
		name, wire string
		want       client.Value
	}{
		{"status", "+OK\r\n", client.Value{Kind: client.Status, Text: "OK"}},
		{"integer", ":-42\r\n", client.Value{Kind: client.Integer, Int: -42}},
		{"bulk", "$5\r\na\r\nb\x00\r\n", client.Value{Kind: client.Bulk, Text: "a\r\nb\x00"}},
		{"empty bulk", "$0\r\n\r\n", client.Value{Kind: client.Bulk}},
		{"null of RESP2", "$-1\r\n", client.Value{}},
		{"null array of RESP2", "*-1\r\n", client.Value{}},
		{"null of RESP3", "_\r\n", client.Value{}},
		{"verbatim", "=8\r\ntxt:info\r\n", client.Value{Kind: client.Bulk, Text: "info"}},
		{"true", "#t\r\n", client.Value{Kind: client.Bool, Int: 1}},
		{"double", ",1.5\r\n", client.Value{Kind: client.Bulk, Text: "1.5"}},
		{"nested array", "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n", client.Value{Kind: client.Array, Elems: []client.Value{
			{Kind: client.Array, Elems: []client.Value{{Kind: client.Integer, Int: 1}}}, {Kind: client.Bulk, Text: "x"}}}},
		{"map", "%1\r\n+a\r\n:1\r\n", client.Value{Kind: client.Map, Elems: []client.Value{
			{Kind: client.Status, Text: "a"}, {Kind: client.Integer, Int: 1}}}},
		{"long status", "+" + strings.Repeat("x", 40000) + "\r\n", client.Value{Kind: client.Status, Text: strings.Repeat("x", 40000)}},
		{"long bulk", "$3000000\r\n" + strings.Repeat("y", 3000000) + "\r\n", client.Value{Kind: client.Bulk, Text: strings.Repeat("y", 3000000)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, func([]string) (string, bool) { return test.wire, true })
			got, err := f.client(t).Do(t.Context(), "ANY")
			if err != nil {
				t.Fatal(err)
			}
			if !equal(got, test.want) {
				t.Errorf("got %.200v, want %.200v", got, test.want)
			}
		})
	}
}

func equal(a, b client.Value) bool {
	return a.Kind == b.Kind && a.Int == b.Int && a.Text == b.Text && slices.EqualFunc(a.Elems, b.Elems, equal)
}

func TestNoReplies(t *testing.T) {
	for name, wire := range map[string]string{
		"HTTP":              "HTTP/1.1 400 Bad Request\r\n\r\n",
		"LF only":           "+OK\n",
		"no number":         ":x\r\n",
		"length below -1":   "$-2\r\n",
		"length over limit": "$99999999999\r\n",
		"array over limit":  "*99999999\r\n",
		"too deep":          strings.Repeat("*1\r\n", 40) + ":1\r\n",
		"bulk without end":  "$1\r\nabc\r\n",
		"empty line":        "\r\n",
		"endless line":      "+" + strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, func([]string) (string, bool) { return wire, true })
			_, err := f.client(t).Do(t.Context(), "ANY")
			if !errors.Is(err, client.ErrProtocol) || !errors.Is(err, client.ErrUnknown) {
				t.Errorf("got %v, want ErrProtocol with its outcome open", err)
			}
		})
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	f := newFake(t, func([]string) (string, bool) { return "+OK\r\n", true })
	c := f.client(t)
	for range 10 {
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.accepted.Load(); n != 1 {
		t.Errorf("got %d connections for ten calls in a row, want 1", n)
	}
}

// A daemon that was started again must not cost a failed call, or one whose
// outcome is open.
func TestDeadIdleConnectionIsNotUsed(t *testing.T) {
	f := newFake(t, func(args []string) (string, bool) { return "+OK\r\n", args[0] != "LAST" })
	c := f.client(t)
	if _, err := c.Do(t.Context(), "LAST"); err != nil { // the server closes behind the reply
		t.Fatal(err)
	}
	f.cut() // returns when the close is done, so FIN is on loopback
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("got %v after the idle connection had been closed, want nil", err)
	}
}

func TestBrokenExchangeLeavesTheOutcomeOpen(t *testing.T) {
	for name, reply := range map[string]string{"no reply": "", "half a reply": "$10\r\nabc"} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, func([]string) (string, bool) { return reply, false })
			_, err := f.client(t).Enqueue(t.Context(), client.Job{Queue: "q"})
			if !errors.Is(err, client.ErrUnknown) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, want ErrUnknown for a connection that ended", err)
			}
		})
	}
}

func TestUnreachableIsNotOpen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	err = client.New(client.Options{Addr: addr}).Ping(t.Context())
	var connect *client.ConnectError
	if !errors.As(err, &connect) || errors.Is(err, client.ErrUnknown) {
		t.Errorf("got %v, want a *ConnectError that is not ErrUnknown", err)
	}
}

func TestRefusals(t *testing.T) {
	f := newFake(t, func(args []string) (string, bool) { return "-" + args[1] + "\r\n", true })
	c := f.client(t)
	for _, test := range []struct {
		line                        string
		noLease, unknown, temporary bool
	}{
		{"ERR lease does not exist", true, false, false},
		{"UNKNOWN the log failed, the outcome is open", false, true, false},
		{"LOADING replaying", false, false, true},
		{"MISCONF disk full", false, false, true},
		{"QUEUEFULL queue is at its limit", false, false, true},
		{"PAUSED draining, no new jobs are taken", false, false, true},
		{"ERR shutting down", false, false, true},
		{"ERR syntax error", false, false, false},
		{"NOPERM no", false, false, false},
	} {
		_, err := c.Do(t.Context(), "SAY", test.line)
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Error() != test.line {
			t.Errorf("%s: got %v, want the line as an *Error", test.line, err)
			continue
		}
		if errors.Is(err, client.ErrNoLease) != test.noLease || errors.Is(err, client.ErrUnknown) != test.unknown || refused.Temporary() != test.temporary {
			t.Errorf("%s: got ErrNoLease %v, ErrUnknown %v, Temporary %v", test.line, errors.Is(err, client.ErrNoLease), errors.Is(err, client.ErrUnknown), refused.Temporary())
		}
	}
	if n := f.accepted.Load(); n != 1 {
		t.Errorf("got %d connections, want 1: a refusal does not break one", n)
	}
}

func TestContextEndsAWait(t *testing.T) {
	waiting := make(chan struct{})
	end := make(chan struct{})
	f := newFake(t, func([]string) (string, bool) { close(waiting); <-end; return "", false })
	defer close(end)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-waiting; cancel() }()
	_, err := f.client(t).Fetch(ctx, client.FetchOptions{Queues: []string{"q"}, Wait: time.Hour})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestClosed(t *testing.T) {
	f := newFake(t, func([]string) (string, bool) { return "+OK\r\n", true })
	c := f.client(t)
	c.Close()
	if err := c.Ping(t.Context()); !errors.Is(err, client.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestJobOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		job  client.Job
		want string
	}{
		{"nothing", client.Job{}, ""},
		{"delay", client.Job{Delay: 1500 * time.Millisecond}, "DELAY 1500"},
		{"at wins over delay", client.Job{At: time.UnixMilli(7), Delay: time.Second}, "AT 7"},
		{"ttl and priority", client.Job{TTL: time.Minute, Priority: -3}, "TTL 60000 PRIORITY -3"},
		{"tries", client.Job{Tries: 4}, "TRIES 4"},
		{"no limit of tries", client.Job{Tries: client.Unlimited}, "TRIES 0"},
		{"backoff", client.Job{Backoff: time.Second, MaxBackoff: time.Hour}, "BACKOFF 1000 MAX 3600000"},
		{"unique", client.Job{Unique: "k", UniqueFor: time.Second}, "UNIQUE k FOR 1000"},
		{"group and sorted attributes", client.Job{Group: "g", Attrs: map[string]string{"b": "2", "a": "1"}}, "GROUP g ATTR a 1 ATTR b 2"},
	} {
		if got := strings.Join(test.job.Options(), " "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestLongPipelineDoesNotDeadlock(t *testing.T) {
	// The fake reads a command only when its reply to the one before is taken.
	big := "$" + "200000\r\n" + strings.Repeat("z", 200000) + "\r\n"
	f := newFake(t, func(args []string) (string, bool) {
		return "*4\r\n$7\r\ntask_id\r\n$1\r\nx\r\n$1\r\np\r\n" + big, true
	})
	jobs := make([]client.Job, 200)
	for i := range jobs {
		jobs[i] = client.Job{Queue: "q", Payload: make([]byte, 100000)}
	}
	results, err := f.client(t).EnqueueAll(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.ID != "x" || r.Err != nil {
			t.Fatalf("result %d is %+v", i, r)
		}
	}
}

func TestAckAll(t *testing.T) {
	for _, test := range []struct {
		name, wire string
		leases     []string
		want       []bool
		refused    bool
	}{
		{"none", "", nil, nil, false}, // asks nobody
		{"one that held", "+OK\r\n", []string{"a"}, []bool{true}, false},
		{"one that had ended", "-ERR lease does not exist\r\n", []string{"a"}, []bool{false}, false},
		{"several", "*3\r\n:1\r\n:0\r\n:1\r\n", []string{"a", "b", "c"}, []bool{true, false, true}, false},
		{"refused", "-MISCONF disk full\r\n", []string{"a", "b"}, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, func([]string) (string, bool) { return test.wire, true })
			got, err := f.client(t).AckAll(t.Context(), test.leases)
			if !slices.Equal(got, test.want) || (err != nil) != test.refused {
				t.Errorf("got %v, %v, want %v and an error %v", got, err, test.want, test.refused)
			}
		})
	}
}

// TestOtherServerIsNotOpen: what answers the greeting and is no Pawl was never
// sent a command.
func TestOtherServerIsNotOpen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 1024))
		c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	}()
	_, err = client.New(client.Options{Addr: l.Addr().String()}).Enqueue(t.Context(), client.Job{Queue: "q"})
	if _, ok := errors.AsType[*client.ConnectError](err); !ok || errors.Is(err, client.ErrUnknown) || !errors.Is(err, client.ErrProtocol) {
		t.Errorf("got %v, want a *ConnectError with ErrProtocol that is not ErrUnknown", err)
	}
}

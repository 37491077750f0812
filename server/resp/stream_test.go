package resp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"pawl/server/resp"
)

// converse plays a stream to a server of its own, cut into pieces, and gives
// all it answers until it closes. The client finishes sending at the end.
func converse(t testing.TB, stream []byte, pieces func(rest []byte) int) []byte {
	t.Helper()
	client, server := newHalfPipe()
	return converseOver(t, client, server, stream, pieces)
}

// conversePolled is converse over a socket that a poller takes.
func conversePolled(t testing.TB, stream []byte, pieces func(rest []byte) int) []byte {
	t.Helper()
	client, server := socketPair(t)
	return converseOver(t, client, server, stream, pieces)
}

// halfCloser is a connection whose directions end on their own.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

func converseOver(t testing.TB, client halfCloser, server net.Conn, stream []byte, pieces func(rest []byte) int) []byte {
	t.Helper()
	defer client.Close()
	s := newServer(resp.Options{Limits: resp.Limits{PayloadBytes: 4096}})
	if err := s.SetEngine(newFakeEngine()); err != nil {
		t.Fatal(err)
	}
	l := newPipeListener()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	l.conns <- server

	answered := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(client)
		answered <- all
	}()
	for rest := stream; len(rest) > 0; {
		n := min(max(1, pieces(rest)), len(rest))
		if _, err := client.Write(rest[:n]); err != nil {
			break // closed; the answer says why
		}
		rest = rest[n:]
	}
	client.CloseWrite()
	all := <-answered
	if err := s.Shutdown(context.Background()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if n := s.Numbers(); n.Panics != 0 || n.BufferBytes != 0 || n.Connected != 0 {
		t.Errorf("after %q: %+v", clip(stream), n)
	}
	return all
}

func clip(b []byte) []byte { return b[:min(len(b), 200)] }

func whole(rest []byte) int { return len(rest) }

// checkStream holds what must be true of every stream: the answer does not
// depend on how it was cut, and it is well formed to its last byte.
func checkStream(t testing.TB, stream []byte, random *rand.Rand) {
	t.Helper()
	want := converse(t, stream, whole)
	ways := map[string]func([]byte) int{
		"one by one":    func([]byte) int { return 1 },
		"cut at random": func([]byte) int { return 1 + random.IntN(40) },
	}
	if len(stream) > 2000 {
		delete(ways, "one by one")
	}
	for way, pieces := range ways {
		if got := converse(t, stream, pieces); !bytes.Equal(got, want) {
			t.Fatalf("%q %s: got %q, want %q as when sent at once", clip(stream), way, clip(got), clip(want))
		}
	}
	if !portable && pollers {
		ways["at once"] = whole
		for way, pieces := range ways {
			if got := conversePolled(t, stream, pieces); !bytes.Equal(got, want) {
				t.Fatalf("%q %s, polled: got %q, want %q as of a goroutine", clip(stream), way, clip(got), clip(want))
			}
		}
	}
	r := newReplyReader(want)
	for {
		_, err := readReply(r)
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("%q: answer %q: %v", clip(stream), clip(want), err)
		}
	}
}

// interesting are inputs of the tables, and pieces to make others of.
var interesting = []string{
	command("PING"), command("PING", "hi"), command("MOXY.ENQUEUE", "q", "hello"), command("FETCH", "q", "1000"),
	command("FETCH", "q", "1000", "COUNT", "3", "META"), command("ENQUEUE", "q", "\x00\r\n$5\r\n*1"), command("STATS", "q"),
	command("HELLO", "3"), command("HELLO", "2"), command("MULTI"), command("EXEC"), command("DISCARD"), command("RESET"),
	command("CLIENT", "REPLY", "SKIP"), command("CLIENT", "REPLY", "OFF"), command("CLIENT", "REPLY", "ON"),
	command("CLIENT", "REPLY", "SKIP") + command("FETCH", "q", "1000") + command("FETCH", "q", "1000"),
	command("SELECT", "1"), command("NOSUCH", "\r\n+OK\r\n"), command("ECHO", strings.Repeat("e", 4096)),
	command("ECHO", strings.Repeat("e", 4097)), command("ACK", "nosuch", "nosuch"), command("COMMAND", "DOCS", "fetch"),
	command("FETCH", "nothere", "1000", "WAIT", "1"), command(""), command("QUIT"),
	"*0\r\n", "*-1\r\n", "*-2\r\n", "*x\r\n", "*+3\r\n", "*03\r\n", "*1025\r\n", "*2147483647\r\n", "*9223372036854775807\r\n",
	"*99999999999999999999\r\n", "*1\n", "*1\r", "\r\n", "\n", "\r", "\x00", "\x16\x03\x01", "*1\r\n$-1\r\n", "*1\r\n$-2\r\n",
	"*1\r\n$ 5\r\n", "*1\r\n$x\r\n", "*1\r\n$9223372036854775807\r\n", "*1\r\n$67108865\r\n", "*1\r\n$4\r\nPINGxx", "*1\r\n$4\r\nPI",
	"*2\r\n$4\r\nPING\r\n:1\r\n", "*1\r\n:x\r\n", "*2\r\n$4\r\nPING\r\n*1\r\n$1\r\na\r\n", strings.Repeat("*1\r\n", 100) + ":1\r\n",
	"+PING\r\n", ":1\r\n", "-ERR x\r\n", "$4\r\nPING\r\n", "$-1\r\n", "+" + strings.Repeat("a", 4094) + "\r\n", "+" + strings.Repeat("a", 4095) + "\r\n",
	"PING\r\n", "PING\n", "  PING  \r\n", "ECHO \"a b\\n\"\r\n", "ECHO 'x\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\n",
	"_\r\n", "#t\r\n", "%1\r\n+a\r\n+b\r\n", "$4294967297\r\n", "*3\r\n$7\r\nENQUEUE\r\n$1\r\nq\r\n$1048577\r\n",
}

func TestStreamsDoNotDependOnCuts(t *testing.T) {
	const seed = 20261128
	random := rand.New(rand.NewPCG(seed, 0))
	for _, stream := range interesting {
		checkStream(t, []byte(command("ENQUEUE", "q", "first")+stream+command("PING")), random)
	}
	runs := 3000
	if testing.Short() {
		runs = 200
	}
	for range runs {
		checkStream(t, randomStream(random), random)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// randomStream joins interesting pieces and damages some of them.
func randomStream(random *rand.Rand) []byte {
	var b []byte
	for range 1 + random.IntN(6) {
		b = append(b, interesting[random.IntN(len(interesting))]...)
	}
	for range random.IntN(3) {
		switch at := random.IntN(len(b)); random.IntN(3) {
		case 0:
			b[at] = byte(random.IntN(256))
		case 1:
			b = append(b[:at], b[at+1:]...)
		case 2:
			b = append(b[:at], append([]byte("\r\n*$:+-0123456789")[random.IntN(17):][:1:1], b[at:]...)...)
		}
		if len(b) == 0 {
			return []byte("\r\n")
		}
	}
	return b
}

func FuzzStream(f *testing.F) {
	for _, stream := range interesting {
		f.Add([]byte(stream), uint64(1))
	}
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		if len(stream) > 1<<16 {
			return
		}
		checkStream(t, stream, rand.New(rand.NewPCG(seed, 0)))
	})
}

// A client that announces much and sends little makes the server hold little;
// one that nests deeply is answered.
func TestNestedArrays(t *testing.T) {
	stream := strings.Repeat("*1\r\n", 200_000) + "$1\r\na\r\n" + command("PING")
	got := converse(t, []byte(stream), whole)
	want := "-ERR command elements must be bulk strings\r\n+PONG\r\n"
	if string(got) != want {
		t.Errorf("got %q, want %q", clip(got), want)
	}
}

func ExampleNew() {
	s := resp.New(resp.Options{Version: "1.0.0"})
	fmt.Println(s.Numbers().Connected)
	// Output: 0
}

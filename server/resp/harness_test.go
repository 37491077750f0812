package resp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/engine"
	"pawl/reaper"
	"pawl/recovery"
	"pawl/server/resp"
	"pawl/wal"
)

// patience bounds whatever a test waits for; nothing takes that long.
const patience = 30 * time.Second

// daemon is a server on loopback, with a real engine unless it is loading.
type daemon struct {
	engineOpt engine.Options
	t         testing.TB
	s         *resp.Server
	e         *engine.Engine
	addr      string
	dir       string
	stop      func()

	grace  time.Duration // of Shutdown
	cutOff bool          // it did not suffice
}

// loopUnderTest is LoopPoll where there is one, but for the second run.
func loopUnderTest() resp.Loop {
	if portable || runtime.GOOS != "linux" {
		return resp.LoopPortable
	}
	return resp.LoopPoll
}

// portable says that this process tests LoopPortable; see TestPortableLoop.
var portable = os.Getenv("PAWL_TEST_LOOP") == "portable"

// newServer is resp.New with the loop under test.
func newServer(opt resp.Options) *resp.Server {
	opt.Loop = loopUnderTest()
	s := resp.New(opt)
	s.PollAtOnce()
	return s
}

// startDaemon starts one on a new directory. Its end is checked: the shutdown
// must answer everybody, and the engine must close.
func startDaemon(t testing.TB, opt resp.Options) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: t.TempDir(), grace: patience}
	d.listen(opt)
	d.openEngine()
	return d
}

// startLoading starts one without an engine.
func startLoading(t testing.TB, opt resp.Options) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: t.TempDir(), grace: patience}
	d.listen(opt)
	return d
}

func (d *daemon) listen(opt resp.Options) {
	d.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.t.Fatal(err)
	}
	d.addr = l.Addr().String()
	d.s = newServer(opt)
	served := make(chan error, 1)
	go func() { served <- d.s.Serve(context.Background(), l) }()
	stopped := false
	d.stop = func() {
		if stopped {
			return
		}
		stopped = true
		ctx, cancel := context.WithTimeout(context.Background(), d.grace)
		defer cancel()
		err := d.s.Shutdown(ctx)
		d.cutOff = errors.Is(err, resp.ErrShutdown)
		if err != nil && !d.cutOff {
			d.t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			d.t.Errorf("serve: %v", err)
		}
		if n := d.s.Numbers(); n.BufferBytes != 0 || n.Connected != 0 || n.Blocked != 0 || n.Panics != 0 {
			d.t.Errorf("after shutdown: %+v", n)
		}
		if d.e != nil {
			if err := d.e.Close(context.Background()); err != nil {
				d.t.Errorf("close engine: %v", err)
			}
		}
	}
	d.t.Cleanup(d.stop)
}

func (d *daemon) openEngine() {
	d.t.Helper()
	store, err := recovery.Open(context.Background(), recovery.Options{Dir: d.dir})
	if err != nil {
		d.t.Fatal(err)
	}
	log, err := wal.Begin(wal.Options{Dir: store.LogDir(), GenerationBytes: 8 << 20}, store.End)
	if err != nil {
		d.t.Fatal(err)
	}
	d.e, err = engine.New(d.engineOpt, engine.Start{
		State: store.State, Log: log, End: store.End,
		Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
		Store: store.Identity.ID, History: store.Identity.History,
		Release: store,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		reaper.New(d.e).Run(ctx)
	}()
	stop := d.stop
	d.stop = func() {
		cancel()
		<-over
		stop()
	}
	d.t.Cleanup(d.stop)
	if err := d.s.SetEngine(d.e); err != nil {
		d.t.Fatal(err)
	}
}

// until waits for a condition that is about to come true.
func (d *daemon) until(what string, ok func() bool) {
	d.t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			d.t.Fatalf("not after %v: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// peer is one client of a test.
type peer struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func (d *daemon) dial() *peer {
	d.t.Helper()
	nc, err := net.Dial("tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	return newPeer(d.t, nc)
}

func newPeer(t testing.TB, nc net.Conn) *peer {
	nc.SetDeadline(time.Now().Add(2 * patience))
	t.Cleanup(func() { nc.Close() })
	return &peer{t: t, nc: nc, r: bufio.NewReader(nc)}
}

// command is the bytes of a command.
func command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func (p *peer) send(raw string) {
	p.t.Helper()
	if _, err := io.WriteString(p.nc, raw); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// do sends a command and gives its reply, as readReply shows it.
func (p *peer) do(args ...string) string {
	p.t.Helper()
	p.send(command(args...))
	return p.reply()
}

func (p *peer) reply() string {
	p.t.Helper()
	text, err := readReply(p.r)
	if err != nil {
		p.t.Fatalf("read reply: %v", err)
	}
	return text
}

// expect compares the reply of a command.
func (p *peer) expect(want string, args ...string) {
	p.t.Helper()
	if got := p.do(args...); got != want {
		p.t.Errorf("%q: got %s, want %s", args, got, want)
	}
}

// closed waits for the server to close the connection, and gives what it said
// before.
func (p *peer) closed() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.r)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		p.t.Fatal("the connection stays open")
	}
	return string(rest)
}

func (p *peer) closeWrite() {
	p.t.Helper()
	if err := p.nc.(*net.TCPConn).CloseWrite(); err != nil {
		p.t.Fatal(err)
	}
}

// readReply reads one value and shows it on one line: +simple, -error, 12,
// "bulk", (nil), [array], {map}, <set>, #t, ,1.5 and (txt)"verbatim".
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
		return "", fmt.Errorf("not a reply: %q", line)
	}
	body := line[1 : len(line)-2]
	if strings.ContainsAny(body, "\r\n") {
		return "", fmt.Errorf("not one line: %q", line)
	}
	switch line[0] {
	case '+', '-', '#', ',':
		return line[:1] + body, nil
	case ':':
		return body, nil
	case '_':
		return "(nil)", nil
	case '$', '=':
		n, err := strconv.Atoi(body)
		if err != nil || n < -1 {
			return "", fmt.Errorf("bad length: %q", line)
		}
		if n == -1 {
			return "(nil)", nil
		}
		bulk := make([]byte, n+2)
		if _, err := io.ReadFull(r, bulk); err != nil {
			return "", err
		}
		if string(bulk[n:]) != "\r\n" {
			return "", fmt.Errorf("bulk string of %d bytes does not end: %q", n, bulk)
		}
		if line[0] == '=' {
			return "(txt)" + strconv.Quote(string(bulk[4:n])), nil
		}
		return strconv.Quote(string(bulk[:n])), nil
	case '*', '~', '%':
		n, err := strconv.Atoi(body)
		if err != nil || n < -1 {
			return "", fmt.Errorf("bad length: %q", line)
		}
		if n == -1 {
			return "(nil array)", nil
		}
		open, end, per := "[", "]", 1
		switch line[0] {
		case '~':
			open, end = "<", ">"
		case '%':
			open, end, per = "{", "}", 2
		}
		parts := make([]string, 0, n)
		for range n {
			part, err := readReply(r)
			if err != nil {
				return "", err
			}
			if per == 2 {
				value, err := readReply(r)
				if err != nil {
					return "", err
				}
				part += ": " + value
			}
			parts = append(parts, part)
		}
		return open + strings.Join(parts, " ") + end, nil
	}
	return "", fmt.Errorf("unknown type: %q", line)
}

func newReplyReader(b []byte) *bufio.Reader { return bufio.NewReader(strings.NewReader(string(b))) }

package resp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/engine"
	"pawl/server/resp"
)

// startFake is a server with an engine in memory.
func startFake(t testing.TB, opt resp.Options) (*daemon, *fakeEngine) {
	t.Helper()
	d := startLoading(t, opt)
	f := newFakeEngine()
	if err := d.s.SetEngine(f); err != nil {
		t.Fatal(err)
	}
	return d, f
}

func TestTooManyClients(t *testing.T) {
	d, _ := startFake(t, resp.Options{Limits: resp.Limits{Clients: 2}})
	d.dial().expect("+PONG", "PING")
	second := d.dial()
	second.expect("+PONG", "PING")
	if got, want := d.dial().closed(), "-ERR max number of clients reached\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	second.nc.Close()
	d.until("there is room again", func() bool { return d.s.Numbers().Connected == 1 })
	d.dial().expect("+PONG", "PING")
	if n := d.s.Numbers(); n.Refused != 1 || n.Accepted != 3 {
		t.Errorf("got %d refused, %d accepted, want 1 and 3", n.Refused, n.Accepted)
	}
}

// lateListener hands out one connection, after it was closed.
type lateListener struct {
	net.Listener
	accepting, closed chan struct{}
	accept, close     sync.Once
	late              chan net.Conn
}

func (l *lateListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

func (l *lateListener) Accept() (net.Conn, error) {
	l.accept.Do(func() { close(l.accepting) })
	<-l.closed
	if nc, ok := <-l.late; ok {
		return nc, nil
	}
	return nil, net.ErrClosed
}

// Who comes while the server stops is told so, and not that there are too many.
func TestConnectionWhileStopping(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	client, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := inner.Accept()
	if err != nil {
		t.Fatal(err)
	}
	l := &lateListener{Listener: inner, accepting: make(chan struct{}), closed: make(chan struct{}), late: make(chan net.Conn)}
	s := newServer(resp.Options{})
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(t.Context(), l) })
	<-l.accepting
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case l.late <- nc:
	case <-time.After(patience):
		t.Fatal("nobody accepts")
	}
	close(l.late)
	serving.Wait()
	client.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(client)
	if want := "-ERR shutting down\r\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if n := s.Numbers(); n.Refused != 0 {
		t.Errorf("%d were counted as too many", n.Refused)
	}
}

// closedFor waits for the server to close a connection for a cause.
func closedFor(t *testing.T, d *daemon, c *peer, cause string) {
	t.Helper()
	c.closed()
	d.until(cause, func() bool { return d.s.Numbers().Closed[cause] == 1 })
}

func TestSlowSenderIsClosed(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{Limits: resp.Limits{CommandTime: 200 * time.Millisecond}})
	idle := d.dial()
	idle.expect("+PONG", "PING")
	slow := d.dial()
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() { // progress does not help: the time is for the whole command
		for range 10_000 {
			if _, err := slow.nc.Write([]byte("*")); err != nil {
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	closedFor(t, d, slow, "slow_command")
	close(stop)
	sending.Wait()
	idle.expect("+PONG", "PING")
}

func TestStrangerMustLogInInTime(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{Password: "x", Limits: resp.Limits{LoginTime: 2 * time.Second}})
	in := d.dial()
	in.expect("+OK", "AUTH", "x")
	closedFor(t, d, d.dial(), "login")
	in.expect("+PONG", "PING")
}

func TestIdleClientIsClosed(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{Limits: resp.Limits{IdleTime: 2 * time.Second}})
	waiting := d.dial()
	waiting.send(command("FETCH", "q", "1000", "WAIT", "3600000"))
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
	closedFor(t, d, d.dial(), "idle")
	if d.s.Numbers().Blocked != 1 {
		t.Error("a client that waits for a job was taken for an idle one")
	}
}

// A client that takes jobs and does not read blocks nobody, is closed, and what
// it did not get goes back in order.
func TestUnreadRepliesGiveTheirJobsBack(t *testing.T) {
	t.Parallel()
	d, f := startFake(t, resp.Options{Limits: resp.Limits{WriteTime: 2 * time.Second}})
	const jobs, size = 40, 1 << 20
	in := d.dial()
	for i := range jobs {
		in.do("ENQUEUE", "q", fmt.Sprintf("%02d", i)+strings.Repeat("x", size-2))
	}
	lazy := d.dial()
	lazy.nc.(*net.TCPConn).SetReadBuffer(4096)
	lazy.send(strings.Repeat(command("FETCH", "q", "60000"), jobs))
	d.until("it is closed", func() bool { return d.s.Numbers().Closed["slow_reader"] == 1 })
	in.expect("+PONG", "PING")
	d.until("jobs are back", func() bool { return f.lost() > 0 && len(f.readyIn("q"))+f.held() == jobs })

	back := f.readyIn("q")
	if len(back) < jobs/4 {
		t.Errorf("only %d of %d jobs are back", len(back), jobs)
	}
	for i, payload := range back {
		if want := fmt.Sprintf("%02d", jobs-len(back)+i); payload[:2] != want {
			t.Fatalf("job %d of those that are back: got %s, want %s", i, payload[:2], want)
		}
	}
	if held := f.held(); held+len(back) != jobs {
		t.Errorf("%d jobs are held and %d are ready, of %d", held, len(back), jobs)
	}
}

// The buffers of all clients together stay under the ceiling at every moment,
// and the server lives on.
func TestBufferCeiling(t *testing.T) {
	const ceiling = 8 << 20
	d, _ := startFake(t, resp.Options{Limits: resp.Limits{BufferBytes: ceiling}})
	stop := make(chan struct{})
	var highest int64
	var watching, clients sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				highest = max(highest, d.s.Numbers().BufferBytes)
				time.Sleep(time.Millisecond)
			}
		}
	})
	// Each announces a payload, sends most of it, and stops.
	most := "*3\r\n$7\r\nENQUEUE\r\n$1\r\nq\r\n$524288\r\n" + strings.Repeat("x", 512<<10-1)
	for range 40 {
		c := d.dial()
		clients.Go(func() {
			io.WriteString(c.nc, most)
			io.Copy(io.Discard, c.nc)
		})
	}
	d.until("somebody is closed", func() bool { return d.s.Numbers().Closed["buffers"] > 0 })
	other := d.dial()
	for range 20 {
		other.expect("+PONG", "PING")
	}
	d.stop()
	close(stop)
	watching.Wait()
	clients.Wait()
	if highest > ceiling {
		t.Errorf("buffers held %d bytes, over the ceiling of %d", highest, ceiling)
	}
	if highest < ceiling/4 {
		t.Errorf("buffers held %d bytes at most: the test did not fill them", highest)
	}
}

// Those who announce much and send little cost little.
func TestAnnouncedLengthsAllocateNothing(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	var all []*peer
	for range 200 {
		c := d.dial()
		c.send(command("PING") + "*3\r\n$7\r\nENQUEUE\r\n$1\r\nq\r\n$1048576\r\nx")
		all = append(all, c)
	}
	for _, c := range all {
		if got := c.reply(); got != "+PONG" {
			t.Fatalf("got %s", got)
		}
	}
	if held := d.s.Numbers().BufferBytes; held > 200*4096 {
		t.Errorf("200 announcements hold %d bytes", held)
	}
}

// An idle connection gives its buffer back.
func TestIdleConnectionsHoldNothing(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	c.do("ENQUEUE", "q", strings.Repeat("x", 1<<20))
	d.until("its buffer is back", func() bool { return d.s.Numbers().BufferBytes == 0 })
	c.expect("+PONG", "PING")
}

func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	d, f := startFake(t, resp.Options{})
	idle := d.dial()
	idle.expect("+PONG", "PING")
	half := d.dial()
	half.send("*2\r\n$4\r\nECHO\r\n$5\r\nhel")
	waiting := d.dial()
	waiting.send(command("FETCH", "none", "1000", "WAIT", "3600000"))
	stuck := d.dial()
	stuck.nc.(*net.TCPConn).SetReadBuffer(4096)
	idle.do("ENQUEUE", "big", strings.Repeat("x", 1<<20))
	for range 30 {
		idle.do("ENQUEUE", "big", strings.Repeat("x", 1<<20))
	}
	stuck.send(strings.Repeat(command("FETCH", "big", "60000"), 31))
	d.until("they are where they should be", func() bool { return d.s.Numbers().Blocked == 1 && f.held() > 0 })

	began := time.Now()
	d.grace = 3 * time.Second
	d.stop()
	if took := time.Since(began); took > patience {
		t.Errorf("took %v", took)
	}
	if got := waiting.closed(); got != "$-1\r\n" {
		t.Errorf("who waited was told %q", got)
	}
	if got := idle.closed(); got != "" {
		t.Errorf("who was idle was told %q", got)
	}
	if got := half.closed(); got != "" {
		t.Errorf("who had sent half a command was told %q", got)
	}
	if f.lost() == 0 {
		t.Error("what could not be written was not given back")
	}
	if _, err := net.Dial("tcp", d.addr); err == nil {
		t.Error("connections are still taken")
	}
}

// Everything received when the shutdown begins is answered, in order, or
// untouched.
func TestShutdownAnswersWhatWasReceived(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{})
	c := d.dial()
	const sent = 5000
	var sending sync.WaitGroup
	sending.Go(func() {
		var b bytes.Buffer
		for i := range sent {
			b.WriteString(command("ENQUEUE", "q", fmt.Sprint(i)))
		}
		c.nc.Write(b.Bytes())
	})
	if got := c.reply(); !strings.HasPrefix(got, `["task_id"`) {
		t.Fatal(got)
	}
	answered := make(chan int)
	go func() {
		n := 1
		for {
			if _, err := readReply(c.r); err != nil {
				break
			}
			n++
		}
		answered <- n
	}()
	d.stop()
	got := <-answered
	sending.Wait()

	again := startLoading(t, resp.Options{})
	again.dir = d.dir
	again.openEngine()
	stats := again.dial().do("STATS", "q")
	var ready int
	if _, err := fmt.Sscanf(stats, `["ready" %d `, &ready); err != nil {
		t.Fatalf("%s: %v", stats, err)
	}
	// Who is cut off, because the disk took longer than a shutdown may, has not
	// heard of all that was done.
	if got > ready || got < ready && !d.cutOff {
		t.Errorf("%d were answered, but %d are there after the next start", got, ready)
	}
}

// A client that was killed while it waited must not swallow the next job.
func TestDeadWaiterTakesNothing(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	for range 50 {
		dead := d.dial()
		dead.send(command("FETCH", "q", "60000", "WAIT", "3600000"))
		d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
		dead.nc.(*net.TCPConn).SetLinger(0) // a reset
		dead.nc.Close()
		d.until("its end is noticed", func() bool { return d.s.Numbers().Blocked == 0 })
		c := d.dial()
		c.do("ENQUEUE", "q", "x")
		if got := c.do("FETCH", "q", "60000"); !strings.Contains(got, `"payload" "x"`) {
			t.Fatalf("the job is gone: %s", got)
		}
		c.nc.Close()
	}
	if f.lost() != 0 {
		t.Errorf("%d jobs had to be given back", f.lost())
	}
}

// The pipeline behind a FETCH that waits is bounded and not lost.
func TestPipelineBehindAWait(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	payload := strings.Repeat("y", 1000)
	c.send(command("FETCH", "q", "60000", "WAIT", "3600000"))
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
	const more = 3000
	var sending sync.WaitGroup
	sending.Go(func() { io.WriteString(c.nc, strings.Repeat(command("ECHO", payload), more)) })
	other := d.dial()
	d.until("some of it is read", func() bool { return d.s.Numbers().BytesIn > 100_000 })
	if held := d.s.Numbers().BufferBytes; held > 2<<20 {
		t.Errorf("%d bytes are held behind a FETCH that waits", held)
	}
	other.do("ENQUEUE", "q", "x")
	if got := c.reply(); !strings.Contains(got, `"payload" "x"`) {
		t.Fatalf("got %s", got)
	}
	for i := range more {
		if got := c.reply(); got != `"`+payload+`"` {
			t.Fatalf("reply %d: got %.50s", i, got)
		}
	}
	sending.Wait()
}

func TestStorageFailureReachesEveryReply(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	c := d.dial()
	waiting := d.dial()
	waiting.send(command("FETCH", "q", "1000", "WAIT", "3600000"))
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
	f.mu.Lock()
	f.waitErr = fmt.Errorf("sync: %w", errFake)
	f.mu.Unlock()
	c.send(command("PING") + command("ENQUEUE", "p", "x") + command("STATS", "p") + command("PING"))
	for _, want := range []string{"+PONG", "-ERR internal error", "-ERR internal error", "+PONG"} {
		if got := c.reply(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	close(f.failed)
	if got, want := waiting.reply(), "-ERR internal error"; got != want {
		t.Errorf("who waited: got %s, want %s", got, want)
	}
}

// Jobs that were handed out go back when it cannot be said whether that is
// durable: nobody hears of their leases.
func TestJobsOfUnknownOutcomeGoBack(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	c, waiting := d.dial(), d.dial()
	waiting.send(command("FETCH", "w", "1000", "WAIT", "3600000"))
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
	for range 3 {
		c.do("ENQUEUE", "q", "x")
	}
	f.mu.Lock()
	f.waitErr = engine.ErrUnanswered
	f.mu.Unlock()
	c.send(command("FETCH", "q", "1000", "COUNT", "2") + command("FETCH", "q", "1000", "WAIT", "1000") + command("ENQUEUE", "w", "x"))
	for range 3 {
		if got := c.reply(); !strings.HasPrefix(got, "-UNKNOWN") {
			t.Errorf("got %s, want UNKNOWN", got)
		}
	}
	if got := waiting.reply(); !strings.HasPrefix(got, "-UNKNOWN") {
		t.Errorf("who waited: got %s, want UNKNOWN", got)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.returned) != 4 {
		t.Errorf("%d jobs went back, want 4", len(f.returned))
	}
}

// A command in turns that was interrupted is not answered as if nothing had been
// done.
func TestHalfATurnIsUnknown(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	c := d.dial()
	f.mu.Lock()
	f.waitErr = engine.ErrPartly
	f.mu.Unlock()
	for _, words := range [][]string{{"QUEUE", "PURGE", "q"}, {"QUEUE", "REDRIVE", "q"}} {
		if got := c.do(words...); got != "-UNKNOWN interrupted half way, the rest is not done" {
			t.Errorf("%v: got %s", words, got)
		}
	}
}

var errFake = errors.New("no word for this")

// A job whose body is rotten is passed; one that cannot be read now is not lost.
func TestDamagedBodyIsPassed(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	c := d.dial()
	for _, p := range []string{"bad1", "bad2", "good", "bad3"} {
		c.do("ENQUEUE", "q", p)
	}
	f.mu.Lock()
	for _, p := range []string{"bad1", "bad2", "bad3"} {
		f.loadErr[p] = fmt.Errorf("read: %w", engine.ErrDamaged)
	}
	f.mu.Unlock()
	if got := c.do("FETCH", "q", "1000"); !strings.Contains(got, `"payload" "good"`) {
		t.Errorf("got %s", got)
	}
	c.expect("[]", "FETCH", "q", "1000", "COUNT", "5")
}

// A body that cannot be read at the moment is not asked for again at once: the
// job is back at the head of its queue, and the reply has the others.
func TestUnreadableBodyIsTriedOnce(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	c := d.dial()
	for _, p := range []string{"bad", "good"} {
		c.do("ENQUEUE", "q", p)
	}
	f.mu.Lock()
	f.loadErr["bad"] = errFake
	before := f.submits
	f.mu.Unlock()
	if got := c.do("FETCH", "q", "1000", "COUNT", "2"); !strings.Contains(got, `"payload" "good"`) || strings.Contains(got, `"bad"`) {
		t.Errorf("got %s, want the job that can be read", got)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.submits - before; n != 1 {
		t.Errorf("the engine got %d commands for one FETCH, want 1", n)
	}
}

// Who watches and does not read is closed, and nobody waits for it.
func TestSlowMonitorIsClosed(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{})
	lazy := d.dial()
	lazy.nc.(*net.TCPConn).SetReadBuffer(4096)
	lazy.expect("+OK", "MONITOR")
	c := d.dial()
	many := strings.Repeat(command("ECHO", strings.Repeat("m", 60)), 1000)
	for end := time.Now().Add(patience); d.s.Numbers().Closed["slow_monitor"] == 0; {
		if time.Now().After(end) {
			t.Fatal("who does not read the lines of MONITOR stays")
		}
		c.send(many)
		for range 1000 {
			c.reply()
		}
	}
	c.expect("+PONG", "PING")
	d.until("nobody watches", func() bool { return d.s.Numbers().Monitors == 0 })
}

// A browser that is tricked into sending here is cut off at its first line.
func TestHTTPIsClosed(t *testing.T) {
	t.Parallel()
	d, f := startFake(t, resp.Options{})
	for i, head := range []string{"GET / HTTP/1.1\r\n", "POST /x HTTP/1.1\r\n"} {
		c := d.dial()
		c.send(head + "Host: x\r\n\r\n" + command("ENQUEUE", "q", "x"))
		if got := c.closed(); got != "" {
			t.Errorf("%q was answered %q", head, got)
		}
		d.until("it is counted", func() bool { return d.s.Numbers().Closed["http"] == uint64(i+1) })
	}
	if jobs := f.readyIn("q"); len(jobs) > 0 {
		t.Errorf("%d jobs were enqueued by what followed the line of HTTP", len(jobs))
	}
}

// Whatever a client puts into a name, an error is one line of printable ASCII,
// no longer than 256 bytes.
func TestErrorLinesAreBounded(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	evil := "a\r\n+OK\r\n\x00\x1b[31m\xff" + strings.Repeat("z", 2000)
	for _, args := range [][]string{
		{evil}, {evil, evil, evil}, {"CLIENT", evil}, {"ENQUEUE", evil, "x"}, {"ENQUEUE", "q", "x", evil}, {"FETCH", "q", evil},
		{"QUEUE", "INFO", evil}, {"QUEUE", "SET", "q", evil, "1"}, {"JOB", "RUN", evil}, {"HELLO", evil}, {"HELLO", "3", evil},
		{"ACL", "SETUSER", "u", evil}, {"ACL", "SETUSER", evil, "on"}, {"CONFIG", "SET", evil, evil}, {"CRON", "SET", evil, evil, "q", "x"}, {"SELECT", evil},
	} {
		c.send(command(args...))
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line[0] != '-' {
			t.Errorf("%.40q is no error: %.100q", args, line)
		}
		body, ok := strings.CutSuffix(line, "\r\n")
		if !ok || len(body) > 1+256 || strings.ContainsFunc(body, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%.40q: the error has %d bytes: %.300q", args, len(line), line)
		}
		c.expect("+PONG", "PING") // nothing follows it
	}
}

func TestSlowLogIsBounded(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	c.expect("+OK", "CONFIG", "SET", "slowlog-log-slower-than", "0")
	args := []string{"ACL", "CAT"}
	for range 100 {
		args = append(args, strings.Repeat("s", 1000))
	}
	for range 200 {
		c.do("CLIENT", "SETNAME", "x")
		c.do(args...)
		c.do(append([]string{"MEMORY", "USAGE"}, args[2:]...)...)
		c.do(append([]string{"CLIENT", "LIST"}, args[2:]...)...)
	}
	c.expect("128", "SLOWLOG", "LEN")
	if got := c.do("SLOWLOG", "GET", "-1"); len(got) > 128*(32*160+200) {
		t.Errorf("the slow log holds %d bytes", len(got))
	}
}

// Of what a client goes on sending behind its last reply little is read.
func TestNobodyIsReadForEver(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	c.send(command("QUIT"))
	sent, chunk := 0, make([]byte, 64<<10)
	for sent < 64<<20 {
		n, err := c.nc.Write(chunk)
		sent += n
		if err != nil {
			break
		}
	}
	// What the sockets hold on both sides is not read, either.
	if sent > 32<<20 {
		t.Errorf("%d bytes behind QUIT were taken", sent)
	}
}

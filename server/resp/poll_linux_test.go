package resp_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pawl/engine"
	"pawl/server/resp"
	"pawl/state"
)

const pollers = true

// TestPortableLoop runs the tests of this package once more with a goroutine for
// every connection. What needs no socket is left out.
func TestPortableLoop(t *testing.T) {
	if portable {
		t.Skip("this is that run")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.short", "-test.timeout=300s", "-test.skip=TestStreams|TestAnyCut|TestNestedArrays|TestPipelineIsOneBatch|TestTLS|ComesBack|Doc|Fuzz")
	cmd.Env = append(os.Environ(), "PAWL_TEST_LOOP=portable")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// socketPair are the two ends of a socket.
func socketPair(t testing.TB) (client, server *net.UnixConn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]*net.UnixConn, 2)
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		nc, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = nc.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

func (d *daemon) polled(want int64) {
	d.t.Helper()
	d.until(fmt.Sprintf("%d are with the poller", want), func() bool { return d.s.Numbers().Polled == want })
}

// Behind a FETCH that may wait, and has its job at once, the rest of the pipeline
// is done, although nothing more comes from the client.
func TestPollerGoesOnBehindFetchWait(t *testing.T) {
	if portable {
		t.Skip("there is no poller")
	}
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	d.until("the poller has it", func() bool {
		c.expect("+PONG", "PING")
		return d.s.Numbers().Polled == 1
	})
	c.do("ENQUEUE", "q", "x")
	c.do("ENQUEUE", "q", "y")
	wait := command("FETCH", "q", "1000", "WAIT", "1000")
	c.send(wait + command("STATS", "q") + wait + command("PING"))
	for _, want := range []string{`"x"`, `"processing" 1`, `"y"`, "+PONG"} {
		if got := c.reply(); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A connection that sends plain commands comes to the poller, and leaves it for
// all others.
func TestPollerTakesPlainCommandsOnly(t *testing.T) {
	if portable {
		t.Skip("there is no poller")
	}
	d, f := startFake(t, resp.Options{})
	c := d.dial()
	plain := func() {
		t.Helper()
		d.until("the poller has it", func() bool {
			c.expect("+PONG", "PING")
			return d.s.Numbers().Polled == 1
		})
	}
	plain()
	if info := c.do("INFO", "clients", "server"); !strings.Contains(info, `loop:poll`) {
		t.Errorf("INFO: got %s", info)
	}
	for _, odd := range []string{"CLIENT ID", "SELECT 0", "CLIENT SETNAME x", "CLIENT INFO", "TIME"} {
		c.do(strings.Fields(odd)...)
		plain()
	}
	c.send(strings.Repeat(command("PING"), 200)) // a deep pipeline
	for range 200 {
		if got := c.reply(); got != "+PONG" {
			t.Fatalf("got %s", got)
		}
	}
	plain()

	// In a transaction and while it waits for a job it is elsewhere.
	c.expect("+OK", "MULTI")
	d.polled(0)
	c.expect("+QUEUED", "ENQUEUE", "q", "x")
	c.expect("+OK", "DISCARD")
	plain()
	c.send(command("FETCH", "q", "1000", "WAIT", "3600000"))
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
	d.polled(0)
	other := d.dial()
	other.do("ENQUEUE", "q", "x")
	if got := c.reply(); !strings.Contains(got, `"payload" "x"`) {
		t.Errorf("got %s", got)
	}
	other.nc.Close()
	d.until("the other is gone", func() bool { return d.s.Numbers().Connected == 1 })
	plain()

	// A FETCH that would wait and need not is no reason to leave.
	c.do("ENQUEUE", "q", "y")
	if got := c.do("FETCH", "q", "1000", "WAIT", "3600000"); !strings.Contains(got, `"payload" "y"`) {
		t.Errorf("got %s", got)
	}
	d.polled(1)
	if f.lost() != 0 {
		t.Errorf("%d jobs were given back", f.lost())
	}
}

// A client that cannot take its reply at once leaves the poller to the others.
func TestPollerWaitsForNoReader(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	in := d.dial()
	const jobs = 16 // more than both sockets hold
	for i := range jobs {
		in.do("ENQUEUE", "q", fmt.Sprintf("%02d", i)+strings.Repeat("x", 1<<20-2))
	}
	lazy := d.dial()
	lazy.send(strings.Repeat(command("FETCH", "q", "60000"), jobs))
	d.until("a job is leased", func() bool { return f.held() > 0 })
	for range 100 {
		in.expect("+PONG", "PING")
	}
	for i := range jobs { // and it gets all of them
		if got, want := lazy.reply(), fmt.Sprintf(`"payload" "%02d`, i); !strings.Contains(got, want) {
			t.Fatalf("reply %d: got %.100s", i, got)
		}
	}
}

// The clock moves in ticks of about 100 ms. A pass may have begun just before one,
// so it is stuck when it has seen two.
func TestPassIsStuckAfterTwoTicks(t *testing.T) {
	for _, c := range []struct {
		now  int64
		want bool
	}{{1000, false}, {1099, false}, {1100, false}, {1101, false}, {1120, false}, {1199, true}, {1200, true}} {
		if got := resp.StuckAtTick(1000, c.now); got != c.want {
			t.Errorf("at %d: got %t, want %t", c.now, got, c.want)
		}
	}
}

// hangingEngine has a disk that does not answer.
type hangingEngine struct {
	*fakeEngine
	mu    sync.Mutex
	waits []chan error // of those who wait, in order; nil while the disk is well
}

func (e *hangingEngine) hang() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waits = []chan error{}
}

func (e *hangingEngine) Wait(engine.LSN) error {
	e.mu.Lock()
	if e.waits == nil {
		e.mu.Unlock()
		return nil
	}
	answer := make(chan error, 1)
	e.waits = append(e.waits, answer)
	e.mu.Unlock()
	return <-answer
}

// heal ends the hanging.
func (e *hangingEngine) heal() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, answer := range e.waits {
		select {
		case answer <- errors.New("the test is over"):
		default: // it has been answered
		}
	}
	e.waits = nil
}

func (e *hangingEngine) waiting() []chan error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waits
}

// While the disk hangs, the poller is inside its commit. All others are served,
// and those who wait for that commit hear in time that it hangs.
func TestPollerThatHangsIsRelieved(t *testing.T) {
	if portable {
		t.Skip("there is no poller")
	}
	d := startLoading(t, resp.Options{})
	e := &hangingEngine{fakeEngine: newFakeEngine()}
	if err := d.s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.heal) // before the shutdown, which waits for all
	// They are dealt out to the pollers in turn: the first, and the one after
	// each poller has had one, are with the same.
	pollers := max(1, runtime.GOMAXPROCS(0)/2)
	clients := pollers + 5
	var all []*peer
	for range clients {
		c := d.dial()
		c.expect("+PONG", "PING")
		all = append(all, c)
	}
	d.polled(int64(clients))
	e.hang()
	first, second := all[0], all[pollers]
	rest := slices.Concat(all[1:pollers], all[pollers+1:])
	first.send(command("PING") + command("ENQUEUE", "q", "x"))
	d.until("the poller waits", func() bool { return len(e.waiting()) > 0 })
	second.send(command("ENQUEUE", "q", "y"))
	for _, c := range rest {
		c.expect("+PONG", "PING") // what needs no disk
	}
	d.until("each waits for itself", func() bool { return len(e.waiting()) == 3 })
	// The poller's own wait goes on.
	for _, answer := range e.waiting()[1:] {
		answer <- engine.ErrUnanswered
	}
	if got, want := first.reply(), "+PONG"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, c := range []*peer{first, second} {
		if got := c.reply(); got != "-UNKNOWN the disk does not answer, the outcome is open" {
			t.Errorf("got %s", got)
		}
	}
	for _, c := range all {
		c.expect("+PONG", "PING")
	}
	e.heal() // nobody waits for the poller's answer any more
	d.until("the poller has them again", func() bool {
		for _, c := range all {
			c.expect("+PONG", "PING")
		}
		return d.s.Numbers().Polled == int64(clients)
	})
	for _, c := range all {
		if got := c.do("ENQUEUE", "q", "z"); !strings.HasPrefix(got, `["task_id"`) {
			t.Errorf("got %s", got)
		}
	}
}

// JOB DELETE looks at its jobs before it deletes them, all at once, and waits for that:
// elsewhere.
func TestPollerDeletesNoJobs(t *testing.T) {
	if portable {
		t.Skip("there is no poller")
	}
	d := startLoading(t, resp.Options{})
	e := &hangingEngine{fakeEngine: newFakeEngine()}
	if err := d.s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.heal)
	deleter, others := d.dial(), []*peer{d.dial(), d.dial()}
	for _, c := range append(others, deleter) {
		c.expect("+PONG", "PING")
	}
	d.polled(3)
	e.hang()
	id := func(slot state.Slot) string { return state.NewJobID(1_700_000_000_000, slot, 0, 0).String() }
	deleter.send(command("JOB", "DELETE", id(1), id(2), id(3)))
	d.until("it looks", func() bool { return len(e.waiting()) == 1 })
	for _, c := range others {
		c.expect("+PONG", "PING")
	}
	d.polled(2)
	e.waiting()[0] <- nil
	d.until("it deletes", func() bool { return len(e.waiting()) == 2 })
	e.waiting()[1] <- nil
	if got := deleter.reply(); got != "0" {
		t.Errorf("got %s", got)
	}
}

// crampedEngine has a log with room for some commands only, for as long as it is
// cramped.
type crampedEngine struct {
	*fakeEngine
	mu   sync.Mutex
	left int           // commands that there is room for
	room chan struct{} // closed when there is room; nil is roomy
}

// cramp leaves room for so many commands; open ends it.
func (e *crampedEngine) cramp(left int) (open func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.left, e.room = left, make(chan struct{})
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		close(e.room)
		e.room = nil
	}
}

func (e *crampedEngine) TrySubmit(cmds ...engine.Command) (lsn engine.LSN, decided int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	decided = len(cmds)
	if e.room != nil {
		decided = min(decided, e.left)
		e.left -= decided
	}
	return e.fakeEngine.Submit(cmds[:decided]...), decided
}

func (e *crampedEngine) Submit(cmds ...engine.Command) engine.LSN {
	e.mu.Lock()
	room := e.room
	e.mu.Unlock()
	if room != nil {
		<-room
	}
	return e.fakeEngine.Submit(cmds...)
}

// startCramped starts a server on a log that can be cramped, with clients that the
// poller has.
func startCramped(t *testing.T, clients int) (*daemon, *crampedEngine, []*peer) {
	t.Helper()
	if portable {
		t.Skip("there is no poller")
	}
	d := startLoading(t, resp.Options{})
	e := &crampedEngine{fakeEngine: newFakeEngine()}
	if err := d.s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	var all []*peer
	for range clients {
		c := d.dial()
		c.expect("+PONG", "PING")
		all = append(all, c)
	}
	d.polled(int64(clients))
	return d, e, all
}

// Where the engine would have the poller wait before it decides, those who asked
// for something wait by themselves, and the poller serves the others.
func TestPollerWaitsForNoRoom(t *testing.T) {
	const clients = 5
	d, e, all := startCramped(t, clients)
	open := e.cramp(0)
	for _, c := range all[:2] {
		c.send(command("PING") + command("ENQUEUE", "q", "x"))
	}
	d.polled(clients - 2)
	for _, c := range all[2:] {
		c.expect("+PONG", "PING")
	}
	d.polled(clients - 2)
	open()
	for _, c := range all[:2] {
		if got := c.reply(); got != "+PONG" {
			t.Errorf("got %s", got)
		}
		if got := c.reply(); !strings.HasPrefix(got, `["task_id"`) {
			t.Errorf("got %s", got)
		}
	}
	d.until("the poller has them again", func() bool {
		for _, c := range all {
			c.expect("+PONG", "PING")
		}
		return d.s.Numbers().Polled == clients
	})
}

// Where the engine decides some commands of a pipeline and would have the poller wait
// before the others, the replies of those come at once, and the others are done once,
// behind them.
func TestPollerHandsOverWhatIsUndecided(t *testing.T) {
	d, e, all := startCramped(t, 2)
	c := all[0]
	open := e.cramp(2)
	c.send(command("PING") + command("ENQUEUE", "q", "a") + command("PING") + command("ENQUEUE", "q", "b") +
		command("PING") + command("ENQUEUE", "q", "c") + command("FETCH", "q", "1000", "COUNT", "9", "WAIT", "1000"))
	expect := func(all ...string) {
		t.Helper()
		for _, want := range all {
			if got := c.reply(); !strings.HasPrefix(got, want) {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	}
	expect("+PONG", `["task_id"`, "+PONG", `["task_id"`)
	all[1].expect("+PONG", "PING")
	d.polled(1)
	if got := e.readyIn("q"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("before there is room: got %q", got)
	}
	open()
	expect("+PONG", `["task_id"`, `[["lease_id"`)
	if n := e.held(); n != 3 {
		t.Errorf("got %d jobs leased, want 3", n)
	}
	c.expect("+PONG", "PING")
}

// fickleEngine has something happen before a FETCH is decided, and makes who gives jobs
// back wait.
type fickleEngine struct {
	*fakeEngine
	before func() // once
	gate   chan struct{}
}

func (e *fickleEngine) TrySubmit(cmds ...engine.Command) (lsn engine.LSN, decided int) {
	if _, ok := cmds[0].(*engine.Fetch); ok {
		e.before()
	}
	return e.fakeEngine.TrySubmit(cmds...)
}

func (e *fickleEngine) Undeliver(jobs []engine.Delivery) engine.LSN {
	<-e.gate
	return e.fakeEngine.Undeliver(jobs)
}

// A client is gone before its job can be written to it. The job goes back, and where
// that has to wait for room in the log, the poller does not.
func TestPollerGivesBackWithoutWaiting(t *testing.T) {
	if portable {
		t.Skip("there is no poller")
	}
	d := startLoading(t, resp.Options{})
	e := &fickleEngine{fakeEngine: newFakeEngine(), gate: make(chan struct{})}
	if err := d.s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	gone, other := d.dial(), d.dial()
	e.before = func() {
		gone.nc.(*net.TCPConn).SetLinger(0)
		gone.nc.Close()
	}
	for _, c := range []*peer{gone, other} {
		c.expect("+PONG", "PING")
	}
	d.polled(2)
	other.do("ENQUEUE", "q", "x")
	gone.send(command("FETCH", "q", "60000"))
	d.until("it is gone", func() bool { return d.s.Numbers().Connected == 1 })
	for range 3 {
		other.expect("+PONG", "PING")
	}
	d.polled(1)
	if n := e.lost(); n != 0 {
		t.Errorf("%d jobs are back before there is room", n)
	}
	close(e.gate)
	d.until("the job is back", func() bool { return len(e.readyIn("q")) == 1 })
}

// readerEngine has a disk whose reads do not end before its gate opens.
type readerEngine struct {
	*fakeEngine
	tries   bool          // TryLoad reads from it too
	reading chan struct{} // receives from who reads
	gate    chan struct{}
	began   chan struct{} // receives from a commit, which then waits for goOn
	goOn    chan struct{}
}

// startReading starts a server on such a disk, with four clients for each poller, who
// are dealt out in turn: those of the first poller.
func startReading(t *testing.T, tries bool) (d *daemon, e *readerEngine, clients []*peer, open func()) {
	t.Helper()
	if portable {
		t.Skip("there is no poller")
	}
	d = startLoading(t, resp.Options{})
	e = &readerEngine{newFakeEngine(), tries, make(chan struct{}, 9), make(chan struct{}), make(chan struct{}, 9), make(chan struct{})}
	if err := d.s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	open = sync.OnceFunc(func() { close(e.gate) })
	t.Cleanup(open) // before the shutdown, which waits for all
	pollers := max(1, runtime.GOMAXPROCS(0)/2)
	for i := range 4 * pollers {
		c := d.dial()
		c.expect("+PONG", "PING")
		if i%pollers == 0 {
			clients = append(clients, c)
		}
	}
	d.polled(int64(4 * pollers))
	return d, e, clients, open
}

func (e *readerEngine) Load(d *engine.Delivery) error {
	e.reading <- struct{}{}
	<-e.gate
	return e.fakeEngine.Load(d)
}

func (e *readerEngine) TryLoad(d *engine.Delivery) bool {
	if e.tries {
		return e.Load(d) == nil
	}
	return e.fakeEngine.TryLoad(d)
}

func (e *readerEngine) TrySubmit(cmds ...engine.Command) (lsn engine.LSN, decided int) {
	if _, ok := cmds[0].(*engine.Stats); ok && e.tries {
		e.began <- struct{}{}
		<-e.goOn
	}
	return e.fakeEngine.TrySubmit(cmds...)
}

// What of a reply the poller cannot read without a wait is read by a goroutine, behind
// the replies that stand before it, and what stands behind it comes behind. The poller
// serves the others.
func TestPollerLeavesBodiesToRead(t *testing.T) {
	for name, err := range map[string]error{"rotten": engine.ErrDamaged, "of a moment": errFake} {
		t.Run(name, func(t *testing.T) {
			d, e, clients, open := startReading(t, false)
			c, other := clients[0], clients[1]
			for _, p := range []string{"a", "b", "c", "bad", "d", "e"} {
				other.do("ENQUEUE", "q", p)
			}
			e.loadErr["bad"] = err
			polled := d.s.Numbers().Polled
			fetch := func(count string) string { return command("FETCH", "q", "60000", "COUNT", count) }
			c.send(command("PING") + fetch("2") + command("ECHO", "1") + fetch("2") + command("ECHO", "2") + command("STATS", "q") + fetch("9"))
			expect := func(want ...string) {
				t.Helper()
				got := c.reply()
				for _, want := range want {
					if !strings.Contains(got, want) {
						t.Errorf("got %s, want %q", got, want)
					}
				}
			}
			expect("+PONG")
			expect(`"payload" "a"`, `"payload" "b"`)
			expect(`"1"`)
			<-e.reading
			for range 3 {
				other.expect("+PONG", "PING")
			}
			d.polled(polled - 1)
			open()
			expect(`[["lease_id"`, `"payload" "c"`)
			expect(`"2"`)
			expect("")
			expect(`"payload" "d"`, `"payload" "e"`)
			if n := e.held(); n != 6 {
				t.Errorf("%d jobs are leased, want all 6", n)
			}
			c.expect("+PONG", "PING")
		})
	}
}

// A disk may not answer where a body is read that seemed to be in memory. Who is in the
// same pass is answered all the same, and so is who comes.
func TestPollerThatReadsIsRelieved(t *testing.T) {
	_, e, clients, open := startReading(t, true)
	reader, same, holder, rest := clients[0], clients[1], clients[2], clients[3]
	rest.do("ENQUEUE", "q", "x")
	holder.send(command("STATS", "q"))
	<-e.began // the commands of the next pass come meanwhile
	reader.send(command("FETCH", "q", "60000"))
	same.send(command("ENQUEUE", "other", "y"))
	close(e.goOn)
	holder.reply()
	<-e.reading
	if got := same.reply(); !strings.HasPrefix(got, `["task_id"`) {
		t.Errorf("who is in the same pass: got %s", got)
	}
	for _, c := range []*peer{rest, same, holder} {
		c.expect("+PONG", "PING")
	}
	open()
	if got := reader.reply(); !strings.Contains(got, `"payload" "x"`) {
		t.Errorf("who reads: got %s", got)
	}
	reader.expect("+PONG", "PING")
}

// The janitor may look once more at a poller that has ended. Its last pass, in
// which it saw that it was to end, must not look like one that hangs: a stand-in
// would wait on a set that is gone.
func TestPollerThatHasEndedIsNotRelieved(t *testing.T) {
	if portable {
		t.Skip("there is no poller")
	}
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	c.expect("+PONG", "PING")
	d.polled(1)
	if err := d.s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := d.s.RelieveLater(); n != 0 {
		t.Errorf("%d pollers that have ended have a stand-in", n)
	}
}

// Connections are closed by others while the poller has them: by CLIENT KILL,
// and by their own end.
func TestPolledConnectionsEnd(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	admin, killed, finished, reset := d.dial(), d.dial(), d.dial(), d.dial()
	for _, c := range []*peer{admin, killed, finished, reset} {
		c.expect("+PONG", "PING")
	}
	admin.expect("1", "CLIENT", "KILL", "ADDR", killed.nc.LocalAddr().String())
	if got := killed.closed(); got != "" {
		t.Errorf("who was killed was told %q", got)
	}
	finished.send(command("PING") + command("ENQUEUE", "q", "x") + command("PING") + "*1\r\n$4\r\nPI")
	finished.closeWrite()
	if got := finished.closed(); !strings.HasPrefix(got, "+PONG\r\n*2\r\n") || !strings.HasSuffix(got, "+PONG\r\n-ERR malformed RESP value: missing bulk terminator\r\n") {
		t.Errorf("who finished was told %q", got)
	}
	reset.nc.(*net.TCPConn).SetLinger(0)
	reset.nc.Close()
	d.until("they are gone", func() bool { return d.s.Numbers().Connected == 1 })
}

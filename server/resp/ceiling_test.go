package resp

import (
	"net"
	"sync"
	"testing"
	"time"
)

// ceilingServer is one without listeners, of the given ceiling.
func ceilingServer(bytes int64) *Server {
	return New(Options{Limits: Limits{BufferBytes: bytes}})
}

// One part of the ceiling is kept for connections that hold little.
func TestCeilingKeepsRoomForLittle(t *testing.T) {
	s := ceilingServer(8 << 20)
	greedy, modest := &conn{srv: s}, &conn{srv: s}
	total := int64(0)
	for s.admit(greedy, 64<<10) {
		total += 64 << 10
	}
	if want := int64(7 << 20); total != want {
		t.Errorf("one connection could hold %d bytes, want %d", total, want)
	}
	if !s.admit(modest, littleBytes) {
		t.Error("there is no room for a short answer")
	}
	if s.admit(modest, 1) {
		t.Error("a connection that holds more than little has the room that is kept")
	}
}

// Who waits for room gets it in turn as soon as there is some; nobody who comes
// later is served before.
func TestCeilingServesInTurn(t *testing.T) {
	s := ceilingServer(8 << 20)
	holder, late := &conn{srv: s}, &conn{srv: s}
	if !s.admit(holder, 7<<20) {
		t.Fatal("no room at all")
	}
	const waiters = 5
	granted := make(chan int, waiters)
	var waiting sync.WaitGroup
	for i := range waiters {
		c := &conn{srv: s}
		waiting.Go(func() {
			if s.reserve(c, 1<<20) {
				granted <- i
			}
		})
		until(t, func() bool { return s.ceiling.waiting.Load() == int64(i+1) })
	}
	s.release(holder, 1<<20-1)
	if s.admit(late, 32<<10) {
		t.Error("who came last was admitted first")
	}
	s.release(holder, 1)
	for i := range waiters {
		if got := <-granted; got != i {
			t.Errorf("grant %d went to %d", i, got)
		}
		s.release(holder, 1<<20)
	}
	waiting.Wait()
	if used, held := s.ceiling.used.Load(), holder.held.Load(); used-held != waiters<<20 || s.ceiling.waiting.Load() != 0 {
		t.Errorf("%d bytes are used beside those of the holder, %d wait", used-held, s.ceiling.waiting.Load())
	}
}

// However many wait, a look at them closes no more than is needed for some.
func TestCeilingClosesTheLargest(t *testing.T) {
	s := ceilingServer(8 << 20)
	small, large := testConn(s), testConn(s)
	s.conns[small], s.conns[large] = struct{}{}, struct{}{}
	if !s.admit(small, 3<<20) || !s.admit(large, 4<<20) {
		t.Fatal("no room at all")
	}
	waiter := testConn(s)
	over := make(chan bool)
	go func() { over <- s.reserve(waiter, 1<<20) }()
	until(t, func() bool { return s.ceiling.waiting.Load() == 1 })
	s.makeRoom(time.Now())
	if large.condemned.Load() != nil {
		t.Error("closed before anybody had waited for long")
	}
	for range 3 {
		s.makeRoom(time.Now().Add(time.Second))
	}
	if large.condemned.Load() == nil || small.condemned.Load() != nil {
		t.Error("not the one that holds most was closed, and it alone")
	}
	s.release(large, 4<<20)
	if !<-over {
		t.Error("who waited was refused")
	}
}

// A connection that is to be closed gives up waiting: it must let go.
func TestCeilingLetsTheCondemnedGo(t *testing.T) {
	s := ceilingServer(8 << 20)
	holder, waiter := testConn(s), testConn(s)
	s.admit(holder, 7<<20)
	over := make(chan bool)
	go func() { over <- s.reserve(waiter, 1<<20) }()
	until(t, func() bool { return s.ceiling.waiting.Load() == 1 })
	waiter.condemn(closedKilled)
	if <-over {
		t.Error("it was granted room")
	}
	if s.ceiling.waiting.Load() != 0 || waiter.held.Load() != 0 {
		t.Error("it is still counted")
	}
	s.release(holder, 7<<20)
	if s.ceiling.used.Load() != 0 {
		t.Errorf("%d bytes are left", s.ceiling.used.Load())
	}
}

// testConn is a connection that nobody serves.
func testConn(s *Server) *conn {
	ours, theirs := net.Pipe()
	theirs.Close()
	return newConn(s, ours, 1)
}

func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not after 30 s")
		}
	}
}

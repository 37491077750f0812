package bench

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// A reply that never comes ends a run; one that comes late but in time does not.
func TestFlushBoundsTheReply(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() { // takes what is sent and says nothing
		buf := make([]byte, 64)
		for {
			if _, err := theirs.Read(buf); err != nil {
				return
			}
		}
	}()
	w := newWire(ours)
	began := time.Now()
	w.out = append(w.out, "PING\r\n"...)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if left := w.until.Sub(began); left < unanswered || left > 2*unanswered {
		t.Errorf("the reply may take %v, want %v", left, unanswered)
	}
	first := w.until
	if err := w.Flush(); err != nil || !w.until.Equal(first) {
		t.Errorf("the deadline was moved to %v by the next request (%v)", w.until, err)
	}
	// As if it had been sent so long ago.
	w.until = time.Now().Add(-time.Second)
	if err := w.SetReadDeadline(w.until); err != nil {
		t.Fatal(err)
	}
	if _, err := w.line(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want the end of the deadline", err)
	}
	if err := w.Flush(); err != nil || w.until.Before(began.Add(unanswered)) {
		t.Errorf("after a long silence the deadline is %v (%v)", w.until, err)
	}
}

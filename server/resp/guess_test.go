package resp

import (
	"fmt"
	"testing"
	"time"
)

// However many connections of an address guess, ten of their attempts are
// looked at in a second; a right password takes nobody's place, and other
// addresses are not slowed.
func TestGuessesOfManyConnections(t *testing.T) {
	s := New(Options{})
	f := &s.failures
	guesser, neighbour := &conn{srv: s, addr: "192.0.2.1:1000"}, &conn{srv: s, addr: "192.0.2.2:1000"}
	now := time.Now()
	for range failuresPerSec { // all at once: none is too many yet
		if ok, slot, _ := f.admit(f.host(guesser), now); !ok || slot {
			t.Fatalf("one of the first attempts: got %t, %t", ok, slot)
		}
		f.wrong(guesser, false)
	}
	const seconds = 5
	looked := 0
	for ms := range seconds * 1000 {
		at := now.Add(time.Duration(ms) * time.Millisecond)
		for i := range 20 { // of different connections
			c := &conn{srv: s, addr: fmt.Sprintf("192.0.2.1:%d", 2000+i)}
			ok, slot, pause := f.admit(f.host(c), at)
			if ok != (pause == 0) || slot != ok {
				t.Fatalf("got %t, %t, %v", ok, slot, pause)
			}
			if ok {
				looked++
			}
		}
	}
	if want := (seconds - 1) * failuresPerSec; looked < want || looked > want+failuresPerSec {
		t.Errorf("%d attempts were looked at in %d seconds, want about %d", looked, seconds, want)
	}
	at := now.Add(seconds * time.Second)
	for i := range 100 {
		ok, slot, _ := f.admit(f.host(guesser), at)
		if !ok {
			t.Fatalf("right password %d has to wait", i)
		}
		f.right(guesser, slot)
	}
	if ok, slot, _ := f.admit(f.host(neighbour), at); !ok || slot {
		t.Error("another address is slowed")
	}
	if ok, slot, _ := f.admit(f.host(guesser), at.Add(suspectFor+time.Second)); !ok || slot {
		t.Error("it is suspect for ever")
	}
}

// Clients with IPv6 have many addresses.
func TestGuessesOfOneNetwork(t *testing.T) {
	f := &failureLimiter{}
	a, b := &conn{addr: "[2001:db8:1:2::3]:1"}, &conn{addr: "[2001:db8:1:2:ffff::9]:2"}
	if f.host(a) != f.host(b) {
		t.Errorf("%s and %s are two", f.host(a), f.host(b))
	}
	if c := (&conn{addr: "[2001:db8:1:3::3]:1"}); f.host(a) == f.host(c) {
		t.Error("two networks are one")
	}
}

// The tables are bounded, whatever addresses come.
func TestGuessesOfManyAddresses(t *testing.T) {
	s := New(Options{})
	f := &s.failures
	for i := range 2 * maxFailureHosts {
		c := &conn{srv: s, addr: fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)}
		for range failuresPerSec {
			f.wrong(c, false)
		}
		if len(f.count) > maxFailureHosts+1 || len(f.suspects) > maxFailureHosts+1 {
			t.Fatalf("%d and %d hosts are counted", len(f.count), len(f.suspects))
		}
	}
}

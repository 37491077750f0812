package main

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A stop waits for what ends, and not longer than it may for what does not.
func TestStopThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		slow := func() error { time.Sleep(time.Second); return broken }
		if err := within(2*time.Second, slow); err != broken {
			t.Errorf("got %v, want what it ended with", err)
		}
		gate := make(chan struct{})
		defer close(gate)
		began := time.Now()
		err := within(2*time.Second, func() error { <-gate; return nil })
		if took := time.Since(began); err != errHung || took != 2*time.Second {
			t.Errorf("got %v after %v, want errHung after 2s", err, took)
		}
	})
	// With the unit's own limit the daemon must end before it is killed.
	if whole := edgeTime + cutTime + closeTime; whole >= 30*time.Second {
		t.Errorf("a stop may take %v; TimeoutStopSec is 30s", whole)
	}
}

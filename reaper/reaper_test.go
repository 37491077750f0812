package reaper_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pawl/reaper"
)

// alarm is a Timekeeper with a list of deadlines, as the engine would have.
type alarm struct {
	start time.Time
	due   []time.Duration // after start, ascending
	turns []time.Duration
	wake  chan struct{}
}

func (a *alarm) Turn() (time.Duration, bool) {
	now := time.Since(a.start)
	a.turns = append(a.turns, now)
	for len(a.due) > 0 && a.due[0] <= now {
		a.due = a.due[1:]
	}
	if len(a.due) == 0 {
		return 0, true
	}
	return a.due[0] - now, false
}

func (a *alarm) Wake() <-chan struct{} { return a.wake }

// Each deadline costs one turn at its very moment, and the time between none.
func TestSleepsUntilTheEarliestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &alarm{start: time.Now(), wake: make(chan struct{}, 1)}
		a.due = []time.Duration{7 * time.Millisecond, time.Second, 24 * time.Hour}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- reaper.New(a).Run(ctx) }()
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		want := []time.Duration{0, 7 * time.Millisecond, time.Second, 24 * time.Hour}
		if !slices.Equal(a.turns, want) {
			t.Errorf("turns at %v, want %v", a.turns, want)
		}

		// Nothing is due: only a wake brings the next turn, and it brings the
		// deadline it was for.
		a.turns = nil
		a.due = []time.Duration{48*time.Hour + 5*time.Second}
		a.wake <- struct{}{}
		time.Sleep(time.Minute)
		synctest.Wait()
		want = []time.Duration{48 * time.Hour, 48*time.Hour + 5*time.Second}
		if !slices.Equal(a.turns, want) {
			t.Errorf("after a wake turns at %v, want %v", a.turns, want)
		}

		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want %v", err, context.Canceled)
		}
	})
}

// A wake in the middle of a sleep replaces the deadline that was slept for.
func TestWakeShortensTheSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &alarm{start: time.Now(), wake: make(chan struct{}, 1)}
		a.due = []time.Duration{time.Hour}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- reaper.New(a).Run(ctx) }()
		synctest.Wait()
		time.Sleep(time.Minute)
		a.due = []time.Duration{2 * time.Minute, time.Hour}
		a.wake <- struct{}{}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want := []time.Duration{0, time.Minute, 2 * time.Minute, time.Hour}
		if !slices.Equal(a.turns, want) {
			t.Errorf("turns at %v, want %v", a.turns, want)
		}
		cancel()
		<-done
	})
}

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"pawl/engine"
)

// Times of a stop. Clients get edgeTime to take their replies, and what serves them
// cutTime to notice that they were cut off; the log gets closeTime, for a disk that
// is busy with other things is no reason to leave without the marker of a clean
// stop. All of it together is less than TimeoutStopSec of the unit.
const (
	edgeTime  = 8 * time.Second
	cutTime   = 1 * time.Second
	closeTime = 20 * time.Second
	// failTime is for the last replies after the storage has failed.
	failTime = 300 * time.Millisecond
)

// errHung is a stop that could not wait: somebody is inside a system call that
// does not end, as on a disk that is gone.
var errHung = errors.New("the disk does not answer")

// within returns f's error, or errHung if that takes longer than limit; f goes on
// then.
func within(limit time.Duration, f func() error) error {
	over := make(chan error, 1)
	go func() { over <- f() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-over:
		return err
	case <-timer.C:
		return errHung
	}
}

// close ends the engine after the edges are gone.
func (d *daemon) close(e *engine.Engine) error {
	d.notify.moreTime(closeTime)
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return e.Close(closing)
}

// errEdge is in the cause of a context that ended because an edge failed.
var errEdge = errors.New("cannot serve")

// stopCause is nil when somebody wanted the daemon to stop.
func stopCause(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errEdge) {
		return withExit(exitIO, cause)
	}
	return nil
}

func stopReason(ctx context.Context) string {
	if err := stopCause(ctx); err != nil {
		return err.Error()
	}
	return "signal"
}

// stopEdges answers what was received and closes all connections, within limit.
func (d *daemon) stopEdges(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	d.admin.Shutdown()
	d.public.Shutdown()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.resp.Shutdown(ctx); err != nil {
			d.log.Warn("connections of Redis clients were cut off", "error", err)
		}
	})
	type httpServer interface {
		Shutdown(ctx context.Context) error
		Close() error
	}
	for name, s := range map[string]httpServer{"lmstfy clients": d.publicHTTP, "operators": d.adminHTTP} {
		wg.Go(func() {
			if err := s.Shutdown(ctx); err != nil {
				d.log.Warn("connections were cut off", "of", name, "error", err)
				s.Close()
			}
		})
	}
	wg.Wait()
}

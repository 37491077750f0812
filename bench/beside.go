package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// rest returns o.Rest after no snapshot is being written any more. One mostly is
// when a daemon was filled, and takes memory and time that the jobs do not.
func (o *FootprintOptions) rest(ctx context.Context, s *Server) error {
	for running := int64(1); running > 0; {
		var err error
		if running, err = scrapeSum(ctx, s.adminAddr, "pawl_snapshot_running"); err != nil {
			return err
		}
		if running > 0 {
			sleep(ctx, nil, 100*time.Millisecond)
		}
	}
	sleep(ctx, nil, o.Rest)
	return ctx.Err()
}

// besideSnapshots has cycles done while one snapshot is written behind the other,
// at least one whole, and returns how many a second there were in each run, and the
// most memory that the daemon had meanwhile. No snapshot is under way afterwards.
func (o *FootprintOptions) besideSnapshots(ctx context.Context, s *Server) (cycles Spread, most int64, err error) {
	watchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan error, 1)
	go func() {
		var err error
		most, err = s.mostMemory(watchCtx)
		watched <- err
	}()
	var written, over atomic.Bool
	asked := make(chan error, 1)
	go func() {
		var err error
		for err == nil && !over.Load() {
			err = doOne(ctx, s.Target.(Pawl).Addr, "SNAPSHOT")
			written.Store(true)
		}
		asked <- err
	}()
	var runs []Result
	for err == nil && (len(runs) < footprintRuns || !written.Load()) {
		var r Result
		if r, err = Run(ctx, o.cycle(s)); err == nil {
			runs = append(runs, r)
		}
	}
	over.Store(true)
	err = errors.Join(err, <-asked)
	cancel()
	if err = errors.Join(err, <-watched); err != nil {
		return Spread{}, 0, err
	}
	return Rates(runs), most, nil
}

// mostMemory is the most that the server had until ctx ended.
func (s *Server) mostMemory(ctx context.Context) (most int64, err error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		rss, err := s.rss()
		if err != nil {
			return most, err
		}
		most = max(most, rss)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return most, nil
		}
	}
}

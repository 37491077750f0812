package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pawl/acl"
	"pawl/config"
	"pawl/engine"
	"pawl/reaper"
	"pawl/recovery"
	"pawl/server/admin"
	"pawl/server/lmstfy"
	"pawl/server/resp"
	"pawl/wal"
)

// A daemon is everything that pawl serve runs: listeners and edges first, so
// that clients hear LOADING instead of nothing, then recovery, then the engine.
type daemon struct {
	config *config.Config // of the start
	env    *env
	fixed  map[string]string // accounts of the lmstfy file

	setMu sync.Mutex
	set   *config.Set    // guarded by setMu: what holds now
	eng   *engine.Engine // guarded by setMu; nil while it recovers

	log    *slog.Logger
	level  *slog.LevelVar
	notify notifier
	secure *tlsFiles

	resp       *resp.Server
	public     *lmstfy.Server
	publicHTTP *lmstfy.Front
	admin      *admin.Server
	adminHTTP  *admin.Front
	doors      listeners

	done, total atomic.Int64 // bytes of the start's replay
	scrubber    atomic.Pointer[recovery.Scrubber]
}

// newDaemon makes the edges and opens the listeners. Nobody is served yet.
func newDaemon(set *config.Set, c *config.Config, file *lmstfy.Config, log *slog.Logger, level *slog.LevelVar, e *env) (*daemon, error) {
	d := &daemon{set: set, config: c, env: e, log: log, level: level, notify: newNotifier()}
	var err error
	if d.secure, err = newTLSFiles(c, log); err != nil {
		return nil, withExit(exitConfig, err)
	}
	users, err := parseUsers(c.Users)
	if err != nil {
		return nil, withExit(exitConfig, err)
	}
	d.resp = resp.New(d.respOptions(users))
	lmstfyOptions := lmstfy.Options{MaxPayload: int(c.MaxPayload), MaxClients: httpClients(c), MaxBuffers: int64(c.MaxHTTPBuffers), MaxQueueSeries: c.MetricsQueues, Version: versionString(), AccessLog: e.stdout, Log: log,
		TokenDeleted: d.resp.TokenDeleted}
	if file != nil {
		file.Apply(&lmstfyOptions)
	}
	d.fixed = lmstfyOptions.Accounts
	lmstfyOptions.Accounts = d.accounts(c)
	if d.public, err = lmstfy.New(lmstfyOptions); err != nil {
		return nil, withExit(exitConfig, err)
	}
	d.admin, err = admin.New(admin.Options{
		Lmstfy:         d.public,
		Hosts:          c.AdminHostNames,
		Pprof:          c.Pprof,
		Resp:           d.resp,
		Loading:        d.replayed,
		Collectors:     d.scrubMetrics(),
		MaxQueueSeries: c.MetricsQueues,
		Version:        versionString(),
		Log:            log,
	})
	if err != nil {
		return nil, withExit(exitConfig, err)
	}
	if d.doors, err = listen(c, d.secure); err != nil {
		return nil, listenExit(c, err)
	}
	d.publicHTTP, d.adminHTTP = d.public.HTTP(), d.admin.HTTP()
	return d, nil
}

// respLoop is what --loop says.
func respLoop(name string) resp.Loop {
	if name == "poll" || name == "auto" && runtime.GOOS == "linux" {
		return resp.LoopPoll
	}
	return resp.LoopPortable
}

func (d *daemon) respOptions(users []acl.User) resp.Options {
	c := d.config
	return resp.Options{
		Version:   versionString(),
		Users:     users,
		Password:  c.Password,
		Limits:    respLimits(c),
		Loop:      respLoop(c.Loop),
		BackupDir: c.BackupDir,
		SyncMode:  c.Sync.String(),
		Ephemeral: c.Ephemeral,
		Settings:  d.settings(),
		Progress:  d.replayed,
		Log:       d.log,
	}
}

// replayed says how far the start is, in bytes.
func (d *daemon) replayed() (done, total int64) { return d.done.Load(), d.total.Load() }

func parseUsers(lines map[string]string) (users []acl.User, err error) {
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		u, err := acl.Parse(name, strings.Fields(lines[name])...)
		if err != nil {
			return nil, fmt.Errorf("users.%s: %w", name, err)
		}
		users = append(users, u)
	}
	return users, nil
}

// sweepEvery is how often what a killed tool left is looked for: it takes space, and
// looking is one system call.
const sweepEvery = 10 * time.Minute

// run serves until ctx ends (nil), an edge fails, or the storage fails (exit
// 74). What comes over hup has it reload, from when it has recovered.
func (d *daemon) run(ctx context.Context, hup <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tuning, stopTuning := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTuning()
	started := make(chan struct{})
	go tuneGC(tuning, started)
	edges := d.serveEdges(cancel)
	defer d.doors.close()

	e, err := d.openUntil(ctx)
	if errors.Is(err, errHung) {
		return withExit(exitIO, fmt.Errorf("recover: %w", err))
	}
	if err != nil {
		d.stopEdges(time.Second)
		edges.Wait()
		if ctx.Err() != nil {
			return stopCause(ctx)
		}
		return err
	}
	close(started)
	reaping, stopReaper := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReaper()
	var beside sync.WaitGroup
	beside.Go(func() { reaper.New(e).Run(reaping) })
	beside.Go(func() { d.watch(reaping, e) })
	beside.Go(func() { d.admin.Run(reaping) })
	beside.Go(func() { d.reloads(reaping, hup) })
	if s := d.scrubber.Load(); s != nil {
		beside.Go(func() { s.Run(reaping) })
		beside.Go(func() {
			recovery.Sweep(reaping, recovery.SweepOptions{FS: d.env.store, Dir: s.Dir, Backups: d.config.BackupDir, Every: sweepEvery, Log: d.log})
		})
	}

	select {
	case <-ctx.Done():
	case <-e.Failed():
		// The engine has said why. What waits is told UNKNOWN, what comes now is
		// told MISCONF, then we go: only recovery can say what is on disk.
		within(failTime+cutTime, func() error { d.stopEdges(failTime); return nil })
		return &exitError{code: exitIO}
	}
	d.log.Info("stopping", "reason", stopReason(ctx))
	d.notify.stopping()
	err = within(edgeTime+cutTime, func() error {
		d.stopEdges(edgeTime)
		edges.Wait()
		stopReaper()
		beside.Wait()
		return nil
	})
	if err != nil {
		// Whoever is inside a system call that does not end cannot be asked to leave.
		// The log has its own time: the disk may come back.
		d.log.Warn("not everybody has left", "error", err)
		stopReaper()
	}
	if err := d.close(e); err != nil {
		return withExit(exitIO, fmt.Errorf("close the log: %w", err))
	}
	return stopCause(ctx)
}

// openUntil is open, but gives up some time after ctx has ended: reading may hang.
func (d *daemon) openUntil(ctx context.Context) (*engine.Engine, error) {
	type result struct {
		e   *engine.Engine
		err error
	}
	opened := make(chan result, 1)
	go func() {
		e, err := d.open(ctx)
		opened <- result{e, err}
	}()
	select {
	case r := <-opened:
		return r.e, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case r := <-opened:
		return r.e, r.err
	case <-timer.C:
		return nil, errHung
	}
}

// serveEdges serves on all doors; the first that fails ends the daemon.
func (d *daemon) serveEdges(cancel context.CancelCauseFunc) *sync.WaitGroup {
	var wg sync.WaitGroup
	serve := func(name string, l net.Listener, f func(net.Listener) error) {
		if l == nil {
			return
		}
		d.log.Info("listening", "for", name, "addr", l.Addr().String())
		wg.Go(func() {
			if err := f(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
				cancel(fmt.Errorf("%w %s on %s: %w", errEdge, name, l.Addr(), err))
			}
		})
	}
	for _, l := range d.doors.resp {
		serve("redis clients", l, func(l net.Listener) error { return d.resp.Serve(context.Background(), l) })
	}
	serve("lmstfy clients", d.doors.http, d.publicHTTP.Serve)
	serve("operators", d.doors.adm, d.adminHTTP.Serve)
	return &wg
}

// open recovers the store and starts the engine on it.
func (d *daemon) open(ctx context.Context) (*engine.Engine, error) {
	began := time.Now()
	c := d.config
	verify := int64(c.VerifyBodies)
	if verify == 0 {
		verify = -1 // 0 is recovery's default there, none here
	}
	store, err := recovery.Open(ctx, recovery.Options{
		FS: d.env.store, Dir: c.Dir, Existing: c.Existing, VerifyBodies: verify, Progress: d.progress, Log: d.log,
	})
	if err != nil {
		return nil, withExit(recovery.ExitCode(err), fmt.Errorf("open %s: %w", c.Dir, err))
	}
	log, err := wal.Begin(d.walOptions(store.LogDir()), store.End)
	if err != nil {
		store.Close()
		return nil, withExit(recovery.ExitCode(err), fmt.Errorf("begin the log in %s: %w", c.Dir, err))
	}
	e, err := engine.New(engine.Options{
		MaxPayload:       int(c.MaxPayload),
		MaxWaiters:       c.MaxWaiters,
		MaxMemory:        int64(c.MaxMemory),
		MaxDisk:          int64(c.MaxDisk),
		SnapshotBytes:    int64(c.SnapshotBytes),
		SnapshotRate:     int64(c.SnapshotRate),
		SnapshotInterval: c.SnapshotInterval,
		Keep:             c.Keep, // before limitEngine, a generation could go
		MeasureCPU:       c.Pprof,
		Logger:           d.log,
	}, engine.Start{
		State: store.State, Log: log, End: store.End,
		FS: d.env.store, Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
		Store: store.Identity.ID, History: store.Identity.History,
		Files: []string{"STORE"}, Recovered: store.Report.Took, Release: store,
	})
	if err != nil {
		err = withExit(recovery.ExitCode(err), fmt.Errorf("start the engine: %w", err))
		return nil, errors.Join(err, log.Close(), store.Close())
	}
	if err := d.public.SetEngine(e); err != nil {
		return nil, withExit(exitIO, err)
	}
	d.admin.SetEngine(e)
	if !c.Ephemeral {
		d.scrubber.Store(&recovery.Scrubber{FS: d.env.store, Dir: store.Dir, Identity: store.Identity, Found: d.rot})
	}
	if err := d.limitEngine(e); err != nil {
		return nil, withExit(exitConfig, err)
	}
	if err := d.resp.SetEngine(e); err != nil {
		return nil, withExit(exitIO, err)
	}
	d.log.Info("serving", "took", time.Since(began).Round(time.Millisecond))
	d.notify.ready()
	return e, nil
}

func (d *daemon) walOptions(dir string) wal.Options {
	c := d.config
	o := wal.Options{FS: d.env.store, Dir: dir, GenerationBytes: int(c.GenerationSize), Notify: d.logRoom}
	switch {
	case c.Sync < 0:
		o.Sync = wal.SyncNever
	case c.Sync > 0:
		o.Sync, o.Interval = wal.SyncInterval, time.Duration(c.Sync)
	}
	return o
}

// logRoom is told when the next part of the log cannot be prepared, and when it
// can again.
func (d *daemon) logRoom(err error) {
	if err != nil {
		d.log.Error("cannot prepare the next part of the log; new jobs will be refused when the present one is full", "error", err)
		return
	}
	d.log.Info("the log has room again")
}

// rot is told what the scrubber has found in a closed file.
func (d *daemon) rot(err error) {
	d.log.Error("a file of the store is damaged on disk; nothing is lost yet that memory or another file has: see pawl check --live", "error", err)
}

// scrubMetrics are the scrubber's counters; zeros while it rests.
func (d *daemon) scrubMetrics() []prometheus.Collector {
	counter := func(name, help string, get func(recovery.ScrubNumbers) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "pawl_scrub_" + name, Help: help}, func() float64 {
			if s := d.scrubber.Load(); s != nil {
				return float64(get(s.Numbers()))
			}
			return 0
		})
	}
	return []prometheus.Collector{
		counter("rounds_total", "Times that every closed file was re-read.", func(n recovery.ScrubNumbers) uint64 { return n.Rounds }),
		counter("read_bytes_total", "Bytes re-read.", func(n recovery.ScrubNumbers) uint64 { return n.Bytes }),
		counter("damaged_total", "Files found damaged.", func(n recovery.ScrubNumbers) uint64 { return n.Damaged }),
	}
}

// progress is told once a second how far a start is.
func (d *daemon) progress(p recovery.Progress) {
	d.done.Store(p.Done)
	d.total.Store(p.Total)
	d.notify.moreTime(time.Minute)
	d.notify.status(fmt.Sprintf("recovering: %s, %d of %d bytes", p.Phase, p.Done, p.Total))
	d.log.Info("recovering", "phase", p.Phase, "bytes", p.Done, "of", p.Total, "records", p.Records)
}

// watch tells the service manager's watchdog that the engine decides. It does
// not ask for the disk: a restart would not make it faster.
func (d *daemon) watch(ctx context.Context, e *engine.Engine) {
	every := d.notify.watchdog()
	if every == 0 {
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		e.Submit(&engine.MetaGet{Key: "watchdog"}) // goes through the critical section
		d.notify.alive()
	}
}

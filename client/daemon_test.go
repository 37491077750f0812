package client_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"pawl/client"
	"pawl/engine"
	"pawl/reaper"
	"pawl/recovery"
	"pawl/server/resp"
	"pawl/wal"
)

// daemon is a real one in this process, without its command line, on a Unix
// socket.
type daemon struct {
	dir  string
	sock string
	stop func()
}

// testReporter is what a daemon needs of a test or an example.
type testReporter interface {
	Fatal(args ...any)
	TempDir() string
}

func startDaemon(t *testing.T) *daemon {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{dir: filepath.Join(dir, "data"), sock: filepath.Join(dir, "s")}
	d.start(t, resp.Options{})
	t.Cleanup(func() { d.stop() })
	return d
}

// start starts it, again after stop.
func (d *daemon) start(t testReporter, o resp.Options) {
	store, err := recovery.Open(context.Background(), recovery.Options{Dir: d.dir})
	if err != nil {
		t.Fatal(err)
	}
	log, err := wal.Begin(wal.Options{Dir: store.LogDir(), Sync: wal.SyncNever}, store.End)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{}, engine.Start{
		State: store.State, Log: log, End: store.End, Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
		Store: store.Identity.ID, History: store.Identity.History, Release: store,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", d.sock)
	if err != nil {
		t.Fatal(err)
	}
	server := resp.New(o)
	server.SetEngine(e)
	ctx, cancel := context.WithCancel(context.Background())
	served, reaped := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	go func() { reaped <- reaper.New(e).Run(ctx) }()
	stopped := false
	d.stop = func() {
		if stopped {
			return
		}
		stopped = true
		limit, done := context.WithTimeout(context.Background(), 30*time.Second)
		defer done()
		server.Shutdown(limit) // an error says that a slow client was cut off
		<-served
		cancel()
		<-reaped
		if err := e.Close(limit); err != nil {
			t.Fatal(err)
		}
	}
}

func (d *daemon) client(t *testing.T) *client.Client {
	c := client.New(client.Options{Addr: d.sock})
	t.Cleanup(func() { c.Close() })
	return c
}

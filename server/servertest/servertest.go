// Package servertest opens a real engine for the tests of the protocol edges, and
// joins clients to servers without a network, so that tests run in a
// testing/synctest bubble, where time is exact.
package servertest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"pawl/engine"
	"pawl/internal/vfs"
	"pawl/reaper"
	"pawl/recovery"
	"pawl/wal"
)

// Open opens an engine on a directory, which may hold one from before, with a
// reaper, and closes it at the end of the test unless that was done.
func Open(t testing.TB, dir string, opt engine.Options) *engine.Engine {
	t.Helper()
	fs := vfs.OS{}
	store, err := recovery.Open(context.Background(), recovery.Options{FS: fs, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	log, err := wal.Begin(wal.Options{FS: fs, Dir: store.LogDir(), GenerationBytes: 256 << 10}, store.End)
	if err != nil {
		store.Close()
		t.Fatal(err)
	}
	e, err := engine.New(opt, engine.Start{
		State: store.State, Log: log, End: store.End,
		FS: fs, Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
		Store: store.Identity.ID, History: store.Identity.History,
		Recovered: store.Report.Took, Release: store,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		reaper.New(e).Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		Close(t, e)
	})
	return e
}

// Close closes an engine. One that is closed stays so.
func Close(t testing.TB, e *engine.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil && e.Failure() == nil {
		t.Errorf("close the engine: %v", err)
	}
}

// Listener hands the server end of a pipe to Accept for every Dial.
type Listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Listen makes a listener that nobody but Dial reaches.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Dial connects to it.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// HTTPServer is http.Server, or what stands in for it.
type HTTPServer interface {
	Serve(l net.Listener) error
	Close() error
}

// Serve runs srv on a pipe and gives a client for it, whatever host its URLs
// name. Both end with the test.
func Serve(t testing.TB, srv HTTPServer) *http.Client {
	t.Helper()
	l := Listen()
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) },
		DisableCompression: true,
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		<-done
	})
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

package engine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"pawl/engine"
	"pawl/reaper"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
)

// Open an engine on a directory and use it in process, without a socket.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tmp, err := os.MkdirTemp("", "pawl-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)

	// A start recovers what the directory holds; a new one holds nothing yet.
	store, err := recovery.Open(ctx, recovery.Options{Dir: filepath.Join(tmp, "data")})
	if err != nil {
		log.Fatal(err)
	}
	groups, err := wal.Begin(wal.Options{Dir: store.LogDir()}, store.End)
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.New(engine.Options{}, engine.Start{
		State: store.State, Log: groups, End: store.End,
		Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
		Store: store.Identity.ID, History: store.Identity.History, Release: store,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(ctx)
	go reaper.New(e).Run(ctx) // ends leases, delays and times to live

	queue := state.AppendQueueKey(nil, state.DefaultPool, []byte("mail"))

	// Enqueue. When Do has returned nil the job is on disk.
	in := &engine.Enqueue{Queue: queue, Payload: []byte("hello"), TTL: engine.Some(state.Millis(60_000))}
	if err := e.Do(in); err != nil {
		log.Fatal(err)
	}
	if err := in.Err(); err != nil {
		log.Fatal(err)
	}

	// Fetch: the job is ours for ten seconds.
	out := &engine.Fetch{Queues: [][]byte{queue}, LeaseMs: 10_000}
	if err := e.Do(out); err != nil {
		log.Fatal(err)
	}
	job := &out.Jobs[0]
	if err := e.Load(job); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, attempt %d, same job: %v\n", job.Payload, job.Attempt, job.ID == in.ID)

	// Acknowledge: it never comes again.
	done := &engine.Ack{Leases: []state.LeaseID{job.Lease}}
	if err := e.Do(done); err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Err())
	// Output:
	// hello, attempt 1, same job: true
	// <nil>
}

package resp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pawl/engine"
	"pawl/recovery"
	"pawl/server/resp"
	"pawl/server/servertest"
	"pawl/wal"
	"pawl/wal/waltest"
)

// A look at a job, or at a token, that is refused, because the disk hangs and too many
// commands wait for it already, is no look at one that is not there.
func TestRefusedLook(t *testing.T) {
	if portable {
		t.Skip("this is about the portable loop, in a bubble")
	}
	const busy = "-ERR too many commands are waiting"
	synctest.Test(t, func(t *testing.T) {
		disk := &waltest.Hanging{FS: waltest.NewDisk()}
		store, err := recovery.Open(t.Context(), recovery.Options{FS: disk, Dir: "data"})
		if err != nil {
			t.Fatal(err)
		}
		log, err := wal.Begin(wal.Options{FS: disk, Dir: store.LogDir(), GenerationBytes: 64 << 10, IdleAfter: 1000 * time.Hour}, store.End)
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(engine.Options{MaxPending: 1}, engine.Start{
			State: store.State, Log: log, End: store.End,
			FS: disk, Dir: store.Dir, LogDir: store.LogDir(), SnapshotDir: store.SnapshotDir(),
			Store: store.Identity.ID, History: store.Identity.History, Release: store,
		})
		if err != nil {
			t.Fatal(err)
		}
		door := servertest.Listen()
		s := resp.New(resp.Options{Loop: resp.LoopPortable})
		served := make(chan error, 1)
		go func() { served <- s.Serve(context.Background(), door) }()
		if err := s.SetEngine(e); err != nil {
			t.Fatal(err)
		}
		dial := func() *peer {
			nc, err := door.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return newPeer(t, nc)
		}
		c, leads, waits := dial(), dial(), dial()
		id := strings.Split(c.do("ENQUEUE", "q", "x"), `"`)[3]

		token := &engine.MetaSet{Key: "token/default/ns/secret", Value: []byte("x")}
		if err := e.Do(token); err != nil || token.Err() != nil {
			t.Fatal(err, token.Err())
		}

		release := disk.Hang("datasync")
		for _, c := range []*peer{leads, waits} {
			c.send(command("ENQUEUE", "q", "y"))
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		for _, words := range [][]string{
			{"JOB", "DELETE", id}, {"JOB", "GET", id}, {"JOB", "RUN", id}, {"JOB", "DELAY", id, "1000"}, {"JOB", "PRIORITY", id, "1"},
			{"JOB", "PAYLOAD", id, "z"}, {"JOB", "MOVE", id, "p"}, {"AUTH", "ns", "secret"},
		} {
			c.expect(busy, words...)
		}
		c.expect("+OK", "MULTI")
		c.expect(busy, "JOB", "DELETE", id)
		c.expect("-EXECABORT Transaction discarded because of previous errors.", "EXEC")

		release()
		for _, c := range []*peer{leads, waits} {
			if got := c.reply(); !strings.HasPrefix(got, `["task_id"`) {
				t.Errorf("got %s", got)
			}
		}
		c.expect("1", "JOB", "DELETE", id)
		c.expect("0", "JOB", "DELETE", id)
		c.expect("+OK", "AUTH", "ns", "secret")
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

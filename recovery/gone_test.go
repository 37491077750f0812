package recovery_test

import (
	"bytes"
	"strings"
	"testing"

	"pawl/recovery"
	"pawl/snapshot"
	"pawl/state"
)

// A backlog is gone when a snapshot is written, which is small then. A kill later, the
// state of snapshot and log is that of the log alone, to the byte: those who come next
// have the slots that they would have had.
func TestBacklogGoneBeforeSnapshot(t *testing.T) {
	disk, p := cleanStore(t, 110, 0, 0)
	w, err := openWorld(disk, "/store", 111, p)
	must(t, err)
	const jobs = 400
	must(t, w.comeAndGo(jobs))
	for range 3 {
		_, err := w.enqueue("default/default/q1", 20)
		must(t, err)
	}
	must(t, w.snapshot())
	files, err := snapshot.List(disk, w.store.SnapshotDir())
	must(t, err)
	if files[0].Size > jobs*64/4 {
		t.Errorf("got a snapshot of %d bytes for %d jobs that are gone", files[0].Size, jobs)
	}
	for range 150 {
		_, err := w.enqueue("default/default/q2", 20)
		must(t, err)
	}
	killed := disk.Kill()
	want := encoded(t, w.st)
	must(t, w.close())
	for _, with := range []bool{true, false} {
		d := killed.Kill()
		for _, name := range d.Files() {
			if !with && strings.Contains(name, "/snapshots/") {
				must(t, d.Remove(name))
			}
		}
		store, err := recovery.Open(t0, options(d, "/store"))
		must(t, err)
		if used := store.Report.SnapshotLSN == files[0].LSN; used != with {
			t.Errorf("with the snapshot %v: it was of group %d", with, store.Report.SnapshotLSN)
		}
		must(t, p.holds(store.State, store.End))
		if got := encoded(t, store.State); !bytes.Equal(got, want) {
			t.Errorf("with the snapshot %v: it is another state", with)
		}
		must(t, store.Close())
	}
}

func encoded(t testing.TB, st *state.State) []byte {
	t.Helper()
	view := st.View()
	defer st.Release(view)
	var b bytes.Buffer
	_, err := view.WriteTo(&b)
	must(t, err)
	return b.Bytes()
}

package recovery_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/recovery"
	"pawl/wal"
	"pawl/wal/waltest"
)

// What is damaged behind a moment does not keep the moment from being restored:
// not the content of the group right behind it, whose header says when it was
// written, and not the first entries of the next generation where a later group
// was read before them. Where it cannot be told whether the damage came after
// the moment, the restore is refused and names the group that can be had.
func TestRestoreBeforeDamage(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 360, p)
	must(t, err)
	for range 60 {
		_, err := w.enqueue("default/default/q", 400)
		must(t, err)
		w.wall += 10 // so that no two groups have the same time
	}
	must(t, w.close())
	places := map[wal.LSN]wal.Stored{}
	history, err := wal.Find(disk, "/store/log", wal.FindOptions{})
	must(t, err)
	for _, info := range history.Linked {
		r, err := history.Generation(info.Generation)
		must(t, err)
		for r.Next() {
			places[r.Group().LSN] = *r.Group()
		}
	}
	flipAt := func(lsn wal.LSN, byteOf int64) *waltest.Disk {
		bad := disk.Kill()
		bad.Flip(wal.SegmentPath("/store/log", places[lsn].Generation), (places[lsn].Offset+byteOf)*8)
		return bad
	}
	restore := func(d *waltest.Disk, opt recovery.RestoreOptions) error {
		opt.FS, opt.Dir, opt.To = d, "/store", "/restored"
		_, err := recovery.Restore(t0, opt)
		return err
	}
	const content, header = 4 + 88 + 20, 4 + 40 // bytes of an entry
	for lsn := wal.LSN(2); uint64(lsn) < p.acked; lsn += 3 {
		moment := recovery.RestoreOptions{At: time.UnixMilli(p.walls[uint64(lsn)])}
		bad := flipAt(lsn+1, content)
		if err := restore(bad, moment); err != nil {
			t.Fatalf("group %d, the content of the next one is damaged: %v", lsn, err)
		}
		if got := dump(stateOf(t, bad, "/restored")); got != p.dumps[uint64(lsn)] {
			t.Fatalf("group %d: got\n%s", lsn, got)
		}
		// Damage before the moment is damage.
		if err := restore(flipAt(lsn, content), moment); recovery.ExitCode(err) != recovery.ExitDamaged {
			t.Fatalf("group %d is damaged itself: got %v", lsn, err)
		}
		// Where the header does not say when, nobody knows.
		bad = flipAt(lsn+1, header)
		err := restore(bad, moment)
		if recovery.ExitCode(err) != recovery.ExitDamaged || !strings.Contains(err.Error(), fmt.Sprintf("--lsn %d", lsn)) {
			t.Fatalf("group %d, the header of the next one is damaged: got %v", lsn, err)
		}
		must(t, restore(bad, recovery.RestoreOptions{LSN: lsn}))
		if got := dump(stateOf(t, bad, "/restored")); got != p.dumps[uint64(lsn)] {
			t.Fatalf("group %d by its number: got\n%s", lsn, got)
		}
	}
	// First entries of later generations.
	for i, info := range history.Linked[1:] {
		if history.Linked[i].LastLSN < 2 {
			continue
		}
		for _, at := range []int64{20, 120, 150} { // of the birth, of the link
			bad := disk.Kill()
			bad.Flip(wal.SegmentPath("/store/log", info.Generation), at*8)
			last := history.Linked[i].LastLSN
			early := last - 1
			must(t, restore(bad, recovery.RestoreOptions{At: time.UnixMilli(p.walls[uint64(early)])}))
			if got := dump(stateOf(t, bad, "/restored")); got != p.dumps[uint64(early)] {
				t.Fatalf("generation %d, byte %d: got\n%s", info.Generation, at, got)
			}
			bad = bad.Kill()
			must(t, bad.Rename("/restored", "/restored1"))
			if err := restore(bad, recovery.RestoreOptions{At: time.UnixMilli(p.walls[uint64(last)])}); recovery.ExitCode(err) != recovery.ExitDamaged {
				t.Fatalf("generation %d, byte %d, the last group before it: got %v", info.Generation, at, err)
			}
			must(t, restore(bad, recovery.RestoreOptions{LSN: last}))
			if got := dump(stateOf(t, bad, "/restored")); got != p.dumps[uint64(last)] {
				t.Fatalf("generation %d, byte %d, by number: got\n%s", info.Generation, at, got)
			}
		}
	}
}

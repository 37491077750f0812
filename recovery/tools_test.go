package recovery_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/state"
	"pawl/wal"
	"pawl/wal/waltest"
)

// A store that is being written is checked by its links, and nothing of them
// stays.
func TestCheckLive(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	p := newPast()
	w, err := openWorld(vfs.OS{}, dir, 500, p)
	must(t, err)
	for range 3 {
		must(t, w.work(25))
		before := contents(t, dir)
		health, err := recovery.Check(t.Context(), recovery.CheckOptions{Dir: dir, Live: true})
		must(t, err)
		if len(health.Problems) > 0 || uint64(health.End.LSN) != p.acked || dump(health.State) != p.dumps[p.acked] {
			t.Fatalf("got group %d, %v; want group %d", health.End.LSN, health.Problems, p.acked)
		}
		if !contents(t, dir).equal(before) || len(list(t, parent)) != 1 {
			t.Fatalf("check left something: %v", list(t, parent))
		}
	}
	must(t, w.close())
}

// Whatever a daemon does between any two operations of a tool that looks at its
// directory, the tool sees the store as it was at one moment: no damage, and all
// that was acknowledged before.
func TestLiveToolsWhileWriting(t *testing.T) {
	looked, seeds := 0, uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for _, tt := range []struct {
		name string
		run  func(fs vfs.FS, p *past, acked uint64) error
	}{
		{"check", func(fs vfs.FS, p *past, acked uint64) error {
			h, err := recovery.Check(t0, recovery.CheckOptions{FS: fs, Dir: "/store", Live: true})
			if err != nil {
				return err
			}
			if err := errors.Join(append(h.Problems, h.Notes...)...); err != nil {
				return err
			}
			if lsn := uint64(h.End.LSN); lsn < acked || dump(h.State) != p.dumps[lsn] {
				return fmt.Errorf("the state of group %d, of %d acknowledged, is not what it was", lsn, acked)
			}
			return nil
		}},
		{"dump", func(fs vfs.FS, p *past, acked uint64) error {
			var out bytes.Buffer
			if err := recovery.Dump(t0, &out, recovery.DumpOptions{FS: fs, Dir: "/store", Live: true}); err != nil {
				return err
			}
			if !strings.Contains(out.String(), fmt.Sprintf("\n%d.0 ", acked)) {
				return fmt.Errorf("no group %d", acked)
			}
			return nil
		}},
		{"restore", func(fs vfs.FS, p *past, acked uint64) error {
			_, err := recovery.Restore(t0, recovery.RestoreOptions{FS: fs, Dir: "/store", To: "/new", Live: true, LSN: wal.LSN(acked)})
			return err
		}},
	} {
		for _, every := range []int{1, 6, 15, 30} {
			for seed := range seeds {
				disk, p := waltest.NewDisk(), newPast()
				w, err := openWorld(disk, "/store", 505+seed, p)
				must(t, err)
				must(t, w.work(60))
				acked, ops, works := p.acked, 0, 0
				live := &waltest.Between{FS: disk, Before: func() {
					// Not for ever, or the tool would never come to an end.
					if ops++; ops%every == int(seed)%every && works < 25 {
						works++
						must(t, w.work(1+ops%40))
					}
				}}
				if err := tt.run(live, p, acked); err != nil && !strings.Contains(err.Error(), "too fast") {
					t.Fatalf("%s, with work before each %dth operation, seed %d: %v", tt.name, every, 505+seed, err)
				} else if err == nil {
					looked++
				}
				if _, err := disk.Stat("/store/live.tmp"); !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("%s left its copy: %v", tt.name, err)
				}
			}
		}
	}
	if looked < 12 {
		t.Errorf("only %d looks came to an end", looked)
	}
}

// Damage to a running store is told with the names of its files, not of the copy.
func TestCheckLiveOfDamage(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 505, p)
	must(t, err)
	for range 20 {
		_, err := w.enqueue("default/default/q", 100)
		must(t, err)
	}
	newestGroup(t, disk)
	health, err := recovery.Check(t0, recovery.CheckOptions{FS: disk, Dir: "/store", Live: true})
	must(t, err)
	if len(health.Problems) != 1 || !strings.HasPrefix(health.Problems[0].Error(), "/store/log/") {
		t.Errorf("got %v", health.Problems)
	}
}

// One tool at a time looks at a running store; what a killed one left is no
// hindrance.
func TestLiveToolsTakeTurns(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 506, p)
	must(t, err)
	must(t, w.work(30))
	must(t, disk.Mkdir("/store/live.tmp", 0o700))
	must(t, disk.Link("/store/STORE", "/store/live.tmp/STORE"))
	other, err := disk.Lock("/store/live.tmp")
	must(t, err)
	check := func() error {
		_, err := recovery.Check(t0, recovery.CheckOptions{FS: disk, Dir: "/store", Live: true})
		return err
	}
	if err := check(); !errors.Is(err, vfs.ErrLocked) || recovery.ExitCode(err) != recovery.ExitLocked {
		t.Errorf("while another tool looks: got %v", err)
	}
	must(t, other.Close())
	must(t, check())
	if err := second(recovery.Check(t0, recovery.CheckOptions{FS: disk, Dir: "/nowhere", Live: true})); !errors.Is(err, recovery.ErrNoStore) {
		t.Errorf("where there is no directory: got %v", err)
	}
}

// What a start would do is what check says, also of what costs nothing.
func TestCheckNotesDamageThatCostsNothing(t *testing.T) {
	disk, p := cleanStore(t, 510, 2, 60)
	var oldest string
	for _, name := range disk.Files() {
		if strings.HasSuffix(name, ".snapshot") && oldest == "" {
			oldest = name
		}
	}
	disk.Flip(oldest, 8*500)
	health, err := recovery.Check(t0, recovery.CheckOptions{FS: disk, Dir: "/store"})
	must(t, err)
	if len(health.Problems) != 0 || len(health.Notes) != 1 || !strings.Contains(health.Notes[0].Error(), oldest) {
		t.Errorf("got problems %v, notes %v", health.Problems, health.Notes)
	}
	w, err := openWorld(disk, "/store", 511, p)
	must(t, err)
	must(t, w.close())
}

// The newest snapshot is damaged, the one before and the log are whole: the
// start has everything, says so, and keeps the damaged file out of the way.
func TestDamagedSnapshotIsPassedOver(t *testing.T) {
	disk, p := cleanStore(t, 520, 2, 60)
	files := disk.Files()
	newest := files[len(files)-1]
	if !strings.HasSuffix(newest, ".snapshot") {
		t.Fatalf("the last file is %s", newest)
	}
	disk.Flip(newest, 8*500)
	w, err := openWorld(disk, "/store", 521, p)
	must(t, err)
	if r := w.store.Report; len(r.Damaged) != 1 || !recovery.IsDamage(r.Damaged[0]) {
		t.Errorf("got the report %+v", r)
	}
	must(t, w.close())
	if disk.Contents(newest) != nil || disk.Contents(newest+".damaged") == nil {
		t.Error("the damaged snapshot was not put aside")
	}
	w, err = openWorld(disk, "/store", 522, p)
	must(t, err)
	if len(w.store.Report.Damaged) != 0 {
		t.Error("it is found again at the second start")
	}
	must(t, w.close())
}

// Jobs with empty payloads have no body that could be missing.
func TestEmptyPayload(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 525, p)
	must(t, err)
	for _, size := range []int{0, 10, 0} {
		_, err = w.enqueue("default/default/q", size)
		must(t, err)
	}
	must(t, w.snapshot())
	must(t, w.close())
	for life := range uint64(2) {
		health, err := recovery.Check(t0, recovery.CheckOptions{FS: disk, Dir: "/store"})
		must(t, err)
		if len(health.Problems)+len(health.Notes) != 0 {
			t.Fatalf("life %d: got %v, %v", life, health.Problems, health.Notes)
		}
		w, err = openWorld(disk, "/store", 526+life, p)
		must(t, err)
		must(t, w.close())
	}
	done, err := recovery.Restore(t0, recovery.RestoreOptions{FS: disk, Dir: "/store", To: "/restored", LSN: wal.LSN(p.acked)})
	must(t, err)
	if done.Jobs != 3 || dump(stateOf(t, disk, "/restored")) != p.dumps[p.acked] {
		t.Errorf("got %+v", done)
	}
	repaired, err := recovery.Repair(t0, recovery.RepairOptions{FS: disk, Dir: "/store"})
	must(t, err)
	if repaired.Needed {
		t.Errorf("got %+v", repaired)
	}
}

func TestDump(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 530, p)
	must(t, err)
	id, err := w.enqueue("default/default/mail", 20)
	must(t, err)
	_, err = w.enqueue("default/default/sms", 20)
	must(t, err)
	var slot state.Slot
	for slot == 0 {
		if slot, err = w.lease("default/default/mail"); err == nil && slot == 0 {
			// It was enqueued with a delay: let that end.
			err = w.commit(fact{r: state.Record{Kind: state.KindRun, Slot: id.Slot()}})
		}
		must(t, err)
	}
	must(t, w.snapshot())
	must(t, w.commit(fact{r: state.Record{Kind: state.KindMeta, Text: []byte("token/default/ns/SECRET"), Data: []byte("v")}}))
	must(t, w.commit(fact{r: state.Record{Kind: state.KindAck, Slot: slot}}))
	must(t, w.close())

	lines := func(opt recovery.DumpOptions) []string {
		t.Helper()
		opt.FS, opt.Dir = disk, "/store"
		var b bytes.Buffer
		must(t, recovery.Dump(t0, &b, opt))
		return strings.Split(strings.TrimSpace(b.String()), "\n")
	}
	all := lines(recovery.DumpOptions{})
	text := strings.Join(all, "\n")
	for _, want := range []string{" enqueue ", " lease ", " ack job=" + id.String() + " queue=default/default/mail", " snapshot ", "key=token/default/ns/*"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "SECRET") {
		t.Error("a token is shown")
	}
	for _, line := range lines(recovery.DumpOptions{Job: id}) {
		if !strings.Contains(line, "job="+id.String()) {
			t.Errorf("not about the job: %s", line)
		}
	}
	if sms := strings.Join(lines(recovery.DumpOptions{Queue: "default/default/sms"}), "\n"); strings.Contains(sms, "mail") || !strings.Contains(sms, "sms") {
		t.Errorf("got of queue sms\n%s", sms)
	}
	last := lines(recovery.DumpOptions{From: 1 << 40})
	if len(last) != 1 || last[0] != "" {
		t.Errorf("got %q from behind the end", last)
	}
	for _, line := range lines(recovery.DumpOptions{JSON: true}) {
		var v struct {
			LSN  uint64
			Kind string
			Time string
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.LSN == 0 || v.Kind == "" || v.Time == "" {
			t.Errorf("%s: %+v, %v", line, v, err)
		}
	}
}

// Every kind of error has its exit code, and no two kinds are mixed up.
func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{&recovery.DamageError{}, 65},
		{&recovery.FormatError{}, 65},
		{&recovery.ForeignError{}, 65},
		{recovery.ErrNoStore, 73},
		{recovery.ErrNotEmpty, 73},
		{recovery.ErrExists, 73},
		{recovery.ErrOutOfReach, 73},
		{fmt.Errorf("%w: %w", recovery.ErrOutOfReach, &recovery.DamageError{}), 73},
		{errIO, 74},
		{errors.New("anything else"), 74},
		{&vfs.LockedError{Dir: "x"}, 75},
		{recovery.ErrOpenToOthers, 77},
	} {
		wrapped := tt.err
		if wrapped != nil {
			wrapped = fmt.Errorf("start: %w", tt.err)
		}
		if got := recovery.ExitCode(wrapped); got != tt.want {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.want)
		}
	}
}

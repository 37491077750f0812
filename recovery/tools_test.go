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

// Damage to a running store is damage when it is found twice in the same place.
// What looks damaged elsewhere each time is a store that changes too fast.
func TestCheckLiveOfDamage(t *testing.T) {
	disk, p := waltest.NewDisk(), newPast()
	w, err := openWorld(disk, "/store", 505, p)
	must(t, err)
	for range 20 {
		_, err := w.enqueue("default/default/q", 100)
		must(t, err)
	}
	must(t, w.close())
	history, err := wal.Find(disk, "/store/log", wal.FindOptions{})
	must(t, err)
	r, err := history.Reader(wal.ReaderOptions{})
	must(t, err)
	var groups []int64 // their places, in the generation that has them
	var file string
	for r.Next() {
		groups, file = append(groups, r.Group().Offset), wal.SegmentPath("/store/log", r.Group().Generation)
	}
	must(t, r.Err())

	bad := disk.Kill()
	bad.Flip(file, (groups[10]+100)*8)
	health, err := recovery.Check(t0, recovery.CheckOptions{FS: bad, Dir: "/store", Live: true})
	must(t, err)
	if len(health.Problems) != 1 || !strings.Contains(health.Problems[0].Error(), "group 11") {
		t.Errorf("got %v", health.Problems)
	}
	moving := &hookedDisk{Disk: disk.Kill()}
	next := len(groups) - 2
	moving.link = func() { // before each look an earlier group is damaged
		moving.Flip(file, (groups[next]+100)*8)
		next--
	}
	health, err = recovery.Check(t0, recovery.CheckOptions{FS: moving, Dir: "/store", Live: true})
	if err == nil || recovery.IsDamage(err) || !strings.Contains(err.Error(), "changes too fast") {
		t.Errorf("got %v, %v", health, err)
	}
	if _, err := moving.Stat("/store.live"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy of links is still there: %v", err)
	}
}

// hookedDisk calls link before the copy of links is made.
type hookedDisk struct {
	*waltest.Disk
	link func()
}

func (d *hookedDisk) Mkdir(name string, perm fs.FileMode) error {
	if name == "/store.live" {
		d.link()
	}
	return d.Disk.Mkdir(name, perm)
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

package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pawl/internal/vfs"
	"pawl/snapshot"
	"pawl/state"
	"pawl/wal/waltest"
)

// payload is a View with these bytes.
type payload []byte

func (p payload) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(p)
	return int64(n), err
}

func metaAt(lsn uint64, wall state.Millis) snapshot.Meta {
	m := example
	m.LSN, m.Wall = lsn, wall
	return m
}

var errNotYet = errors.New("not durable")

var beside = snapshot.Beside{Durable: func(context.Context) error { return nil }}

// newStore is a disk with a data directory that is durable.
func newStore(t testing.TB) *waltest.Disk {
	t.Helper()
	disk := waltest.NewDisk()
	must(t, disk.Mkdir("/store", 0o700))
	must(t, disk.SyncDir("/"))
	return disk
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const dir = "/store/snapshots"

func write(t testing.TB, disk *waltest.Disk, lsn uint64, wall state.Millis) snapshot.File {
	t.Helper()
	file, err := snapshot.Write(t.Context(), disk, dir, payload(random(1000)), metaAt(lsn, wall), beside)
	must(t, err)
	return file
}

func lsns(t testing.TB, disk *waltest.Disk) (all []uint64) {
	t.Helper()
	files, err := snapshot.List(disk, dir)
	must(t, err)
	for _, f := range files {
		all = append(all, f.LSN)
	}
	return all
}

// What Write has returned survives the loss of everything that was not synced,
// with the directory made in the same call; and a name is never there before
// the whole file is.
func TestWriteIsDurable(t *testing.T) {
	disk := newStore(t)
	file := write(t, disk, 7, 70)
	if want := dir + "/00000000000000000007.snapshot"; file.Path != want || file.LSN != 7 {
		t.Errorf("got %+v, want path %s", file, want)
	}
	for name, left := range disk.States(1, 10) {
		meta, err := snapshot.Verify(t.Context(), left, file.Path)
		if err != nil || meta != metaAt(7, 70) {
			t.Errorf("state %s: got %+v, %v", name, meta, err)
		}
	}
}

// The power goes before each operation of a second Write, whatever was not
// synced is lost or kept, or the operation fails: the first snapshot stays, and
// the second is whole or not there.
func TestWriteCrashesAndFails(t *testing.T) {
	before := newStore(t)
	write(t, before, 7, 70)
	calm := before.Kill()
	write(t, calm, 9, 90)
	step := 1
	if testing.Short() {
		step = 3
	}
	for at := 1; at <= calm.Ops(); at += step {
		for _, fault := range []func(waltest.Op) waltest.Fault{
			waltest.CrashAt(at, false, 10), waltest.FailAt(at, syscall.EIO, false), waltest.FailAt(at, syscall.ENOSPC, true),
		} {
			disk := before.Kill()
			disk.Inject(fault)
			_, err := snapshot.Write(t.Context(), disk, dir, payload(random(1000)), metaAt(9, 90), beside)
			if err == nil && disk.Ops() >= at && !disk.Crashed() {
				continue // one of those whose failure changes nothing
			}
			for name, left := range disk.States(uint64(at), 2) {
				for _, file := range lsnsOf(t, left) {
					if _, err := snapshot.Verify(t.Context(), left, file.Path); err != nil {
						t.Fatalf("operation %d, state %s: %v", at, name, err)
					}
				}
				if got := lsns(t, left); len(got) == 0 || got[len(got)-1] != 7 {
					t.Fatalf("operation %d, state %s: got snapshots %v", at, name, got)
				}
				must(t, snapshot.Clean(left, dir))
				for _, name := range left.Files() {
					if strings.HasSuffix(name, ".tmp") {
						t.Fatalf("operation %d: %s stays", at, name)
					}
				}
			}
		}
	}
}

func lsnsOf(t testing.TB, disk *waltest.Disk) []snapshot.File {
	t.Helper()
	files, err := snapshot.List(disk, dir)
	must(t, err)
	return files
}

// A snapshot that is ahead of the log is not published, and leaves nothing.
func TestWriteWaitsForTheLog(t *testing.T) {
	disk := newStore(t)
	published := false
	_, err := snapshot.Write(t.Context(), disk, dir, payload("x"), metaAt(7, 70), snapshot.Beside{Durable: func(context.Context) error {
		published = len(lsns(t, disk)) > 0
		return errNotYet
	}})
	if !errors.Is(err, errNotYet) || published {
		t.Errorf("got %v, published before %v", err, published)
	}
	if files := disk.Files(); len(files) != 0 {
		t.Errorf("left %v", files)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = snapshot.Write(ctx, disk, dir, payload("x"), metaAt(7, 70), snapshot.Beside{Durable: func(context.Context) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) || len(lsns(t, disk)) != 0 {
		t.Errorf("got %v for an ended context", err)
	}
	if _, err = snapshot.Write(ctx, disk, dir, payload("x"), metaAt(7, 70), beside); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for a context that had ended", err)
	}
}

// rotting is a disk on which a bit of a file turns over between its sync and the
// next opening.
type rotting struct {
	*waltest.Disk
	bit int64
}

func (d rotting) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag == os.O_RDONLY && strings.HasSuffix(name, ".tmp") {
		d.Flip(name, d.bit)
	}
	return d.Disk.OpenFile(name, flag, perm)
}

// A file that does not read back as it was written is not published.
func TestWriteReadsBack(t *testing.T) {
	for _, bit := range []int64{0, 8 * 70, 8*128 + 3, 8 * 500} {
		disk := newStore(t)
		_, err := snapshot.Write(t.Context(), rotting{disk, bit}, dir, payload(random(1000)), metaAt(7, 70), beside)
		if _, ok := errors.AsType[*snapshot.DamageError](err); !ok {
			t.Errorf("bit %d: got %v, want a DamageError", bit, err)
		}
		if files := disk.Files(); len(files) != 0 {
			t.Errorf("bit %d: left %v", bit, files)
		}
	}
}

// A View that fails, fails the snapshot.
func TestWriteOfABrokenView(t *testing.T) {
	disk := newStore(t)
	broken := errors.New("broken view")
	_, err := snapshot.Write(t.Context(), disk, dir, view(func(io.Writer) (int64, error) { return 0, broken }), metaAt(7, 70), beside)
	if !errors.Is(err, broken) || len(disk.Files()) != 0 {
		t.Errorf("got %v, files %v", err, disk.Files())
	}
}

type view func(io.Writer) (int64, error)

func (f view) WriteTo(w io.Writer) (int64, error) { return f(w) }

// Large snapshots are synced as they grow, so that not all of it waits for the
// last sync.
func TestWriteSyncsAsItGrows(t *testing.T) {
	disk := newStore(t)
	syncs := 0
	disk.Inject(func(op waltest.Op) waltest.Fault {
		if op.Kind == "datasync" {
			syncs++
		}
		return waltest.Fault{}
	})
	_, err := snapshot.Write(t.Context(), disk, dir, payload(make([]byte, 33<<20)), metaAt(7, 70), beside)
	must(t, err)
	if syncs != 16 {
		t.Errorf("got %d syncs on the way of 33 MiB, want 16", syncs)
	}
}

// The pace is told of all that is written and of all that is read back, piece by
// piece, and once its context has ended nothing goes on.
func TestWriteAtAPace(t *testing.T) {
	disk := newStore(t)
	const size = 3 << 20
	var pieces, total int
	log := beside
	log.Pace = func(_ context.Context, bytes int) {
		pieces++
		total += bytes
		if bytes > 512<<10 {
			t.Errorf("a piece has %d bytes", bytes)
		}
	}
	file, err := snapshot.Write(t.Context(), disk, dir, payload(random(size)), metaAt(7, 70), log)
	must(t, err)
	if want := int(file.Size) + size; total != want {
		t.Errorf("told of %d bytes, want %d", total, want)
	}
	for _, at := range []int{1, pieces / 2, pieces} {
		ctx, cancel := context.WithCancel(t.Context())
		told := 0
		log.Pace = func(context.Context, int) {
			if told++; told == at {
				cancel()
			}
		}
		_, err := snapshot.Write(ctx, disk, dir, payload(random(size)), metaAt(8, 80), log)
		if !errors.Is(err, context.Canceled) || told > at+1 {
			t.Errorf("ended at piece %d of %d: %v after %d", at, pieces, err, told)
		}
		cancel()
	}
}

func TestOpenChecksTheName(t *testing.T) {
	disk := newStore(t)
	file := write(t, disk, 7, 70)
	must(t, disk.Rename(file.Path, dir+"/"+snapshot.Name(8)))
	for name, err := range map[string]error{
		"open":   second(snapshot.Open(disk, dir+"/"+snapshot.Name(8))),
		"header": second(snapshot.ReadMeta(disk, dir+"/"+snapshot.Name(8))),
		"verify": second(snapshot.Verify(t.Context(), disk, dir+"/"+snapshot.Name(8))),
	} {
		damage, ok := errors.AsType[*snapshot.DamageError](err)
		if !ok || !strings.Contains(damage.Error(), "LSN 8") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := snapshot.ReadMeta(disk, file.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a file that is not there", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestListAndClean(t *testing.T) {
	disk := newStore(t)
	if got := lsns(t, disk); len(got) != 0 {
		t.Errorf("got %v without a directory", got)
	}
	must(t, snapshot.Clean(disk, dir))
	for _, lsn := range []uint64{5, 100, 20} {
		write(t, disk, lsn, 1)
	}
	for _, name := range []string{"5.snapshot", "00000000000000000021.snapshot.damaged", "00000000000000000022.snapshot.tmp", "99999999999999999999.snapshot", "notes"} {
		f, err := disk.OpenFile(dir+"/"+name, os.O_CREATE|os.O_WRONLY, 0o600)
		must(t, err)
		must(t, f.Close())
	}
	if got := fmt.Sprint(lsns(t, disk)); got != "[100 20 5]" {
		t.Errorf("got %s, want the newest first", got)
	}
	must(t, snapshot.Clean(disk, dir))
	left := strings.Join(disk.Files(), " ")
	if strings.Contains(left, ".tmp") || !strings.Contains(left, "notes") || !strings.Contains(left, ".damaged") {
		t.Error("clean removed what it should not, or left a temporary file")
	}
}

func TestPrune(t *testing.T) {
	const hour = 3_600_000
	for _, tt := range []struct {
		name  string
		walls []state.Millis // of the snapshots 1, 2, …
		keep  state.Millis
		want  string // that stay, newest first
		floor uint64
	}{
		{"none", nil, 0, "[]", 0},
		{"one is not enough", []state.Millis{1}, 0, "[1]", 0},
		{"two stay", []state.Millis{1, 2}, 0, "[2 1]", 1},
		{"of more the two newest", []state.Millis{1, 2, 3, 4}, 0, "[4 3]", 3},
		{"the newest older than the window", []state.Millis{1 * hour, 2 * hour, 9*hour + 1, 9*hour + 2, 9*hour + 3}, 2 * hour, "[5 4 3 2]", 2},
		{"the two newest reach beyond it", []state.Millis{1 * hour, 2 * hour, 3 * hour}, 2 * hour, "[3 2]", 2},
		{"one of each quarter of it", []state.Millis{
			1 * hour, 5 * hour, 5*hour + 1, 5*hour + 2, 7 * hour, 7*hour + 1, 9*hour + 1, 9*hour + 2, 9*hour + 3,
		}, 8 * hour, "[9 8 7 5 2 1]", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := newStore(t)
			for i, wall := range tt.walls {
				write(t, disk, uint64(i+1), wall)
			}
			floor, err := snapshot.Prune(disk, dir, 10*hour, tt.keep)
			must(t, err)
			if got := fmt.Sprint(lsns(t, disk)); got != tt.want || floor != tt.floor {
				t.Errorf("got %s with floor %d, want %s with floor %d", got, floor, tt.want, tt.floor)
			}
			// Again, and nothing more goes.
			if again, err := snapshot.Prune(disk, dir, 10*hour, tt.keep); err != nil || again != floor || fmt.Sprint(lsns(t, disk)) != tt.want {
				t.Errorf("a second time: floor %d, %v, %v", again, err, lsns(t, disk))
			}
		})
	}
}

// A snapshot that cannot be read does not count as one of the two, and one of a
// newer format is not removed.
func TestPruneCountsOnlyWhatCanBeRead(t *testing.T) {
	disk := newStore(t)
	for lsn := range uint64(5) {
		write(t, disk, lsn+1, 1)
	}
	disk.Flip(dir+"/"+snapshot.Name(4), 8*50)
	newer := disk.Contents(dir + "/" + snapshot.Name(1))
	newer[8] = snapshot.Format + 1
	sumPreamble(newer)
	disk.SetContents(dir+"/"+snapshot.Name(1), newer)
	floor, err := snapshot.Prune(disk, dir, 0, 0)
	must(t, err)
	if got := fmt.Sprint(lsns(t, disk)); got != "[5 4 3 1]" || floor != 3 {
		t.Errorf("got %s with floor %d", got, floor)
	}
}

// Each operation of a Prune fails or is the last: two snapshots are there.
func TestPruneFails(t *testing.T) {
	before := newStore(t)
	for lsn := range uint64(4) {
		write(t, before, lsn+1, 1)
	}
	calm := before.Kill()
	_, err := snapshot.Prune(calm, dir, 0, 0)
	must(t, err)
	failed := 0
	for at := 1; at <= calm.Ops(); at++ {
		for _, fault := range []func(waltest.Op) waltest.Fault{waltest.FailAt(at, syscall.EIO, false), waltest.CrashAt(at, true, 0)} {
			disk := before.Kill()
			disk.Inject(fault)
			floor, err := snapshot.Prune(disk, dir, 0, 0)
			if err != nil {
				failed++
			}
			for name, left := range disk.States(1, 1) {
				if got := lsns(t, left); len(got) < 2 || got[0] != 4 || got[1] != 3 {
					t.Fatalf("operation %d, state %s: got %v, %v", at, name, got, err)
				}
			}
			if floor != 0 && floor != 3 {
				t.Errorf("operation %d: floor %d", at, floor)
			}
		}
	}
	if failed < calm.Ops() {
		t.Errorf("%d of %d faults were noticed", failed, 2*calm.Ops())
	}
}

func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&snapshot.DamageError{File: "/s/1", Offset: 8, Want: "a", Got: "b"}, "snapshot /s/1 is damaged at offset 8: want a, got b"},
		{&snapshot.FormatError{Found: 3, Known: 1}, "snapshot has format 3, this program reads formats 1 to 1"},
	} {
		if tt.err.Error() != tt.want {
			t.Errorf("got %q, want %q", tt.err, tt.want)
		}
	}
	if got := (snapshot.StoreID{0xab}).String(); got != "ab000000000000000000000000000000" {
		t.Errorf("got %s", got)
	}
}

// vanishing is a file system on which a file goes after its directory was listed.
type vanishing struct {
	vfs.FS
	name string
}

type vanished struct{ fs.DirEntry }

func (vanished) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

func (v vanishing) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := v.FS.ReadDir(name)
	for i, entry := range entries {
		if entry.Name() == v.name {
			entries[i] = vanished{entry}
		}
	}
	return entries, err
}

// A snapshot that is removed while they are listed is none: the scrubber and the
// tools list those of a running store.
func TestListWhilePruned(t *testing.T) {
	disk := waltest.NewDisk()
	if err := disk.Mkdir("/s", 0o700); err != nil {
		t.Fatal(err)
	}
	for lsn := range uint64(3) {
		f, err := disk.OpenFile(filepath.Join("/s", snapshot.Name(lsn+1)), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	files, err := snapshot.List(vanishing{disk, snapshot.Name(1)}, "/s")
	if err != nil || len(files) != 2 || files[0].LSN != 3 || files[1].LSN != 2 {
		t.Errorf("got %v, %v, want those of groups 3 and 2", files, err)
	}
}

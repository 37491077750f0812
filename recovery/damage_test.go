package recovery_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/internal/record"
	"pawl/recovery"
	"pawl/wal/waltest"
)

// cleanStore is a store that was worked on in several lives and stopped.
func cleanStore(t testing.TB, seed uint64, lives, steps int) (*waltest.Disk, *past) {
	t.Helper()
	disk, p := waltest.NewDisk(), newPast()
	for life := range lives {
		w, err := openWorld(disk, "/store", seed+uint64(life), p)
		must(t, err)
		must(t, w.work(steps))
		must(t, w.close())
	}
	return disk, p
}

// A judgement is what a start made of a store.
type judgement struct {
	err   error
	store *recovery.Store
}

// judge opens a store and holds the result against the past: the state is one
// of it with everything acknowledged, or the start was refused for damage, with
// file and offset. What check says before must be what the start then does.
func judge(fs *waltest.Disk, p *past) (judgement, error) {
	health, err := recovery.Check(t0, recovery.CheckOptions{FS: fs, Dir: "/store"})
	if errors.Is(err, recovery.ErrNoStore) {
		health, err = &recovery.Health{}, nil // a start makes one
	}
	if err != nil {
		return judgement{}, fmt.Errorf("check has no verdict: %w", err)
	}
	store, err := recovery.Open(t0, options(fs, "/store"))
	if (err == nil) != (len(health.Problems) == 0) {
		return judgement{}, fmt.Errorf("check says %v, the start %w", health.Problems, err)
	}
	if err == nil && health.State != nil && dump(store.State) != dump(health.State) {
		return judgement{}, errors.New("check saw another state than the start")
	}
	if err == nil {
		err = errors.Join(p.holds(store.State, store.End), store.Close())
		return judgement{store: store}, err
	}
	j := judgement{err: err}
	if recovery.ExitCode(err) != recovery.ExitDamaged {
		return j, fmt.Errorf("got exit code %d: %w", recovery.ExitCode(err), err)
	}
	if damage, ok := errors.AsType[*recovery.DamageError](err); ok {
		if !strings.HasPrefix(damage.File, "/store/") || damage.Offset < 0 || damage.Want == "" {
			return j, fmt.Errorf("the error says too little: %+v", damage)
		}
	}
	return j, nil
}

// stride is how many cases a test that tries all of them goes on by: 1 where
// PAWL_DEEP is set, which takes minutes. Prime, so that all bits of a byte and
// all bytes of a sector have their turn.
func stride(usual, short int) int {
	switch {
	case os.Getenv("PAWL_DEEP") != "":
		return 1
	case testing.Short():
		return short
	}
	return usual
}

// Every file of a store that was stopped cleanly is cut at every length. Either
// nothing that could be observed is missing, or the start is refused.
func TestEveryFileCutAtEveryLength(t *testing.T) {
	layer := record.Note(t, "2a truncate everywhere")
	disk, p := cleanStore(t, 10, 3, 14)
	refused, total := 0, 0
	for _, name := range disk.Files() {
		whole := disk.Contents(name)
		used := len(strings.TrimRight(string(whole), "\x00"))
		for n := range len(whole) {
			if n > used+4 && n%509 != 0 || n%stride(13, 127) != 0 {
				continue // behind the end are zeros
			}
			bad := disk.Kill()
			bad.SetContents(name, whole[:n])
			j, err := judge(bad, p)
			if err != nil {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, n, len(whole), err)
			}
			total++
			if j.err != nil {
				refused++
			}
		}
	}
	t.Logf("%d starts, %d of them refused", total, refused)
	layer.Cases, layer.Faults = total, total
	if refused == 0 || refused == total {
		t.Error("all starts had the same outcome: the test has no teeth")
	}
}

// Every bit of a small store is flipped.
func TestEveryBitFlipped(t *testing.T) {
	layer := record.Note(t, "4 rot")
	disk, p := cleanStore(t, 20, 2, 8)
	refused, total := 0, 0
	for _, name := range disk.Files() {
		whole := disk.Contents(name)
		used := len(strings.TrimRight(string(whole), "\x00"))
		for bit := range int64(len(whole)) * 8 {
			if bit/8 > int64(used)+64 && bit%(8*61) != 3 || bit%int64(stride(23, 211)) != 0 {
				continue // behind the end are zeros
			}
			bad := disk.Kill()
			bad.Flip(name, bit)
			j, err := judge(bad, p)
			if err != nil {
				t.Fatalf("bit %d of byte %d of %s flipped: %v", bit%8, bit/8, name, err)
			}
			total++
			if j.err != nil {
				refused++
			}
		}
	}
	t.Logf("%d starts, %d of them refused", total, refused)
	layer.Cases, layer.Faults = total, total
	if refused == 0 || refused == total {
		t.Error("all starts had the same outcome: the test has no teeth")
	}
}

// Sectors are zeroed, doubled, swapped with their neighbours.
func TestEverySectorMoved(t *testing.T) {
	layer := record.Note(t, "4 rot")
	disk, p := cleanStore(t, 30, 3, 40)
	const sector = 512
	for _, name := range disk.Files() {
		whole := disk.Contents(name)
		for at := 0; at+2*sector <= len(whole); at += sector * stride(3, 17) {
			here, next := whole[at:at+sector], whole[at+sector:at+2*sector]
			for what, with := range map[string][2][]byte{
				"zeroed": {make([]byte, sector), next}, "doubled": {here, here}, "swapped": {next, here},
			} {
				b := append([]byte(nil), whole...)
				copy(b[at:], with[0])
				copy(b[at+sector:], with[1])
				bad := disk.Kill()
				bad.SetContents(name, b)
				layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
				if _, err := judge(bad, p); err != nil {
					t.Fatalf("sector at %d of %s %s: %v", at, name, what, err)
				}
			}
		}
	}
}

// Files are missing, empty, renamed to a neighbour's name, or of another store.
func TestEveryFileMissingEmptyOrForeign(t *testing.T) {
	layer := record.Note(t, "4 rot")
	disk, p := cleanStore(t, 40, 3, 40)
	other, _ := cleanStore(t, 41, 3, 40)
	files := disk.Files()
	for i, name := range files {
		try := func(what string, change func(bad *waltest.Disk)) {
			t.Helper()
			bad := disk.Kill()
			change(bad)
			layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+1
			if _, err := judge(bad, p); err != nil {
				t.Errorf("%s %s: %v", name, what, err)
			}
		}
		try("missing", func(bad *waltest.Disk) { must(t, bad.Remove(name)) })
		try("empty", func(bad *waltest.Disk) { bad.SetContents(name, nil) })
		try("renamed to a neighbour's name", func(bad *waltest.Disk) { must(t, bad.Rename(name, files[(i+1)%len(files)])) })
		if foreign := other.Contents(name); foreign != nil {
			try("of another store", func(bad *waltest.Disk) { bad.SetContents(name, foreign) })
		}
	}
}

// What is refused is left as it was, and so is what is only checked.
func TestRefusedStartChangesNothing(t *testing.T) {
	disk, _ := cleanStore(t, 50, 3, 40)
	rng := rand.New(rand.NewPCG(5, 5))
	refused := 0
	for range 200 {
		bad := disk.Kill()
		name := bad.Files()[rng.IntN(len(bad.Files()))]
		used := int64(len(strings.TrimRight(string(bad.Contents(name)), "\x00")))
		if used == 0 {
			continue
		}
		bad.Flip(name, rng.Int64N(used*8))
		before := image(bad)
		_, err := recovery.Check(t0, recovery.CheckOptions{FS: bad, Dir: "/store"})
		must(t, err)
		if !image(bad).equal(before) {
			t.Fatalf("check changed the directory with a bit of %s flipped", name)
		}
		if _, err := recovery.Open(t0, options(bad, "/store")); err == nil {
			continue
		}
		refused++
		if !image(bad).equal(before) {
			t.Fatalf("a refused start changed the directory with a bit of %s flipped", name)
		}
	}
	if refused == 0 {
		t.Error("no start was refused")
	}
}

func image(disk *waltest.Disk) bytesOf {
	all := bytesOf{}
	for _, name := range disk.Files() {
		all[name] = string(disk.Contents(name))
	}
	return all
}

// A file of a newer format is neither damage nor passed over, and the refusal
// names both versions.
func TestNewerFormatIsRefused(t *testing.T) {
	disk, _ := cleanStore(t, 60, 2, 60)
	for _, name := range disk.Files() {
		bad := disk.Kill()
		b := bad.Contents(name)
		known := "formats 1 to 1"
		if strings.Contains(name, "/snapshots/") {
			known = "formats 1 to 2"
		}
		b[8] = 9 // of a segment: behind the prefix and the magic of its first entry
		if strings.Contains(name, "/log/") {
			putHeaderSum(b[4:])
		} else {
			putPreambleSum(b)
		}
		bad.SetContents(name, b)
		for what, err := range map[string]error{
			"open":   second(recovery.Open(t0, options(bad, "/store"))),
			"repair": second(recovery.Repair(t0, recovery.RepairOptions{FS: bad, Dir: "/store"})),
		} {
			format, ok := errors.AsType[*recovery.FormatError](err)
			if !ok || format.File != name || !strings.Contains(err.Error(), "format 9") || !strings.Contains(err.Error(), known) {
				t.Errorf("%s %s: got %v", what, filepath.Base(name), err)
			}
		}
		if string(bad.Contents(name)) != string(b) {
			t.Errorf("%s was changed", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// An error of the disk is no damage.
func TestReadErrorIsNotDamage(t *testing.T) {
	disk, _ := cleanStore(t, 70, 2, 40)
	ops := func() int {
		d := disk.Kill()
		store, err := recovery.Open(t0, options(d, "/store"))
		must(t, err)
		must(t, store.Close())
		return d.Ops()
	}()
	failed := 0
	for n := 1; n <= ops; n++ {
		bad := disk.Kill()
		var op waltest.Op
		bad.Inject(func(o waltest.Op) waltest.Fault {
			if o.N != n {
				return waltest.Fault{}
			}
			op = o
			return waltest.Fault{Err: errIO}
		})
		store, err := recovery.Open(t0, options(bad, "/store"))
		if err == nil {
			must(t, store.Close())
			continue // an operation whose failure changes nothing
		}
		failed++
		if recovery.ExitCode(err) != recovery.ExitIO {
			t.Errorf("operation %d (%s %s) failed: got exit %d: %v", n, op.Kind, op.Name, recovery.ExitCode(err), err)
		}
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("operation %d: got %v", n, err)
		}
	}
	if failed < ops/2 {
		t.Errorf("%d of %d failed operations were noticed", failed, ops)
	}
}

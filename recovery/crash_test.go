package recovery_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"pawl/internal/record"
	"pawl/recovery"
	"pawl/wal/waltest"
)

// life opens a store, works on it with snapshots, pruning and several
// generations, and stops. The seed says what is done, and nothing else does.
func life(disk *waltest.Disk, seed uint64, steps int, p *past) error {
	w, err := openWorld(disk, "/store", seed, p)
	if err != nil {
		return err
	}
	if err := w.work(steps); err != nil {
		return err
	}
	return w.close()
}

// aged is a store with a past, whose next life is the subject of a test.
func aged(t testing.TB) (*waltest.Disk, *past) {
	t.Helper()
	return cleanStore(t, 100, 2, 30)
}

const lifeSteps = 45

// copyOfPast lets several tests go on from one past.
func copyOfPast(p *past) *past {
	c := newPast()
	for lsn, d := range p.dumps {
		c.dumps[lsn] = d
	}
	c.acked = p.acked
	return c
}

// afterwards recovers what a crash left, twice, works on, crashes again by a
// kill, and recovers: everything acknowledged is there each time.
func afterwards(disk *waltest.Disk, seed uint64, p *past) error {
	for again := range 2 {
		store, err := recovery.Open(t0, options(disk, "/store"))
		if err != nil {
			return fmt.Errorf("recovery %d: %w", again+1, err)
		}
		if err := errors.Join(p.holds(store.State, store.End), store.Close()); err != nil {
			return fmt.Errorf("recovery %d: %w", again+1, err)
		}
	}
	w, err := openWorld(disk, "/store", seed, p)
	if err != nil {
		return fmt.Errorf("third recovery: %w", err)
	}
	if err := w.work(8); err != nil {
		return fmt.Errorf("work after it: %w", err)
	}
	killed := disk.Kill()
	w, err = openWorld(killed, "/store", seed+1, p)
	if err != nil {
		return fmt.Errorf("recovery after a kill: %w", err)
	}
	return w.close()
}

// The power goes before each operation of a life, from the start on, and the
// disk keeps what it likes of what was not synced: layer 3a.
func TestPowerLossAtEveryOperation(t *testing.T) {
	layer := record.Note(t, "3a power loss, simulated")
	disk, before := aged(t)
	calm := disk.Kill()
	must(t, life(calm, 7, lifeSteps, copyOfPast(before)))
	total := calm.Ops()
	states := 0
	for at := 1; at <= total; at += stride(37, 151) {
		p := copyOfPast(before)
		d := disk.Kill()
		d.Inject(waltest.CrashAt(at, false, 0))
		if err := life(d, 7, lifeSteps, p); err == nil && !d.Crashed() {
			t.Fatalf("operation %d of %d did not crash", at, total)
		}
		n := 0
		for name, state := range d.States(uint64(at), 2) {
			if n++; n%stride(7, 17) != 0 {
				continue
			}
			states++
			if err := afterwards(state, 900, copyOfPast(p)); err != nil {
				t.Fatalf("crash before operation %d of %d, state %s: %v", at, total, name, err)
			}
		}
	}
	t.Logf("%d crash states at %d operations", states, total)
	layer.Cases, layer.Faults = states, states
	if states == 0 {
		t.Error("no states were tried")
	}
}

// Each operation of a life fails in each way there is: layer 2b. The process
// goes on as far as it can, ends, and is started again.
func TestEveryOperationFails(t *testing.T) {
	layer := record.Note(t, "2b fail everywhere")
	disk, before := aged(t)
	calm := disk.Kill()
	must(t, life(calm, 8, lifeSteps, copyOfPast(before)))
	total := calm.Ops()
	noSpace := fmt.Errorf("write: %w", syscall.ENOSPC)
	ways := map[string]func(at int) func(waltest.Op) waltest.Fault{
		"EIO once":            func(at int) func(waltest.Op) waltest.Fault { return waltest.FailAt(at, errIO, false) },
		"EIO from then on":    func(at int) func(waltest.Op) waltest.Fault { return waltest.FailAt(at, errIO, true) },
		"ENOSPC from then on": func(at int) func(waltest.Op) waltest.Fault { return waltest.FailAt(at, noSpace, true) },
		"killed after it":     func(at int) func(waltest.Op) waltest.Fault { return waltest.CrashAt(at, true, 0) },
		"torn after a byte":   func(at int) func(waltest.Op) waltest.Fault { return waltest.CrashAt(at, false, 1) },
		"torn in a sector":    func(at int) func(waltest.Op) waltest.Fault { return waltest.CrashAt(at, false, 700) },
		"failed but done": func(at int) func(waltest.Op) waltest.Fault {
			return func(op waltest.Op) waltest.Fault {
				if op.N == at {
					return waltest.Fault{Err: errIO, Done: true}
				}
				return waltest.Fault{}
			}
		},
	}
	cases, fired := 0, 0
	for at := 1; at <= total; at += stride(37, 151) {
		for way, fault := range ways {
			p := copyOfPast(before)
			d := disk.Kill()
			d.Inject(fault(at))
			err := life(d, 8, lifeSteps, p)
			cases++
			if err != nil {
				fired++
			}
			if errors.Is(err, errHistory) {
				t.Fatalf("operation %d of %d, %s: %v", at, total, way, err)
			}
			d = d.Kill() // heals, too
			if err := afterwards(d, 901, p); err != nil {
				t.Fatalf("operation %d of %d, %s: then %v", at, total, way, err)
			}
		}
	}
	t.Logf("%d cases, the process noticed %d", cases, fired)
	layer.Cases, layer.Faults = cases, cases
	if fired < cases/2 {
		t.Errorf("%d of %d faults were noticed", fired, cases)
	}
}

// A crash during the recovery from a crash.
func TestCrashInRecovery(t *testing.T) {
	layer := record.Note(t, "2b fail everywhere")
	disk, before := aged(t)
	crashed := disk.Kill()
	calm := disk.Kill()
	must(t, life(calm, 9, lifeSteps, copyOfPast(before)))
	p := copyOfPast(before)
	crashed.Inject(waltest.CrashAt(calm.Ops()*2/3, false, 100))
	if err := life(crashed, 9, lifeSteps, p); err == nil {
		t.Fatal("no crash")
	}
	for name, state := range crashed.States(3, 4) {
		ops := func() int {
			d := state.Kill()
			w, err := openWorld(d, "/store", 1, copyOfPast(p))
			must(t, err)
			must(t, w.close())
			return d.Ops()
		}()
		for at := 1; at <= ops; at += stride(61, 83) {
			d := state.Kill()
			d.Inject(waltest.CrashAt(at, false, 10))
			if w, err := openWorld(d, "/store", 1, copyOfPast(p)); err == nil {
				_ = w.close() // the crash may have come in it, or behind it
			}
			second := 0
			for again, state := range d.States(uint64(at), 1) {
				if second++; second%stride(11, 17) != 0 {
					continue
				}
				layer.Cases, layer.Faults = layer.Cases+1, layer.Faults+2
				if err := afterwards(state, 902, copyOfPast(p)); err != nil {
					t.Fatalf("state %s, then crash before operation %d, state %s: %v", name, at, again, err)
				}
			}
		}
		if testing.Short() {
			return
		}
	}
}

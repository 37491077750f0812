package recovery_test

import (
	"errors"
	"io/fs"
	"testing"

	"pawl/recovery"
	"pawl/wal/waltest"
)

// The power goes at any operation of any tool, and the disk keeps any of what was
// not synced. The store is as it was. What has the name of the result is all of
// it; where there is none, the same call makes it, whatever else was left.
// Repairs in place are TestCrashInRepair's.
func TestPowerCutInTheTools(t *testing.T) {
	disk, p := cleanStore(t, 800, 3, 30)
	_, err := recovery.Backup(t0, recovery.BackupOptions{FS: disk, Dir: "/store", To: "/base"})
	must(t, err)
	must(t, disk.SyncDir("/"))
	lsn := p.acked - 3
	for _, tt := range tools(lsn, p.walls[lsn]) {
		if tt.inPlace {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			before := disk.Kill()
			if tt.damage != nil {
				tt.damage(t, before)
			}
			store := image(before)
			calm := before.Kill()
			want, err := tt.whole(&exchangingDisk{calm})
			must(t, err)
			made := ""
			if tt.makes != "" {
				made = dump(stateOf(t, calm.Kill(), "/store"+tt.makes))
			}
			step := 1 // so that a tool has about 60 operations, or 20, and the last ones
			if n := stride(60, 20); n > 1 {
				step += calm.Ops() / n
			}
			there, states := 0, 0
			for at := 1; at <= calm.Ops(); at++ {
				if at%step != 0 && at < calm.Ops()-12 {
					continue
				}
				d := before.Kill()
				d.Inject(waltest.CrashAt(at, false, 7))
				_, _ = tt.run(&exchangingDisk{d}) // what it says, nobody hears
				n := 0
				for name, left := range d.States(uint64(at), 1) {
					if n++; n > 2 && n%stride(53, 211) != 0 {
						continue
					}
					states++
					for file, b := range store {
						if string(left.Contents(file)) != b {
							t.Fatalf("power cut before operation %d, state %s: %s is not what it was", at, name, file)
						}
					}
					if _, err := left.Stat("/store" + tt.makes); tt.makes != "" && !errors.Is(err, fs.ErrNotExist) {
						there++
						if got := dump(stateOf(t, left, "/store"+tt.makes)); got != made {
							t.Fatalf("power cut before operation %d, state %s: the result is\n%s\nwant\n%s", at, name, got, made)
						}
						continue
					}
					if got, err := tt.whole(&exchangingDisk{left}); err != nil || got != want {
						t.Fatalf("power cut before operation %d, state %s: a second try gives %v\n%s\nwant\n%s", at, name, err, got, want)
					}
				}
			}
			if states == 0 || tt.makes != "" && there == 0 {
				t.Error("the test tests nothing")
			}
			t.Logf("%d states, the result was there in %d", states, there)
		})
	}
}

package recovery_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pawl/internal/vfs"
	"pawl/recovery"
	"pawl/wal/waltest"
)

func TestMadeWorkedOnAndFoundAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		fs   vfs.FS
		dir  string
	}{
		{"memory", waltest.NewDisk(), "/store"},
		{"disk", vfs.OS{}, filepath.Join(t.TempDir(), "store")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPast()
			var id recovery.Identity
			for life := range 6 {
				w, err := openWorld(tt.fs, tt.dir, uint64(life), p)
				must(t, err)
				if life == 0 {
					id = w.store.Identity
				}
				if w.store.Identity != id {
					t.Fatalf("life %d: got store %+v, want %+v", life, w.store.Identity, id)
				}
				if r := w.store.Report; r.Created != (life == 0) || r.CutBytes != 0 || !r.Clean {
					t.Errorf("life %d: got the report %+v after a clean stop", life, r)
				}
				must(t, w.work(60))
				must(t, w.close())
			}
		})
	}
}

func TestExistingRefusesToMake(t *testing.T) {
	parent := t.TempDir()
	for _, dir := range []string{filepath.Join(parent, "missing"), parent} {
		opt := options(vfs.OS{}, dir)
		opt.Existing = true
		_, err := recovery.Open(t.Context(), opt)
		if !errors.Is(err, recovery.ErrNoStore) || recovery.ExitCode(err) != recovery.ExitCantCreate {
			t.Errorf("%s: got %v, exit %d", dir, err, recovery.ExitCode(err))
		}
	}
	if names := list(t, parent); len(names) != 0 {
		t.Errorf("a refused start left %v", names)
	}
}

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	id, err := recovery.Init(options(vfs.OS{}, dir))
	must(t, err)
	_, err = recovery.Init(options(vfs.OS{}, dir))
	if !errors.Is(err, recovery.ErrExists) || recovery.ExitCode(err) != recovery.ExitCantCreate {
		t.Errorf("got %v for a second init", err)
	}
	opt := options(vfs.OS{}, dir)
	opt.Existing = true
	store, err := recovery.Open(t.Context(), opt)
	must(t, err)
	defer store.Close()
	if store.Identity != id || store.Report.Created {
		t.Errorf("got %+v, created %v, want %+v", store.Identity, store.Report.Created, id)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	store, err := recovery.Open(t.Context(), options(vfs.OS{}, dir))
	must(t, err)
	before := contents(t, dir)
	for range 3 {
		_, err := recovery.Open(t.Context(), options(vfs.OS{}, dir))
		if !errors.Is(err, vfs.ErrLocked) || recovery.ExitCode(err) != recovery.ExitLocked {
			t.Fatalf("got %v", err)
		}
		if _, err := recovery.Check(t.Context(), recovery.CheckOptions{Dir: dir}); recovery.ExitCode(err) != recovery.ExitLocked {
			t.Fatalf("check: got %v", err)
		}
	}
	if !before.equal(contents(t, dir)) {
		t.Error("a refused start changed the directory")
	}
	must(t, store.Close())
	store, err = recovery.Open(t.Context(), options(vfs.OS{}, dir))
	must(t, err)
	must(t, store.Close())
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir string) string // returns what to open
		want error
		exit int
	}{
		{"other files", func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600))
			return dir
		}, recovery.ErrNotEmpty, recovery.ExitCantCreate},
		{"a file", func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
			return filepath.Join(dir, "file")
		}, nil, recovery.ExitCantCreate},
		{"no parent", func(t *testing.T, dir string) string { return filepath.Join(dir, "a", "b") }, os.ErrNotExist, recovery.ExitCantCreate},
		{"open to others", func(t *testing.T, dir string) string {
			must(t, os.Chmod(dir, 0o777))
			return dir
		}, recovery.ErrOpenToOthers, recovery.ExitPermission},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tt.make(t, t.TempDir())
			_, err := recovery.Open(t.Context(), options(vfs.OS{}, dir))
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || recovery.ExitCode(err) != tt.exit {
				t.Errorf("got %v, exit %d, want %v, exit %d", err, recovery.ExitCode(err), tt.want, tt.exit)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a line", err)
			}
		})
	}
}

// The lines of a start that an operator must see.
func TestLogLines(t *testing.T) {
	dir := t.TempDir()
	var lines bytes.Buffer
	opt := options(vfs.OS{}, dir)
	opt.Log = slog.New(slog.NewTextHandler(&lines, nil))
	store, err := recovery.Open(t.Context(), opt)
	must(t, err)
	must(t, store.Close())
	for _, want := range []string{"level=WARN", "made a new store", "msg=recovered", store.Identity.ID.String()} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &lines)
		}
	}
}

func TestOpenEndsWithContext(t *testing.T) {
	disk := waltest.NewDisk()
	w, err := openWorld(disk, "/store", 1, newPast())
	must(t, err)
	must(t, w.work(50))
	must(t, w.close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 { // who notices first, the reader of the log or who applies it, is a matter of chance
		if _, err := recovery.Open(ctx, options(disk, "/store")); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}
	}
}

// bytesOf is all files below a directory.
type bytesOf map[string]string

func (b bytesOf) equal(other bytesOf) bool {
	if len(b) != len(other) {
		return false
	}
	for name, bytes := range b {
		if got, ok := other[name]; !ok || got != bytes {
			return false
		}
	}
	return true
}

func contents(t testing.TB, dir string) bytesOf {
	t.Helper()
	all := bytesOf{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	must(t, err)
	return all
}

func list(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

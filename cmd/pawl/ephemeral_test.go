package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawl/client"
	"pawl/internal/vfs"
)

// TestEphemeral: nothing is left when the daemon ends, and what a killed one has
// left goes when the next one starts; what somebody holds stays.
func TestEphemeral(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	old := time.Now().Add(-2 * abandonedAfter)
	leave := func(name string, age time.Time) string {
		t.Helper()
		dir := filepath.Join(tmp, name)
		if err := os.MkdirAll(filepath.Join(dir, "log"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, age, age); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	killed, held, fresh, foreign := leave("pawl-ephemeral-1", old), leave("pawl-ephemeral-2", old), leave("pawl-ephemeral-3", time.Now()), leave("other-1", old)
	lock, err := vfs.OS{}.Lock(held)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.Chtimes(held, old, old); err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	s := serveIn(t, dir, "--ephemeral").ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	if _, err := c.Enqueue(t.Context(), client.Job{Queue: "q", Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	info, err := c.Do(t.Context(), "INFO")
	if err != nil || infoNumber(info.Text, "ephemeral") != 1 {
		t.Errorf("INFO says ephemeral:%d (%v), want 1", infoNumber(info.Text, "ephemeral"), err)
	}
	for name, there := range map[string]bool{killed: false, held: true, fresh: true, foreign: true} {
		if _, err := os.Stat(name); (err == nil) != there {
			t.Errorf("%s: there is %v, want %v", filepath.Base(name), err == nil, there)
		}
	}
	s.end(t)
	again := leave("pawl-ephemeral-4", old)
	serveIn(t, t.TempDir()).ready(t).end(t) // any daemon
	if _, err := os.Stat(again); err == nil {
		t.Error("what a killed daemon has left stays at a start of another kind")
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "pawl-ephemeral-") && entry.Name() != filepath.Base(held) && entry.Name() != filepath.Base(fresh) {
			t.Errorf("left behind: %s", entry.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("an ephemeral daemon made its --dir")
	}
}

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pawl/client"
)

func TestReload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pawl.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("log_level = \"info\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, dir, "--config", file).ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	level := func() string {
		t.Helper()
		v, err := c.Do(t.Context(), "CONFIG", "GET", "log_level")
		if err != nil {
			t.Fatal(err)
		}
		return v.Field("log_level").Text
	}
	write("log_level = \"debug\"\nkeep = \"1h\"\n")
	s.stderr.wait(t, "msg=changed option=log-level from=info to=debug")
	s.stderr.wait(t, `needs a restart" option=keep now=0s then=1h0m0s`)
	if got := level(); got != "debug" {
		t.Errorf("log_level is %s, want debug", got)
	}
	write("log_levle = \"info\"\n")
	s.stderr.wait(t, "nothing has changed.*did you mean log_level")
	if got := level(); got != "debug" {
		t.Errorf("after a bad file log_level is %s, want debug as before", got)
	}
	s.end(t)
}

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file for what is lost is there before anything is repaired, or nothing is
// done; and it is not left behind where nothing was.
func TestRepairLostFile(t *testing.T) {
	dir := t.TempDir()
	store, there, fresh := filepath.Join(dir, "data"), filepath.Join(dir, "there"), filepath.Join(dir, "fresh")
	if err := os.WriteFile(there, []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args string
		code int
		told string
	}{
		{"init " + store, exitOK, "made store"},
		{"repair --lost " + there + " " + store, exitCreate, ""},
		{"repair --lost " + fresh + " " + store + "-missing", exitCreate, ""},
		{"repair --lost " + fresh + " " + store, exitOK, "nothing to repair"}, // the step before has left no file
	} {
		var out strings.Builder
		e := &env{stdin: strings.NewReader(""), stdout: &out, stderr: io.Discard, lookup: func(string) (string, bool) { return "", false }}
		if code := run(context.Background(), e, strings.Fields(step.args)); code != step.code || !strings.Contains(out.String(), step.told) || step.told == "" && out.Len() > 0 {
			t.Errorf("%s: exit code %d, said %q, want %d and %q", step.args, code, &out, step.code, step.told)
		}
	}
	if b, err := os.ReadFile(there); err != nil || string(b) != "somebody's" {
		t.Errorf("the file that was there is %q, %v", b, err)
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// linkPawl makes path a pawl: the binary of this test, which is pawl when it is
// called so (see TestMain).
func linkPawl(t *testing.T, path string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, path) == nil {
		return
	}
	data, err := os.ReadFile(self) // another file system
	if err == nil {
		err = os.WriteFile(path, data, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestStart runs the shell blocks of docs/start.md as they stand, one after the
// other in one shell, as a new user would. Only the addresses are of its own,
// by the environment: tests share no ports.
func TestStart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	text, err := os.ReadFile("../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	blocks := 0
	for rest := string(text); ; blocks++ {
		_, behind, found := strings.Cut(rest, "\n```sh\n")
		if !found {
			break
		}
		block, after, closed := strings.Cut(behind, "\n```\n")
		if !closed {
			t.Fatal("a block without an end")
		}
		script.WriteString(block + "\n")
		rest = after
	}
	if blocks < 6 {
		t.Fatalf("found %d blocks, want 6 or more: has the page changed its form?", blocks)
	}
	script.WriteString("kill %1\nwait %1\n") // and a clean stop, exit code 0
	dir := t.TempDir()
	linkPawl(t, filepath.Join(dir, "pawl"))
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	cmd := exec.Command(shell, "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PAWL_ADDR="+filepath.Join(dir, "s"), "PAWL_HTTP_ADDR=", "PAWL_ADMIN_ADDR=", "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"PONG", "got: hello", "enqueued 1000 jobs", "\n1000\n", "no such address", "stays gone"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
}

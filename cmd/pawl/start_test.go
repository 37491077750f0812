package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// shellBlocks are the shell blocks of a page, one behind the other, for one shell.
func shellBlocks(t *testing.T, page string, least int) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
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
	if blocks < least {
		t.Fatalf("%s: found %d blocks, want %d or more: has the page changed its form?", page, blocks, least)
	}
	return script.String()
}

// runShell runs a script in a directory of its own, where pawl is a program.
func runShell(t *testing.T, script string, env func(dir string) []string) string {
	t.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	linkPawl(t, filepath.Join(dir, "pawl"))
	cmd := exec.Command(shell, "-c", script)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "TMPDIR="+dir, "PATH="+dir+":"+os.Getenv("PATH")), env(dir)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestStart runs the shell blocks of docs/start.md as they stand, as a new user
// would. Only the addresses are of its own, by the environment: tests share no
// ports.
func TestStart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	script := shellBlocks(t, "start.md", 6) + "kill %1\nwait %1\n" // and a clean stop, exit code 0
	out := runShell(t, script, func(dir string) []string {
		return []string{"PAWL_ADDR=" + filepath.Join(dir, "s"), "PAWL_HTTP_ADDR=", "PAWL_ADMIN_ADDR="}
	})
	for _, want := range []string{"PONG", "got: hello", "enqueued 1000 jobs", "\n1000\n", "no such address", "stays gone"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
}

// TestLmstfyPage runs the requests of docs/lmstfy.md as they stand, but for the
// address, and compares the replies with those that are printed there.
func TestLmstfyPage(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	s := serveIn(t, t.TempDir(), "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0").ready(t)
	public := s.stderr.wait(t, `for="lmstfy clients" addr=(127[^\s]+)`)
	admin := s.stderr.wait(t, `for=operators addr=(127[^\s]+)`)
	script := strings.ReplaceAll(shellBlocks(t, "lmstfy.md", 1), "127.0.0.1:7777", public)
	out := runShell(t, script, func(string) []string { return []string{"PAWL_ADMIN=http://" + admin} })
	text, err := os.ReadFile("../../docs/lmstfy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, printed, _ := strings.Cut(string(text), "\n```\n{")
	printed, _, _ = strings.Cut(printed, "\n```\n")
	varies := regexp.MustCompile(`"job_id":"\w{26}"|"elapsed_ms":\d+`)
	if got, want := varies.ReplaceAllString(out, "…"), varies.ReplaceAllString("{"+printed+"\n", "…"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

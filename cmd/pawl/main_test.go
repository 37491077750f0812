package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pawl": func() { os.Exit(Main()) }})
}

// TestScripts runs testdata/script: the real command line, with processes of
// its own for daemons. They talk over Unix sockets, so no port is needed.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, v := range e.Vars {
				if strings.HasPrefix(v, "PAWL_") {
					return errors.New("the environment of the tests holds " + v)
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
	})
}

// exits CODE COMMAND... runs a command and wants this exit code. Its output is
// there for stdout and stderr as after exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// testEnv is an env with nothing in it, and its two outputs.
func testEnv(vars map[string]string) (e *env, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	e = &env{stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, lookup: func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}}
	return e, stdout, stderr
}

// Defining a flag twice panics: build all sets once, and look at what every
// subcommand says of itself.
func TestSubcommands(t *testing.T) {
	e, _, _ := testEnv(nil)
	seen := map[string]bool{}
	groups := map[string]bool{groupDaemon: true, groupJobs: true, groupQueues: true, groupData: true, groupTools: true}
	for _, c := range subcommands() {
		if seen[c.name] {
			t.Errorf("%s stands twice in the table", c.name)
		}
		seen[c.name] = true
		if c.summary == "" || strings.HasSuffix(c.summary, ".") || !groups[c.group] {
			t.Errorf("%s: summary %q, group %q", c.name, c.summary, c.group)
		}
		fs, run := c.flags(e)
		if fs == nil || run == nil {
			t.Fatalf("%s has no flags or no function", c.name)
		}
		if code := runNamed(t.Context(), e, c.name, []string{"--help"}); code != exitOK {
			t.Errorf("pawl %s --help exits with %d", c.name, code)
		}
		if code := runNamed(t.Context(), e, c.name, []string{"--no-such-flag"}); code != exitUsage {
			t.Errorf("pawl %s --no-such-flag exits with %d, want %d", c.name, code, exitUsage)
		}
	}
}

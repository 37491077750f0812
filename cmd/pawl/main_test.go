package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
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
			"exits":   exits,
			"objects": objects,
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

// objects COUNT wants what stands on standard output to be that many JSON
// values, one a line; + is one or more.
func objects(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: objects COUNT")
	}
	text := ts.ReadFile("stdout")
	n := 0
	for line := range strings.Lines(text) {
		n++
		if !json.Valid([]byte(line)) {
			ts.Fatalf("no JSON: %s", line)
		}
		if name := twice(line); name != "" {
			ts.Fatalf("%q stands twice: %s", name, line)
		}
	}
	if got := strconv.Itoa(n); got != args[0] && (args[0] != "+" || n == 0) || !strings.HasSuffix(text, "\n") {
		ts.Fatalf("%s lines of JSON, want %s:\n%s", got, args[0], text)
	}
}

// twice is a name that the object has twice, of which readers take either.
func twice(line string) string {
	if line[0] != '{' {
		return ""
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.Token()
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return "what is no name"
		}
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
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
	script, err := os.ReadFile("testdata/script/json.txt")
	if err != nil {
		t.Fatal(err)
	}
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
		asJSON := fs.Lookup("json")
		switch {
		case c.name == "bench", c.name == "import", c.name == "token": // tested where what they need is at hand: other queues, a Redis, a port
			if asJSON == nil {
				t.Errorf("%s has no --json", c.name)
			}
		case c.name == "serve", c.name == "completion": // one has --log-format, the other prints a script
			if asJSON != nil {
				t.Errorf("%s has --json now: let it be tested", c.name)
			}
		case asJSON == nil || asJSON.Value.Type() != "bool":
			t.Errorf("%s has no --json", c.name)
		case !regexp.MustCompile(`(?m)^(exits \d|exec sh -c .*) ?pawl ` + c.name + ` .*--json.*\n(stdin .*\n)?objects`).Match(script):
			t.Errorf("testdata/script/json.txt does not try pawl %s --json", c.name)
		}
		if code := runNamed(t.Context(), e, c.name, []string{"--help"}); code != exitOK {
			t.Errorf("pawl %s --help exits with %d", c.name, code)
		}
		if code := runNamed(t.Context(), e, c.name, []string{"--no-such-flag"}); code != exitUsage {
			t.Errorf("pawl %s --no-such-flag exits with %d, want %d", c.name, code, exitUsage)
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestBashCompletes asks bash for every subcommand, every first word and every
// flag that there is.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	e, stdout, _ := testEnv(nil)
	if code := run(t.Context(), e, []string{"completion", "bash"}); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pawl.bash"), stdout.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	// One line an answer: what was typed, a tab, the proposals.
	var script bytes.Buffer
	script.WriteString("source ./pawl.bash\nask() { COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)) COMPREPLY=(); _pawl; echo \"$*\t${COMPREPLY[*]}\"; }\n")
	type question struct {
		typed string
		want  []string
	}
	var asked []question
	ask := func(want []string, words ...string) {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = "'" + w + "'"
		}
		fmt.Fprintf(&script, "ask %s\n", strings.Join(quoted, " "))
		asked = append(asked, question{strings.Join(words, " "), want})
	}
	var names []string
	for _, c := range subcommands() {
		names = append(names, c.name)
		var flags []string
		fs, _ := c.flags(e)
		fs.VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
		ask(append(flags, "--help"), "pawl", c.name, "--")
		if len(c.words) > 0 {
			ask(c.words, "pawl", c.name, "")
		}
	}
	ask(append(names, "help"), "pawl", "")
	ask(names, "pawl", "help", "")
	cmd := exec.Command(bash, "--norc", "-c", strings.ReplaceAll(script.String(), "\\t", "\t"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("bash: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(asked) {
		t.Fatalf("%d answers to %d questions:\n%s", len(lines), len(asked), out)
	}
	for i, q := range asked {
		_, proposals, _ := strings.Cut(lines[i], "\t")
		got := strings.Fields(proposals)
		for _, want := range q.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: %s is not proposed", q.typed, want)
			}
		}
	}
}

// TestCompletionsAreScripts: zsh and fish take theirs, where they are.
func TestCompletionsAreScripts(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		e, stdout, _ := testEnv(nil)
		if code := run(t.Context(), e, []string{"completion", shell}); code != exitOK {
			t.Fatalf("%s: exit code %d", shell, code)
		}
		for _, c := range subcommands() {
			if !strings.Contains(stdout.String(), c.name) {
				t.Errorf("%s: no %s", shell, c.name)
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "pawl."+shell)
		if err := os.WriteFile(file, stdout.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(path, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pawl/client"
	"pawl/config"
)

// docs/commands.md names every command that the daemon knows, and no other.
func TestCommandsPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	// Whatever stands in code and begins with upper case: `JOB GET id`,
	// `CLIENT ID|GETNAME`.
	text := strings.ReplaceAll(string(data), `\|`, "|")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`([A-Z][^`]*)`").FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		documented[strings.ToLower(words[0])] = true
		if len(words) > 1 {
			for sub := range strings.SplitSeq(words[1], "|") {
				documented[strings.ToLower(words[0]+"|"+sub)] = true
			}
		}
	}
	s := serveIn(t, t.TempDir(), "--sync", "never").ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	v, err := c.Do(t.Context(), "COMMAND", "DOCS")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for i := 0; i+1 < len(v.Elems); i += 2 {
		known = append(known, v.Elems[i].Text)
		subs := v.Elems[i+1].Field("subcommands")
		for k := 0; k+1 < len(subs.Elems); k += 2 {
			known = append(known, subs.Elems[k].Text)
		}
	}
	if len(known) < 80 {
		t.Fatalf("COMMAND DOCS names %d commands", len(known))
	}
	for _, name := range known {
		if container, sub, is := strings.Cut(name, "|"); is {
			// CLIENT TRACKING and its like stand in a cell of their own.
			if sub != "help" && !documented[name] && !documented[sub] {
				t.Errorf("docs/commands.md does not name %s %s", strings.ToUpper(container), strings.ToUpper(sub))
			}
		} else if !documented[name] {
			t.Errorf("docs/commands.md does not name %s", strings.ToUpper(name))
		}
	}
	for name := range documented {
		if container, sub, is := strings.Cut(name, "|"); is && slices.Contains([]string{"job", "queue", "cron", "client", "acl"}, container) &&
			!slices.Contains(known, name) && !strings.Contains(sub, "…") {
			t.Errorf("docs/commands.md names %s %s, which the daemon does not know", container, sub)
		}
	}
	s.end(t)
}

// The table of docs/operations.md names every option once, and says of exactly
// those that a running daemon does not take that they need a restart.
func TestReloadTable(t *testing.T) {
	data, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(data), "| options | a change |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	restart := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			t.Fatalf("no row of two cells: %s", line)
		}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			if _, twice := restart[m[1]]; twice {
				t.Errorf("%s stands twice", m[1])
			}
			restart[m[1]] = strings.Contains(cells[2], "needs a restart")
		}
	}
	set, err := config.Load(nil, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range set.Options {
		if o.Name == "config" { // not an option of the file
			continue
		}
		says, there := restart[o.Key()]
		if !there || says == o.Reload {
			t.Errorf("%s: in the table %t, which says restart %t; a running daemon takes it: %t", o.Key(), there, says, o.Reload)
		}
		delete(restart, o.Key())
	}
	delete(restart, "users")
	delete(restart, "accounts")
	for name := range restart {
		t.Errorf("%s is no option", name)
	}
}

// Links between the documents lead somewhere.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md", "../../ARCHITECTURE.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`).FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// docs/limits.md tells the truth as far as a program can see: each row's flag is
// one, what counts it is in INFO or among the metrics, its error is in the code
// and in the dialogue that is named, and its test exists.
func TestLimitsPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, t.TempDir(), "--sync", "never").ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	info, err := c.Do(t.Context(), "INFO")
	if err != nil {
		t.Fatal(err)
	}
	s.end(t)
	counters := info.Text + read(t, "../../docs/metrics.md") // which has a test of its own
	flags := read(t, "../../config/option.go")
	code, tests := sources(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.SplitSeq(string(data), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 6 || strings.HasPrefix(line, "| what") {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| what") {
				t.Errorf("not a row of six cells: %s", line)
			}
			continue
		}
		rows++
		name, flag, beyond, counted, test := strings.TrimPrefix(cells[0], "| "), cells[2], cells[3], cells[4], strings.Trim(cells[5], " `|")
		for _, m := range quoted.FindAllStringSubmatch(flag, -1) {
			if !strings.Contains(flags, `"`+strings.TrimPrefix(m[1], "--")+`"`) {
				t.Errorf("%s: there is no flag %s", name, m[1])
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(counted, -1) {
			if !strings.Contains(counters, m[1]) {
				t.Errorf("%s: %s is neither in INFO nor a metric", name, m[1])
			}
		}
		function, dialogue, is := strings.Cut(test, "/")
		if !strings.Contains(tests, "func "+function+"(") {
			t.Errorf("%s: there is no test %s", name, function)
		}
		for _, m := range quoted.FindAllStringSubmatch(beyond, -1) {
			if words := strings.Fields(m[1]); words[0] != strings.ToUpper(words[0]) {
				continue
			}
			// The first word is often put before the text of an error.
			if _, text, several := strings.Cut(m[1], " "); !strings.Contains(code, m[1]) && (!several || !strings.Contains(code, text)) {
				t.Errorf("%s: no code says %q", name, m[1])
			}
			if is && !strings.Contains(read(t, "../../server/resp/testdata/"+dialogue+".txt"), m[1]) {
				t.Errorf("%s: %q is not in the dialogue %s", name, m[1], dialogue)
			}
		}
	}
	if rows < 50 {
		t.Errorf("%d rows were read", rows)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sources are all the Go code of the repository, and all its tests.
func sources(t *testing.T) (code, tests string) {
	t.Helper()
	var c, s strings.Builder
	for _, dir := range []string{"acl", "engine", "server", "state"} {
		err := filepath.WalkDir("../../"+dir, func(name string, _ fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case strings.HasSuffix(name, "_test.go"):
				s.WriteString(read(t, name))
			case strings.HasSuffix(name, ".go"):
				c.WriteString(read(t, name))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c.String(), s.String()
}

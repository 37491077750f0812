package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pawl/client"
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

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md from what the subcommands say of themselves")

const cliPage = "../../docs/cli.md"

// docs/cli.md is what pawl help says of every subcommand.
func TestHelpPage(t *testing.T) {
	page := helpPage(t)
	if *update {
		if err := os.WriteFile(cliPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, cliPage) != page {
		t.Errorf("%s is not what pawl help says; go test -run TestHelpPage -update ./cmd/pawl", cliPage)
	}
}

func helpPage(t *testing.T) string {
	t.Helper()
	e, stdout, _ := testEnv(nil)
	connection := newFlagSet("")
	addRemote(e, connection)
	serve, _ := serveCommand().flags(e)
	var page strings.Builder
	if code := run(t.Context(), e, []string{"help"}); code != exitOK {
		t.Fatalf("pawl help exits with %d", code)
	}
	fmt.Fprintf(&page, "# Every subcommand and every flag\n\nMade from the program, which says the same: `pawl help` and `pawl help SUBCOMMAND`.\n\n```\n%s```\n", stdout)
	fmt.Fprintf(&page, "\n## Connection flags\n\nEvery subcommand over a connection to a daemon has these besides its own.\n\n```\n%s```\n", usages(connection, nil))
	for _, c := range subcommands() {
		fs, _ := c.flags(e)
		known, behind := map[*pflag.FlagSet]string{connection: "[connection flags] "}, ""
		if c.name == "config" {
			known = map[*pflag.FlagSet]string{serve: "[flags of serve] "}
		}
		for set, words := range known {
			if has(fs, set) {
				behind = words
				continue
			}
			delete(known, set)
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s.\n\n```\npawl %s [flags] %s%s\n", c.name, upperFirst(c.summary), c.name, behind, c.args)
		own := usages(fs, known)
		if own != "" {
			page.WriteString("\n" + own)
		}
		page.WriteString("```\n")
	}
	return strings.ReplaceAll(page.String(), " \n", "\n")
}

// has says whether all flags of the other set are in fs, and mean the same.
func has(fs, other *pflag.FlagSet) bool {
	all := true
	other.VisitAll(func(f *pflag.Flag) {
		own := fs.Lookup(f.Name)
		all = all && own != nil && own.Usage == f.Usage
	})
	return all
}

// usages are the lines about the flags of fs that are in none of the known sets.
func usages(fs *pflag.FlagSet, known map[*pflag.FlagSet]string) string {
	own := newFlagSet("")
	fs.VisitAll(func(f *pflag.Flag) {
		for set := range known {
			if set.Lookup(f.Name) != nil {
				return
			}
		}
		own.AddFlag(f)
	})
	return own.FlagUsagesWrapped(100)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// foreign are the flags in the documents that belong to other programs: systemctl,
// strace, redis-cli.
var foreign = []string{
	"now", "seccomp-bpf",
	"csv", "pipe", "latency", "stat", "scan", "bigkeys", "eval", "rdb", "cluster",
}

// No document names a flag that is not there, or behind a subcommand one that it
// does not have.
func TestFlagsInTheDocuments(t *testing.T) {
	e, _, _ := testEnv(nil)
	sets := map[string]*pflag.FlagSet{}
	for _, c := range subcommands() {
		sets[c.name], _ = c.flags(e)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	name := regexp.MustCompile(`--([a-z0-9][a-z0-9-]*)`)
	lines := 0
	for _, page := range append(pages, "../../README.md", "../../ARCHITECTURE.md") {
		if page == cliPage { // has a test of its own
			continue
		}
		for _, text := range codeIn(read(t, page)) {
			words := strings.Fields(text)
			sub := ""
			if at := slices.Index(words, "pawl"); at >= 0 && at+1 < len(words) && sets[words[at+1]] != nil {
				sub = words[at+1]
				lines++
			}
			for _, m := range name.FindAllStringSubmatch(text, -1) {
				found := m[1] == "help" || slices.Contains(foreign, m[1])
				for of, set := range sets {
					found = found || (sub == "" || sub == of) && set.Lookup(m[1]) != nil
				}
				if !found {
					t.Errorf("%s: there is no --%s in %q", page, m[1], text)
				}
			}
		}
	}
	if lines < 80 {
		t.Errorf("%d command lines were read", lines)
	}
}

// codeIn are the pieces of code of a page: the lines of its blocks, and what
// stands between backticks.
func codeIn(page string) []string {
	var code []string
	fenced := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			code = append(code, line)
		default:
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
				code = append(code, m[1])
			}
		}
	}
	return code
}

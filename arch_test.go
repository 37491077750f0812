package pawl_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is one line of the table of packages in ARCHITECTURE.md.
type row struct {
	dir           string
	inside        []string // directories of this module it may import
	outside       []string // module paths it may import
	anyIn, anyOut bool
}

// readTable reads the table under the heading Packages.
func readTable(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## Packages\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no heading Packages")
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	var rows []row
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || !strings.Contains(cells[0], "`") {
			continue
		}
		names := func(cell string) (list []string, all bool) {
			if strings.TrimSpace(cell) == "everything" {
				return nil, true
			}
			for i, part := range strings.Split(cell, "`") {
				if i%2 == 1 {
					list = append(list, part)
				}
			}
			return list, false
		}
		dirs, _ := names(cells[0])
		r := row{dir: dirs[0]}
		r.inside, r.anyIn = names(cells[2])
		r.outside, r.anyOut = names(cells[3])
		rows = append(rows, r)
	}
	if len(rows) < 10 {
		t.Fatalf("read only %d rows of the table", len(rows))
	}
	return rows
}

// within tells whether path is dir or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// owner is the row that holds for a directory: the one with the longest name.
func owner(rows []row, dir string) *row {
	var best *row
	for i := range rows {
		if within(dir, rows[i].dir) && (best == nil || len(rows[i].dir) > len(best.dir)) {
			best = &rows[i]
		}
	}
	return best
}

// refuse says why a file in dir may not import path, or "".
func refuse(rows []row, dir, path string, test bool) string {
	if target, ours := strings.CutPrefix(path, "pawl/"); ours {
		if within(target, "cmd") && !within(dir, "cmd") {
			return "nobody imports a command"
		}
		if r := owner(rows, dir); test || r.anyIn || within(target, r.dir) || slices.ContainsFunc(r.inside, func(d string) bool { return target == d || within(target, d) && owner(rows, target).dir == d }) {
			return ""
		}
		return "the table does not allow it"
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	if r := owner(rows, dir); test || r.anyOut || slices.ContainsFunc(r.outside, func(m string) bool { return within(path, m) }) {
		return ""
	}
	return "the table does not allow it"
}

// TestImports holds every Go file of the module, for all platforms, against
// the table of packages in ARCHITECTURE.md.
func TestImports(t *testing.T) {
	rows := readTable(t)
	used := map[string]bool{}     // directories
	taken := map[[2]string]bool{} // what a row allows, and code that is no test imports
	take := func(r *row, path string) {
		for _, d := range r.inside {
			if target, ours := strings.CutPrefix(path, "pawl/"); ours && within(target, d) {
				taken[[2]string{r.dir, d}] = true
			}
		}
		for _, m := range r.outside {
			if within(path, m) {
				taken[[2]string{r.dir, m}] = true
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || filepath.Dir(path) == "." {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		r := owner(rows, dir)
		if r == nil {
			t.Errorf("%s has no row in the table of packages", dir)
			return nil
		}
		used[r.dir] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if imported == "unsafe" {
				t.Errorf("%s imports unsafe", path)
			}
			test := strings.HasSuffix(name, "_test.go")
			if why := refuse(rows, dir, imported, test); why != "" {
				t.Errorf("%s imports %s: %s", path, imported, why)
			}
			if !test {
				take(r, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if !used[r.dir] {
			t.Errorf("the table has a row for %s, which has no Go files", r.dir)
		}
		if seen[r.dir] {
			t.Errorf("the table has two rows for %s", r.dir)
		}
		seen[r.dir] = true
		for _, allowed := range slices.Concat(r.inside, r.outside) {
			if !taken[[2]string{r.dir, allowed}] {
				t.Errorf("the table lets %s import %s, which it does not", r.dir, allowed)
			}
		}
	}
}

// The rules themselves, on imports that nobody has written.
func TestRefuse(t *testing.T) {
	rows := readTable(t)
	for _, c := range []struct {
		dir, path     string
		test, refused bool
	}{
		{"state", "pawl/wal", false, true},
		{"state", "github.com/google/btree", false, true},
		{"state", "github.com/tidwall/wal", false, true},
		{"state/statetest", "pawl/state", false, false},
		{"state/statetest", "pawl/engine", false, true},
		{"state", "pawl/engine", true, false},
		{"wal", "pawl/internal/vfs", false, false},
		{"wal", "pawl/internal/torture/history", false, true},
		{"server/resp", "pawl/wal", false, true},
		{"server/resp", "pawl/server/lmstfy", false, true},
		{"engine", "pawl/cmd/pawl", true, true},
		{"internal/torture/daemon", "pawl/cmd/pawl", false, true},
		{"cmd/pawl", "pawl/recovery", false, false},
		{"reaper", "time", false, false},
	} {
		if why := refuse(rows, c.dir, c.path, c.test); (why != "") != c.refused {
			t.Errorf("%s imports %s (test %t): got %q, want refused %t", c.dir, c.path, c.test, why, c.refused)
		}
	}
}

package record_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/internal/record"
)

// What is on record is well-formed, and clean: a run that broke a promise is
// mended first and then played again.
func TestOnRecord(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "docs", "record.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := record.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range runs {
		if r.Violations != 0 || r.Undecided != 0 {
			t.Errorf("run %d is not clean: %s", i+1, r)
		}
		if r.Cases+r.Faults == 0 || r.Seconds <= 0 {
			t.Errorf("run %d did nothing: %s", i+1, r)
		}
		if r.Commit == "unknown" {
			t.Errorf("run %d is of unknown code: %s", i+1, r)
		}
	}
}

func TestAppendAndRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "record.tsv")
	if runs, err := record.ReadFile(name); err != nil || len(runs) != 0 {
		t.Fatalf("a record that is not there: got %v, %v", runs, err)
	}
	want := []record.Run{
		{Date: time.Unix(1800000000, 0).UTC(), Commit: "abc", Layer: "kill", Seed: "s/1", Parameters: "-kills=9", Cases: 100, Faults: 9, Seconds: 1.5},
		{Date: time.Unix(1800000001, 0).UTC(), Commit: "abc+", Layer: "2a", Seed: "s", Cases: 7, Violations: 1, Undecided: 2, Seconds: 0.1},
	}
	for _, r := range want {
		if err := record.Append(name, r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := record.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTextStaysInItsField(t *testing.T) {
	name := filepath.Join(t.TempDir(), "record.tsv")
	if err := record.Append(name, record.Run{Commit: "c", Layer: "a\tb", Seed: "x\ny", Parameters: "p\r"}); err != nil {
		t.Fatal(err)
	}
	runs, err := record.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if r := runs[0]; r.Layer != "a b" || r.Seed != "x y" || r.Parameters != "p " {
		t.Errorf("got %q, %q, %q", r.Layer, r.Seed, r.Parameters)
	}
}

func TestReadRefuses(t *testing.T) {
	const good = "2026-11-28T18:00:00Z\tc\tkill\ts\t\t1\t1\t0\t0\t1.0\n"
	for _, c := range []struct{ what, text, says string }{
		{"something else", "# A title\n", "line 1"},
		{"a field too few", record.Header + "\n" + strings.Replace(good, "\t0\t", "\t", 1), "line 2"},
		{"no number", record.Header + "\n" + strings.Replace(good, "\t1\t1\t", "\t1\tmany\t", 1), "line 2"},
		{"a negative number", record.Header + "\n" + good + strings.Replace(good, "\t1\t1\t", "\t-1\t1\t", 1), "line 3"},
		{"no date", record.Header + "\n" + strings.Replace(good, "2026-11-28", "yesterday", 1), "line 2"},
		{"no seed", record.Header + "\n" + strings.Replace(good, "\ts\t", "\t\t", 1), "line 2"},
	} {
		if _, err := record.Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", c.what, err, c.says)
		}
	}
	if _, err := record.Read(strings.NewReader(record.Header + "\n" + good)); err != nil {
		t.Errorf("a good line: %v", err)
	}
}

func TestTable(t *testing.T) {
	runs := []record.Run{
		{Layer: "kill", Seed: "a", Commit: "1", Cases: 10, Faults: 2, Seconds: 1},
		{Layer: "10 determinism", Seed: "a", Commit: "1", Cases: 200},
		{Layer: "kill", Seed: "b", Commit: "1", Cases: 5, Faults: 1, Seconds: 2},
		{Layer: "2a truncate", Seed: "a", Commit: "1", Cases: 7, Violations: 3},
	}
	sums := record.Sums(runs)
	var names []string
	for _, s := range sums {
		names = append(names, s.Layer)
	}
	if want := []string{"2a truncate", "10 determinism", "kill"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if k := sums[2]; k.Runs != 2 || k.Cases != 15 || k.Faults != 3 || k.Seeds != 2 || k.Commits != 1 || k.Seconds != 3 {
		t.Errorf("kill: got %+v", k)
	}
	var b strings.Builder
	if err := record.Table(&b, sums); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 5 || !strings.Contains(lines[4], "222") {
		t.Errorf("got\n%s", b.String())
	}
}

// note is a test that only looks like one.
type note struct {
	testing.TB
	failed, skipped bool
	cleanups        []func()
}

func (n *note) Helper()          {}
func (n *note) Name() string     { return "TestOfNothing" }
func (n *note) Failed() bool     { return n.failed }
func (n *note) Skipped() bool    { return n.skipped }
func (n *note) Cleanup(f func()) { n.cleanups = append(n.cleanups, f) }
func (n *note) end() {
	for _, f := range n.cleanups {
		f()
	}
}

func TestNote(t *testing.T) {
	name := filepath.Join(t.TempDir(), "record.tsv")
	t.Setenv(record.Variable, name)
	good, bad, none := &note{TB: t}, &note{TB: t, failed: true}, &note{TB: t, skipped: true}
	for i, n := range []*note{good, bad, none} {
		l := record.Note(n, "4 rot")
		l.Cases, l.Faults = 10*(i+1), i
		n.end()
	}
	runs, err := record.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 2 {
		t.Fatalf("got %d runs, want 2: the skipped one says nothing", len(runs))
	}
	if r := runs[0]; r.Cases != 10 || r.Violations != 0 || r.Layer != "4 rot" || r.Parameters != "TestOfNothing" {
		t.Errorf("the good one: %+v", r)
	}
	if r := runs[1]; r.Cases != 20 || r.Faults != 1 || r.Violations != 1 {
		t.Errorf("the bad one: %+v", r)
	}
	t.Setenv(record.Variable, "")
	silent := &note{TB: t}
	record.Note(silent, "4 rot")
	if len(silent.cleanups) != 0 {
		t.Error("without a file there is something to do at the end")
	}
}

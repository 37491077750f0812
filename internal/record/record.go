// Package record keeps account of the proofs: each run of a layer is one line
// in a file of tab-separated values, appended and never changed, so that runs
// of many days and machines add up.
//
//	record.Append("docs/record.tsv", record.Run{Layer: "kill", Seed: "long1", Cases: 160_000, Faults: 200})
//
// The programs of internal/torture write a line when told to by -record; tests
// that are layers of their own do with [Note] when PAWL_RECORD names a file.
package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Variable is the name of the environment variable that names the file to which
// tests append.
const Variable = "PAWL_RECORD"

// Header is the first line of a record, without its end.
const Header = "date\tcommit\tlayer\tseed\tparameters\tcases\tfaults\tviolations\tundecided\tseconds"

// columns is how many fields a line has.
const columns = 10

// Run is one run of one layer. Text fields hold no tabs or line ends; Append
// makes spaces of them.
type Run struct {
	Date       time.Time // of its end, whole seconds, UTC
	Commit     string    // of the code under test, with "+" behind it if that was changed; "unknown" if nobody knows
	Layer      string    // "kill", "power/ext4"
	Seed       string    // of package seeds; the run is played again with it
	Parameters string    // flags, or whatever else decided how much was done; may be empty
	Cases      int       // operations, states or inputs that were judged
	Faults     int       // that took place: kills, cuts, failing calls, flipped bits
	Violations int       // promises that were broken
	Undecided  int       // cases on which the judge gave up
	Seconds    float64   // of wall clock
}

// String is the line of r, without its end.
func (r Run) String() string {
	clean := strings.NewReplacer("\t", " ", "\n", " ", "\r", " ").Replace
	return strings.Join([]string{
		r.Date.UTC().Format(time.RFC3339), clean(r.Commit), clean(r.Layer), clean(r.Seed), clean(r.Parameters),
		strconv.Itoa(r.Cases), strconv.Itoa(r.Faults), strconv.Itoa(r.Violations), strconv.Itoa(r.Undecided),
		strconv.FormatFloat(r.Seconds, 'f', 1, 64),
	}, "\t")
}

// parse reads what String writes.
func parse(line string) (r Run, err error) {
	f := strings.Split(line, "\t")
	if len(f) != columns {
		return r, fmt.Errorf("%d fields, want %d", len(f), columns)
	}
	r = Run{Commit: f[1], Layer: f[2], Seed: f[3], Parameters: f[4]}
	if r.Date, err = time.Parse(time.RFC3339, f[0]); err != nil {
		return r, err
	}
	if r.Commit == "" || r.Layer == "" || r.Seed == "" {
		return r, errors.New("commit, layer and seed must not be empty")
	}
	for i, n := range []*int{&r.Cases, &r.Faults, &r.Violations, &r.Undecided} {
		if *n, err = strconv.Atoi(f[5+i]); err != nil {
			return r, err
		}
		if *n < 0 {
			return r, fmt.Errorf("%d is less than nothing", *n)
		}
	}
	if r.Seconds, err = strconv.ParseFloat(f[9], 64); err != nil {
		return r, err
	}
	return r, nil
}

// Append adds a line to the file name, which is made with its header if it is
// not there. Several processes may append at the same time: each line is one
// write.
func Append(name string, r Run) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	text := Header + "\n" + r.String() + "\n"
	if errors.Is(err, os.ErrExist) {
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		text = r.String() + "\n"
	}
	if err != nil {
		return fmt.Errorf("append to the record: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("append to the record: %w", err)
	}
	return nil
}

// Read reads a record. An error names the line. A header is passed over
// wherever it stands: of processes that begin a file at the same time, one may
// append before the other has written it.
func Read(in io.Reader) ([]Run, error) {
	var runs []Run
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		if lines.Text() == Header {
			continue
		}
		r, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		runs = append(runs, r)
	}
	return runs, lines.Err()
}

// ReadFile reads the record in the file name. One that does not exist is empty.
func ReadFile(name string) ([]Run, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runs, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return runs, nil
}

// Commit is the commit of the working directory, with "+" if files that are
// under version control differ from it; "unknown" without one.
func Commit() string {
	head, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	commit := strings.TrimSpace(string(head))
	// What is on record, and what is said about it, is not the code under test.
	changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs").Output()
	if err != nil || len(changed) > 0 {
		commit += "+"
	}
	return commit
}

package strace_test

import (
	"fmt"
	"strings"
	"testing"

	"pawl/internal/torture/strace"
)

// hex is how strace -xx prints a string.
func hex(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// trace writes out a trace from lines in which «text» stands for a hex string.
func trace(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		for {
			before, rest, found := strings.Cut(line, "«")
			if !found {
				break
			}
			text, after, _ := strings.Cut(rest, "»")
			line = before + hex(text) + after
		}
		fmt.Fprintf(&b, "100 %d.000001 %s\n", 1700000000+i, line)
	}
	return b.String()
}

var one = []strace.Exchange{{Logged: "n1", Replied: "id1"}}

func TestOrder(t *testing.T) {
	const (
		mkdir   = `mkdirat(AT_FDCWD<«/»>, "«/d/g1»", 0700) = 0`
		syncTop = `fsync(5<«/d»>) = 0`
		create  = `openat(AT_FDCWD<«/»>, "«/d/g1/seg»", O_RDWR|O_CREAT|O_EXCL, 0600) = 6<«/d/g1/seg»>`
		syncGen = `fsync(7<«/d/g1»>) = 0`
		write   = `write(6<«/d/g1/seg»>, "«..n1..»", 6) = 6`
		sync    = `fdatasync(8<«/d/g1/seg»>) = 0`
		reply   = `write(9<TCP:[1.2.3.4:5]>, "«*2 id1»", 6) = 6`
		rename  = `renameat(AT_FDCWD<«/»>, "«/d/snap.tmp»", AT_FDCWD<«/»>, "«/d/snap»") = 0`
		remove  = `unlinkat(AT_FDCWD<«/»>, "«/d/g0»", AT_REMOVEDIR) = 0`
	)
	for _, c := range []struct {
		name    string
		lines   []string
		checked int
		wrong   string // in the first complaint; empty is none
	}{
		{"all in order", []string{mkdir, syncTop, create, syncGen, write, sync, reply}, 1, ""},
		{"no sync", []string{mkdir, syncTop, create, syncGen, write, reply}, 1, "no sync of that file"},
		{"sync too late", []string{mkdir, syncTop, create, syncGen, write, reply, sync}, 1, "no sync of that file"},
		{"sync too early", []string{mkdir, syncTop, create, syncGen, sync, write, reply}, 1, "no sync of that file"},
		{"sync of another file", []string{mkdir, syncTop, create, syncGen, write, `fdatasync(8<«/d/g1/other»>) = 0`, reply}, 1, "no sync of that file"},
		{"sync that failed", []string{mkdir, syncTop, create, syncGen, write, `fdatasync(8<«/d/g1/seg»>) = -1 EIO (Input/output error)`, reply}, 1, "no sync of that file"},
		{"sync begun before the write", []string{
			`fdatasync(8<«/d/g1/seg»> <unfinished ...>`, write, `<... fdatasync resumed>) = 0`, reply}, 1, "no sync of that file"},
		{"halves in order", []string{
			`write(6<«/d/g1/seg»>, "«..n1..»", 6 <unfinished ...>`, `<... write resumed>) = 6`,
			`fdatasync(8<«/d/g1/seg»> <unfinished ...>`, `<... fdatasync resumed>) = 0`, reply}, 1, ""},
		{"reply begun before the sync ended", []string{write,
			`fdatasync(8<«/d/g1/seg»> <unfinished ...>`, `--- SIGURG {si_signo=SIGURG} ---`, reply, `<... fdatasync resumed>) = 0`}, 1, "no sync of that file"},
		{"generation's name not synced", []string{mkdir, create, syncGen, write, sync, reply}, 1, "relies on /d/g1,"},
		{"segment's name not synced", []string{mkdir, syncTop, create, write, sync, reply}, 1, "relies on /d/g1/seg,"},
		{"reply not in the trace", []string{write, sync}, 0, ""},
		{"removal behind a synced rename", []string{rename, syncTop, remove}, 0, ""},
		{"removal before the rename is synced", []string{rename, remove, syncTop}, 0, "was removed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls, err := strace.Parse(strings.NewReader(trace(c.lines...)))
			if err != nil {
				t.Fatal(err)
			}
			r := strace.CheckOrder(calls, "/d", one)
			if r.Checked != c.checked {
				t.Errorf("checked %d exchanges, want %d", r.Checked, c.checked)
			}
			switch {
			case c.wrong == "" && len(r.Wrong) > 0:
				t.Errorf("complains: %q", r.Wrong)
			case c.wrong != "" && (len(r.Wrong) == 0 || !strings.Contains(r.Wrong[0], c.wrong)):
				t.Errorf("got %q, want a complaint with %q", r.Wrong, c.wrong)
			}
		})
	}
}

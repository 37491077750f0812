package state_test

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"pawl/state"
)

// RECORDS.md says of every kind which fields it has, in order, and whether a
// body follows; its examples are records.
func TestRecordsPage(t *testing.T) {
	page, err := os.Open("RECORDS.md")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	row := regexp.MustCompile(`^\| (\d+) \| (\w+) \| (.*?) \| (yes|no) \| .{10,} \|$`)
	example := regexp.MustCompile(`^([0-9a-f]{2}(?: [0-9a-f]+)+) {2,}\S`)
	next, examples := state.Kind(1), 0
	for lines := bufio.NewScanner(page); lines.Scan(); {
		if m := row.FindStringSubmatch(lines.Text()); m != nil {
			if m[1] != fmt.Sprint(uint8(next)) {
				t.Fatalf("got a row of kind %s, want %d", m[1], next)
			}
			fields := strings.Join(state.FieldsOf(next), " ")
			if said := strings.NewReplacer("[", "", "]", "").Replace(m[3]); said != fields {
				t.Errorf("fields of %s: the page says %q, the code %q", m[2], said, fields)
			}
			if (m[4] == "yes") != next.HasBody() {
				t.Errorf("body of %s: the page says %s", m[2], m[4])
			}
			if next.String() != m[2] {
				t.Errorf("name of kind %d: the page says %s, the code %v", next, m[2], next)
			}
			next++
		}
		if m := example.FindStringSubmatch(lines.Text()); m != nil {
			var r state.Record
			b := unhex(t, m[1])
			if at, err := state.Decode(b, &r); err != nil || at != len(b) {
				t.Errorf("example %s: %v", m[1], err)
			}
			examples++
		}
	}
	if next != state.KindEnd || examples != 6 {
		t.Errorf("the page has kinds below %d and %d examples, want %d and 6", next, examples, state.KindEnd)
	}
}

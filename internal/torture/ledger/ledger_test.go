package ledger_test

import (
	"strings"
	"testing"

	"pawl/internal/torture/ledger"
)

// TestCheck has for every rule a history that breaks it and a neighbour that does
// not.
func TestCheck(t *testing.T) {
	const OK, Refused, Unknown = ledger.OK, ledger.Refused, ledger.Unknown
	publish := func(l *ledger.Ledger, o ledger.Outcome, bodies ...string) {
		var ids []string
		for _, b := range bodies {
			ids = append(ids, "id-"+b)
		}
		l.Published(o, ids, bodies...)
	}
	saw := func(l *ledger.Ledger, body string) { l.Saw(l.Begin(), "id-"+body, body) }
	drained := func(l *ledger.Ledger, bodies ...string) {
		for _, b := range bodies {
			l.Drained("id-"+b, b)
		}
	}
	for _, test := range []struct {
		name string
		want string // part of the fault; empty for none
		do   func(l *ledger.Ledger)
	}{
		{"there", "", func(l *ledger.Ledger) { publish(l, OK, "a"); saw(l, "a"); drained(l, "a") }},
		{"lost", "nobody ended it", func(l *ledger.Ledger) { publish(l, OK, "a"); saw(l, "a") }},
		{"doubled", "2 times", func(l *ledger.Ledger) { publish(l, OK, "a"); drained(l, "a", "a") }},
		{"deleted", "", func(l *ledger.Ledger) { publish(l, OK, "a"); saw(l, "a"); l.Deleted(OK, "a") }},
		{"back", "handed out afterwards", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Deleted(OK, "a"); drained(l, "a") }},
		{"on its way when deleted", "", func(l *ledger.Ledger) {
			publish(l, OK, "a")
			start := l.Begin()
			l.Deleted(OK, "a")
			l.Saw(start, "id-a", "a")
		}},
		{"handed out after its delete", "handed out afterwards", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Deleted(OK, "a"); saw(l, "a") }},
		{"delete open, there", "", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Deleted(Unknown, "a"); drained(l, "a") }},
		{"delete open, gone", "", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Deleted(Unknown, "a") }},
		{"delete refused, gone", "nobody ended it", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Deleted(Refused, "a") }},
		{"publish refused", "", func(l *ledger.Ledger) { publish(l, Refused, "a") }},
		{"publish refused, there", "was refused", func(l *ledger.Ledger) { publish(l, Refused, "a"); drained(l, "a") }},
		{"publish open, there", "", func(l *ledger.Ledger) { publish(l, Unknown, "a"); saw(l, "a"); drained(l, "a") }},
		{"publish open, gone", "", func(l *ledger.Ledger) { publish(l, Unknown, "a") }},
		{"publish open, seen, lost", "was there and nobody ended it", func(l *ledger.Ledger) { publish(l, Unknown, "a"); saw(l, "a") }},
		{"nobody's", "nobody published", func(l *ledger.Ledger) { drained(l, "a") }},
		{"bulk", "", func(l *ledger.Ledger) { publish(l, OK, "a", "b"); drained(l, "a", "b") }},
		{"bulk lost one", "nobody ended it", func(l *ledger.Ledger) { publish(l, OK, "a", "b"); drained(l, "b") }},
		{"bulk open, all", "", func(l *ledger.Ledger) {
			publish(l, Unknown, "a", "b")
			saw(l, "a")
			l.Deleted(OK, "a")
			drained(l, "b")
		}},
		{"bulk open, none", "", func(l *ledger.Ledger) { publish(l, Unknown, "a", "b") }},
		{"bulk open, half", "1 of the 2", func(l *ledger.Ledger) { publish(l, Unknown, "a", "b"); drained(l, "b") }},
		{"republished", "", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Republished(OK, "a", "b", "id-b"); drained(l, "b") }},
		{"republished, old there", "handed out afterwards", func(l *ledger.Ledger) {
			publish(l, OK, "a")
			l.Republished(OK, "a", "b", "id-b")
			drained(l, "a", "b")
		}},
		{"republished, new lost", "nobody ended it", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Republished(OK, "a", "b", "id-b") }},
		{"republish refused", "", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Republished(Refused, "a", "b", ""); drained(l, "a") }},
		{"republish open, old", "", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Republished(Unknown, "a", "b", ""); drained(l, "a") }},
		{"republish open, new", "", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Republished(Unknown, "a", "b", ""); drained(l, "b") }},
		{"republish open, neither", "lost both", func(l *ledger.Ledger) { publish(l, OK, "a"); l.Republished(Unknown, "a", "b", "") }},
		{"republish open, both", "left both", func(l *ledger.Ledger) {
			publish(l, OK, "a")
			l.Republished(Unknown, "a", "b", "")
			drained(l, "a", "b")
		}},
		{"republish open, old handed out after new", "left both", func(l *ledger.Ledger) {
			publish(l, OK, "a")
			l.Republished(Unknown, "a", "b", "")
			saw(l, "b")
			saw(l, "a")
			l.Deleted(OK, "a")
			drained(l, "b")
		}},
		{"republish open, then the old one deleted", "", func(l *ledger.Ledger) {
			publish(l, OK, "a")
			l.Republished(Unknown, "a", "b", "")
			saw(l, "a")
			l.Deleted(OK, "a")
		}},
		{"one ID, two bodies", "is \"b\" now", func(l *ledger.Ledger) {
			l.Published(OK, []string{"x"}, "a")
			l.Published(OK, []string{"x"}, "b")
			l.Drained("x", "a")
			l.Drained("x", "b")
		}},
	} {
		l := ledger.New()
		test.do(l)
		got := strings.Join(l.Check(), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

package resp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pawl/server/resp"
)

// A transaction is carried out at one go: what counts is how many jobs it is about, not
// by how many commands. What is too much is refused when it should be queued, so that
// nothing is done.
func TestTransactionIsBounded(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	c := d.dial()
	const lease = "00000001000000000000000"
	acks := func(leases int) []string {
		return slices.Concat([]string{"ACK"}, slices.Repeat([]string{lease}, leases))
	}
	deletes := func(ids int) []string {
		return slices.Concat([]string{"JOB", "DELETE"}, slices.Repeat([]string{"01HF7YAT000000010000000000"}, ids))
	}
	const tooLarge = "-TOOLARGE a transaction has at most 1024 commands, leases and IDs, and 1 MiB, or one command"
	for _, test := range []struct {
		what   string
		queued [][]string
		next   []string
		fits   bool
	}{
		{"leases of one ACK", nil, acks(1023), true},
		{"leases of two", [][]string{acks(600)}, acks(424), true},
		{"leases of two, one too many", [][]string{acks(600)}, acks(425), false},
		{"commands", slices.Repeat([][]string{{"ENQUEUE", "q", "x"}}, 1023), acks(1), true},
		{"commands, one too many", slices.Repeat([][]string{{"ENQUEUE", "q", "x"}}, 1024), acks(1), false},
		{"both", append(slices.Repeat([][]string{{"ENQUEUE", "q", "x"}}, 24), acks(1000)), []string{"ENQUEUE", "q", "x"}, false},
		{"IDs of one JOB DELETE, though no job has them", nil, deletes(1022), true},
		{"leases and IDs", [][]string{acks(600)}, deletes(424), true},
		{"leases and IDs, one too many", [][]string{deletes(600)}, acks(425), false},
		{"words that are no ID", [][]string{deletes(600)}, slices.Concat([]string{"JOB", "DELETE"}, slices.Repeat([]string{"x"}, 425)), false},
	} {
		c.expect("+OK", "MULTI")
		for _, cmd := range test.queued {
			c.expect("+QUEUED", cmd...)
		}
		if test.fits {
			c.expect("+QUEUED", test.next...)
			if got := c.do("EXEC"); strings.HasPrefix(got, "-") {
				t.Errorf("%s: got %s", test.what, got)
			}
			continue
		}
		before := f.readyIn("q")
		c.expect(tooLarge, test.next...)
		c.expect("-EXECABORT Transaction discarded because of previous errors.", "EXEC")
		if after := f.readyIn("q"); len(after) != len(before) {
			t.Errorf("%s: %d jobs were enqueued", test.what, len(after)-len(before))
		}
	}
}

// What was queued counts as memory of its connection until EXEC or DISCARD, and no
// longer; CLIENT LIST says how many commands it is.
func TestTransactionLetsGo(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	c := d.dial()
	buffers := func() (n int) {
		_, rest, _ := strings.Cut(c.do("INFO", "memory"), "used_memory_client_buffers:")
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	other, before := d.dial(), 0
	for i, end := range slices.Repeat([]string{"EXEC", "DISCARD"}, 10) {
		if i == 2 {
			before = buffers()
		}
		c.expect("+OK", "MULTI")
		c.expect("+QUEUED", "ENQUEUE", "q", strings.Repeat("x", 3000))
		c.expect("+QUEUED", "ENQUEUE", "q", "x")
		if got := other.do("CLIENT", "LIST"); !strings.Contains(got, " multi=2 ") {
			t.Errorf("of two commands queued: %s", got)
		}
		c.do(end)
	}
	if after := buffers(); after > before+3000 {
		t.Errorf("%d bytes are held after 18 transactions, %d before", after, before)
	}
}

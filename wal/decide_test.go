package wal_test

import (
	"strings"
	"testing"

	"pawl/wal"
)

func TestDecide(t *testing.T) {
	for _, row := range []struct {
		rule     string
		evidence wal.Evidence
		refuse   string // part of the reason
		cut      int64
	}{
		{"behind the length that a link states nothing is history",
			wal.Evidence{Expected: 8, Followed: true, NotZero: 900}, "", 0},
		{"anything bad before that length was durable",
			wal.Evidence{Expected: 8, Followed: true, Behind: 100, NotZero: 100}, "100 more bytes are history", 0},
		{"that holds for zeros too",
			wal.Evidence{Expected: 8, Followed: true, Behind: 100}, "history", 0},
		{"a later entry that vouches for the group itself",
			wal.Evidence{Expected: 8, VouchedByEntry: 8, NotZero: 900}, "a later entry says that group 8 was on disk", 0},
		{"a later entry that vouches for a later group",
			wal.Evidence{Expected: 8, VouchedByEntry: 12, NotZero: 900}, "group 12", 0},
		{"a later entry that vouches for the group before only: it was written with a torn one",
			wal.Evidence{Expected: 8, VouchedByEntry: 7, NotZero: 900}, "", 900},
		{"a snapshot that vouches for the group",
			wal.Evidence{Expected: 8, VouchedBySnapshot: 8}, "a snapshot says that group 8 was on disk", 0},
		{"a snapshot of the group before",
			wal.Evidence{Expected: 8, VouchedBySnapshot: 7}, "", 0},
		{"nothing but zeros: a normal end",
			wal.Evidence{Expected: 8, VouchedByEntry: 7, VouchedBySnapshot: 7}, "", 0},
		{"something that nobody vouches for: torn",
			wal.Evidence{Expected: 8, NotZero: 17}, "", 17},
		{"a log without groups",
			wal.Evidence{Expected: 1}, "", 0},
	} {
		t.Run(row.rule, func(t *testing.T) {
			got := wal.Decide(row.evidence)
			if (got.Refuse == "") != (row.refuse == "") || !strings.Contains(got.Refuse, row.refuse) {
				t.Errorf("refuse: got %q, want %q in it", got.Refuse, row.refuse)
			}
			if got.Cut != row.cut {
				t.Errorf("cut: got %d, want %d", got.Cut, row.cut)
			}
		})
	}
}

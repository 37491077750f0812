package state_test

import (
	"errors"
	"strings"
	"testing"

	"pawl/state"
)

func TestJobID(t *testing.T) {
	for _, tt := range []struct {
		wall  state.Millis
		slot  state.Slot
		reuse uint16
		delay uint32
		text  string
	}{
		{0, 0, 0, 0, "00000000000000000000000000"},
		{1_700_000_000_000, 7, 1, 3600, "01HF7YAT00000001R00480W000"},
		{state.MaxMillis, 1<<32 - 1, 1<<16 - 1, 1<<32 - 1, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"},
	} {
		id := state.NewJobID(tt.wall, tt.slot, tt.reuse, tt.delay)
		if id.Wall() != tt.wall || id.Slot() != tt.slot || id.Reuse() != tt.reuse || id.DelaySeconds() != tt.delay {
			t.Errorf("%v: got %d %d %d %d, want %+v", id, id.Wall(), id.Slot(), id.Reuse(), id.DelaySeconds(), tt)
		}
		for _, text := range []string{id.String(), strings.ToLower(id.String())} {
			if back, err := state.ParseJobID([]byte(text)); err != nil || back != id {
				t.Errorf("parse of %s: got %v, %v", text, back, err)
			}
		}
		if len(id.String()) != state.JobIDLen {
			t.Errorf("%s has %d characters", id, len(id.String()))
		}
		if tt.text != id.String() {
			t.Errorf("got %s, want %s", id, tt.text)
		}
	}
	// lmstfy's clients read the time from the first ten characters as of any ULID,
	// and the delay from the last four bytes, little endian.
	id := state.NewJobID(1, 2, 3, 0x01020304)
	if id != (state.JobID{0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 4, 3, 2, 1}) {
		t.Errorf("got bytes %x", id[:])
	}
}

func TestParseJobIDRefuses(t *testing.T) {
	for _, text := range []string{
		"", "0", strings.Repeat("0", 25), strings.Repeat("0", 27),
		"8" + strings.Repeat("0", 25), // over 128 bits
		strings.Repeat("0", 25) + "U", strings.Repeat("0", 25) + "I", strings.Repeat("0", 25) + "\xff",
		" " + strings.Repeat("0", 25),
	} {
		if id, err := state.ParseJobID([]byte(text)); !errors.Is(err, state.ErrBadID) || id != (state.JobID{}) {
			t.Errorf("%q: got %v, %v", text, id, err)
		}
	}
}

func TestLeaseID(t *testing.T) {
	for _, id := range []state.LeaseID{
		{},
		{Slot: 1, Nonce: state.Nonce{9: 1}},
		{Slot: 1<<32 - 1, Nonce: state.Nonce{255, 254, 253, 252, 251, 250, 249, 248, 247, 246}},
	} {
		text := id.String()
		if back, err := state.ParseLeaseID([]byte(text)); err != nil || back != id || len(text) != state.LeaseIDLen {
			t.Errorf("%s: got %v, %v", text, back, err)
		}
		// One text for one lease: not the upper case, not other bits to spare.
		if up := strings.ToUpper(text); up != text {
			if _, err := state.ParseLeaseID([]byte(up)); err == nil {
				t.Errorf("%s was accepted", up)
			}
		}
		if _, err := state.ParseLeaseID([]byte(text[:22] + "1")); err == nil {
			t.Errorf("%s was accepted for %s", text[:22]+"1", text)
		}
	}
	for _, text := range []string{"", "0", strings.Repeat("0", 22), strings.Repeat("0", 24), strings.Repeat("u", 23), strings.Repeat("\n", 23)} {
		if _, err := state.ParseLeaseID([]byte(text)); !errors.Is(err, state.ErrBadID) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestQueueKey(t *testing.T) {
	for _, tt := range []struct{ pool, name, key, display string }{
		{"default", "mail", "default/default/mail", "mail"},
		{"p", "ns/mail", "p/ns/mail", "ns/mail"},
		{"p", "ns/a/b", "p/ns/a/b", "ns/a/b"},
		{"p", "default/a/b", "p/default/a/b", "default/a/b"}, // "a/b" would be read as namespace a
		{"p", "default/a", "p/default/a", "a"},
	} {
		key := string(state.AppendQueueKey(nil, tt.pool, []byte(tt.name)))
		if key != tt.key || state.DisplayName(key) != tt.display {
			t.Errorf("%s: got %s, shown as %s, want %+v", tt.name, key, state.DisplayName(key), tt)
		}
		if again := string(state.AppendQueueKey(nil, tt.pool, []byte(tt.display))); again != key {
			t.Errorf("%s: what is shown leads to %s, want %s", tt.name, again, key)
		}
		pool, ns, name := state.SplitQueueKey(key)
		if pool+"/"+ns+"/"+name != key || !state.ValidQueueKey([]byte(key)) {
			t.Errorf("%s: split into %q %q %q", key, pool, ns, name)
		}
	}
	long := strings.Repeat("x", state.MaxNameBytes)
	for key, valid := range map[string]bool{
		long + "/" + long + "/" + long: true, "a/b/c/d": true, "a/b//": true, "\x00/\xff/\n": true,
		"": false, "a": false, "a/b": false, "a/b/": false, "a//c": false, "/b/c": false,
		"x" + long + "/b/c": false, "a/x" + long + "/c": false, "a/b/x" + long: false,
	} {
		if got := state.ValidQueueKey([]byte(key)); got != valid {
			t.Errorf("%.20q…: got %v, want %v", key, got, valid)
		}
	}
}

func TestPlaces(t *testing.T) {
	for p, name := range map[state.Place]string{state.Ready: "ready", state.Delayed: "delayed", state.Leased: "leased", state.Dead: "dead"} {
		if back, ok := state.ParsePlace(name); p.String() != name || back != p || !ok {
			t.Errorf("%s: got %v, %v", name, back, ok)
		}
	}
	for _, name := range []string{"", "none", "READY", "x"} {
		if p, ok := state.ParsePlace(name); ok || p != 0 {
			t.Errorf("%q: got %v", name, p)
		}
	}
	if got := state.Place(9).String(); got != "none" {
		t.Errorf("got %s, want none", got)
	}
}

func TestAddMillis(t *testing.T) {
	for _, tt := range []struct{ a, b, want state.Millis }{
		{1, 2, 3}, {5, -3, 2}, {5, -9, 0}, {state.MaxMillis, 1, state.MaxMillis}, {state.MaxMillis, state.MaxMillis, state.MaxMillis},
		{0, -state.MaxMillis, 0}, {state.MaxMillis, -state.MaxMillis, 0}, {-state.MaxMillis, -state.MaxMillis, 0},
	} {
		if got := state.AddMillis(tt.a, tt.b); got != tt.want {
			t.Errorf("%d + %d: got %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

package state_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pawl/state"
)

// records has one record of each kind, and of each kind with options one with
// none and one with all of them, each with the bytes it has for ever.
var records = []struct {
	name string
	r    state.Record
	hex  string
}{
	{"enqueue, plain", state.Record{Kind: state.KindEnqueue, Slot: 7, Queue: 3, Born: 1_700_000_000_000, Overhead: 2}, "01 07 03 80d095ffbc31 02 0000"},
	{"enqueue, all", state.Record{
		Kind: state.KindEnqueue, Slot: 300, Queue: 1, Born: state.MaxMillis, At: 1, Wall: true, Expires: 2, Priority: -128, Delay: 3, Tries: 4,
		Backoff: 5, BackoffMax: 6, Unique: state.Key{15: 0xaa}, Window: 7, Group: state.Key{0: 0xbb},
	}, "01 ac02 01 ffffffffffff3f 00 ff07 01 02 8001 03 04 05 06 000000000000000000000000000000aa 07 bb000000000000000000000000000000"},
	{"lease", state.Record{Kind: state.KindLease, Slot: 1, At: 128, Nonce: state.Nonce{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, "02 01 8001 0102030405060708090a"},
	{"ack", state.Record{Kind: state.KindAck, Slot: 1<<32 - 1}, "03 ffffffff0f"},
	{"fail, to ready", state.Record{Kind: state.KindFail, Slot: 1, Place: state.Ready, Cause: state.CauseNack}, "04 01 01 01 0000"},
	{"fail, to delayed", state.Record{Kind: state.KindFail, Slot: 1, Place: state.Delayed, Cause: state.CauseExpire, At: 9, Text: []byte("why")}, "04 01 02 02 0300 09 03776879"},
	{"release", state.Record{Kind: state.KindRelease, Slot: 2}, "05 02"},
	{"extend", state.Record{Kind: state.KindExtend, Slot: 2, At: 0}, "06 02 00"},
	{"range", state.Record{Kind: state.KindRange, At: 5, Slot: 2, Count: 512}, "07 05 02 8004"},
	{"wall range", state.Record{Kind: state.KindWallRange, At: 5, Slot: 2, Count: 1}, "08 05 02 01"},
	{"lapse", state.Record{Kind: state.KindLapse, Slot: 2}, "09 02"},
	{"delete", state.Record{Kind: state.KindDelete, Slot: 2, Cause: state.CauseDeadFor}, "0a 02 08"},
	{"bury", state.Record{Kind: state.KindBury, Slot: 2, Cause: state.CauseDamage, Text: []byte("x")}, "0b 02 04 0178"},
	{"redrive, plain", state.Record{Kind: state.KindRedrive, Slot: 2, Queue: 3}, "0c 02 03 0000"},
	{"redrive, all", state.Record{Kind: state.KindRedrive, Slot: 2, Queue: 3, Expires: 4, Tries: 5, DropKey: true}, "0c 02 03 0700 04 05"},
	{"run", state.Record{Kind: state.KindRun, Slot: 2}, "0d 02 0000"},
	{"run without key", state.Record{Kind: state.KindRun, Slot: 2, DropKey: true}, "0d 02 0100"},
	{"delay", state.Record{Kind: state.KindDelay, Slot: 2, At: 3}, "0e 02 03 0000"},
	{"delay by wall time", state.Record{Kind: state.KindDelay, Slot: 2, At: 3, DropKey: true, Wall: true}, "0e 02 03 0300"},
	{"priority 0", state.Record{Kind: state.KindPriority, Slot: 2}, "0f 02 0000"},
	{"priority -1", state.Record{Kind: state.KindPriority, Slot: 2, Priority: -1}, "0f 02 0100 ff01"},
	{"payload", state.Record{Kind: state.KindPayload, Slot: 2, Overhead: 65535}, "10 02 ffff03"},
	{"move", state.Record{Kind: state.KindMove, Slot: 2, Queue: 3}, "11 02 03"},
	{"carry", state.Record{Kind: state.KindCarry, Slot: 2}, "12 02"},
	{"queue", state.Record{Kind: state.KindQueue, Queue: 3, Text: []byte("p/n/q")}, "13 03 05702f6e2f71"},
	{"touch", state.Record{Kind: state.KindTouch, Queue: 3}, "14 03"},
	{"forget", state.Record{Kind: state.KindForget, Queue: 3}, "15 03"},
	{"settings", state.Record{Kind: state.KindSettings, Queue: 3, Settings: &state.Settings{
		Tries: 1, TTL: 2, Backoff: 3, BackoffMax: 4, MaxLen: 1<<64 - 1, MaxBytes: 6, MaxLeased: 7, RateCount: 8, RatePer: 9, DeadMax: 10, DeadFor: 11,
	}}, "16 03 01 02 03 04 ffffffffffffffffff01 06 07 08 09 0a 0b"},
	{"pause", state.Record{Kind: state.KindPause, Queue: 3, At: state.Forever}, "17 03 ffffffffffff3f"},
	{"resume", state.Record{Kind: state.KindResume, Queue: 3}, "18 03"},
	{"key range", state.Record{Kind: state.KindKeyRange, At: 5, Slot: 2, Count: 1}, "19 05 02 01"},
	{"cron", state.Record{Kind: state.KindCron, Cron: &state.Cron{
		Namespace: "p/n", Name: "c", Spec: "* * * * *", Zone: "UTC", Queue: "p/n/q", Payload: []byte("x"), Catchup: state.CatchupAll,
		Options: []byte("o"), Next: 1, Last: 2,
	}}, "1a 03702f6e 0163 092a202a202a202a202a 03555443 05702f6e2f71 02 01 02 0178 016f"},
	{"cron fired", state.Record{Kind: state.KindCronFired, Cron: &state.Cron{Namespace: "p/n", Name: "c", Next: 1, Last: 2}}, "1b 03702f6e 0163 01 02"},
	{"cron delete", state.Record{Kind: state.KindCronDelete, Cron: &state.Cron{Namespace: "p/n", Name: "c"}}, "1c 03702f6e 0163"},
	{"meta", state.Record{Kind: state.KindMeta, Text: []byte("k"), Data: []byte("v")}, "1d 016b 0176"},
	{"meta, empty", state.Record{Kind: state.KindMeta, Text: []byte("k"), Data: []byte{}}, "1d 016b 00"},
	{"meta delete", state.Record{Kind: state.KindMetaDelete, Text: []byte("k")}, "1e 016b"},
	{"drain on", state.Record{Kind: state.KindDrain, On: true}, "1f 0100"},
	{"drain off", state.Record{Kind: state.KindDrain}, "1f 0000"},
	{"clock ahead", state.Record{Kind: state.KindClock, At: 1}, "20 02"},
	{"clock behind", state.Record{Kind: state.KindClock, At: -state.MaxMillis}, "20 fdffffffffff7f"},
	{"secret", state.Record{Kind: state.KindSecret, Text: []byte("0123456789abcdef")}, "21 10 30313233343536373839616263646566"},
	{"time", state.Record{Kind: state.KindTime, At: state.MaxMillis}, "22 ffffffffffff3f"},
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRecordBytes(t *testing.T) {
	seen := map[state.Kind]bool{}
	for _, tt := range records {
		t.Run(tt.name, func(t *testing.T) {
			seen[tt.r.Kind] = true
			want := unhex(t, tt.hex)
			if got := tt.r.AppendHead([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("got %x, want %x behind what was there", got, want)
			}
			in := bytes.Clone(want)
			if tt.r.Kind.HasBody() {
				in = append(in, "body"...)
			}
			got := state.Record{Slot: 99, Text: []byte("left over")}
			at, err := state.Decode(in, &got)
			if err != nil || at != len(want) {
				t.Fatalf("got body at %d, %v, want %d", at, err, len(want))
			}
			if !reflect.DeepEqual(got, tt.r) {
				t.Errorf("got %+v, want %+v", got, tt.r)
			}
		})
	}
	for k := state.Kind(1); k < state.KindEnd; k++ {
		if !seen[k] {
			t.Errorf("kind %d has no row", k)
		}
	}
}

// SlotOf says what Decode says, of all kinds that are about one job; and nothing of
// what has no slot, or none that is whole.
func TestSlotOf(t *testing.T) {
	for _, tt := range records {
		want := tt.r.Slot
		switch tt.r.Kind {
		case state.KindRange, state.KindWallRange, state.KindKeyRange:
			want = 0
		}
		if got := state.SlotOf(unhex(t, tt.hex)); got != want {
			t.Errorf("%s: got %d, want %d", tt.name, got, want)
		}
	}
	for _, head := range []string{"", "00", "00 07", "03", "03 80", "03 8180808010", "03 81808080808080808002", "ff 07"} {
		if got := state.SlotOf(unhex(t, head)); got != 0 {
			t.Errorf("%q: got %d", head, got)
		}
	}
}

// Every beginning of a record is refused, and so is every record with a byte too
// many, unless a body follows it.
func TestRecordCut(t *testing.T) {
	for _, tt := range records {
		whole := unhex(t, tt.hex)
		var r state.Record
		for n := range whole {
			if _, err := state.Decode(whole[:n], &r); !errors.Is(err, state.ErrRecord) {
				t.Errorf("%s cut at %d: got %v, want ErrRecord", tt.name, n, err)
			}
		}
		if _, err := state.Decode(append(whole, 0), &r); (err == nil) != tt.r.Kind.HasBody() {
			t.Errorf("%s with a byte more: got %v", tt.name, err)
		}
	}
}

func TestRecordRefused(t *testing.T) {
	for _, tt := range []struct{ name, hex, why string }{
		{"nothing", "", "empty"},
		{"kind 0", "00", "unknown kind 0"},
		{"kind of a later version", "23", "unknown kind 35"},
		{"no slot 0", "03 00", "bad slot"},
		{"slot over 32 bits", "03 8080808010", "bad slot"},
		{"number over 64 bits", "03 ffffffffffffffffffff01", "bad slot"},
		{"number with a superfluous byte", "03 8100", "bad slot"},
		{"time over 48 bits", "06 02 8080808080808001", "bad at"},
		{"no queue 0", "14 00", "bad queue"},
		{"range of nothing", "07 05 02 00", "bad count"},
		{"range over 512", "07 05 02 8104", "bad count"},
		{"place none", "04 01 00 01 0000", "bad place"},
		{"place 5", "04 01 05 01 0000", "bad place"},
		{"cause of another kind", "04 01 01 03 0000", "bad cause"},
		{"delete without a cause", "0a 02 04", "bad cause"},
		{"option that is not known", "0d 02 0200", "bad options"},
		{"option that is zero", "04 01 02 01 0100 00", "bad at"},
		{"key option that is zero", "01 07 03 00 02 0001 00000000000000000000000000000000", "bad unique"},
		{"text option that is empty", "04 01 01 01 0200 00", "bad text"},
		{"reason over 255 bytes", "0b 02 04 8002" + strings.Repeat("00", 256), "bad text"},
		{"queue key too short", "13 03 04 702f6e2f", "bad text"},
		{"overhead over 16 bits", "10 02 808004", "bad overhead"},
		{"catchup 3", "1a 03702f6e 0163 00 00 00 03 00 00 00 00", "bad cron.catchup"},
		{"value without a key", "1d 00 00", "bad text"},
		{"offset over 48 bits", "20 ffffffffffff7f", "bad at"},
		{"secret too short", "21 0f 303132333435363738396162636465", "bad text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r state.Record
			_, err := state.Decode(unhex(t, tt.hex), &r)
			if !errors.Is(err, state.ErrRecord) || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("got %v, want %q", err, tt.why)
			}
		})
	}
}

// Decode does not copy, and AppendHead and Decode of what a job's life is made
// of do not allocate.
func TestRecordAllocations(t *testing.T) {
	var r state.Record
	meta := unhex(t, "1d 016b 0176")
	if _, err := state.Decode(meta, &r); err != nil || &r.Data[0] != &meta[4] {
		t.Errorf("data was copied, %v", err)
	}
	if cap(r.Text) != 1 {
		t.Errorf("text can grow into what follows it: capacity %d, want 1", cap(r.Text))
	}
	buf := make([]byte, 0, 128)
	for _, tt := range records {
		if tt.r.Settings != nil || tt.r.Cron != nil {
			continue
		}
		in := unhex(t, tt.hex)
		if n := testing.AllocsPerRun(10, func() {
			buf = tt.r.AppendHead(buf[:0])
			state.Decode(in, &r)
		}); n != 0 {
			t.Errorf("%s: %v allocations, want none", tt.name, n)
		}
	}
}

func TestAppendHeadOfNoKind(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a record without a kind was written")
		}
	}()
	(&state.Record{}).AppendHead(nil)
}

// A cron is kept as it was read: it has nothing in common with the bytes of the
// record, which are used again.
func TestCronOutlivesItsBytes(t *testing.T) {
	for _, tt := range records {
		if tt.r.Cron == nil {
			continue
		}
		var got state.Record
		b := unhex(t, tt.hex)
		if _, err := state.Decode(b, &got); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		clear(b)
		if !reflect.DeepEqual(got.Cron, tt.r.Cron) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got.Cron, tt.r.Cron)
		}
	}
}

// What is accepted is written again as the same bytes.
func FuzzDecode(f *testing.F) {
	for _, tt := range records {
		f.Add(unhex(f, tt.hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r state.Record
		at, err := state.Decode(b, &r)
		if err != nil {
			if !errors.Is(err, state.ErrRecord) {
				t.Errorf("got %v, want ErrRecord", err)
			}
			return
		}
		if again := r.AppendHead(nil); !bytes.Equal(again, b[:at]) {
			t.Errorf("%x is read as %+v and written as %x", b[:at], r, again)
		}
		if r.Kind.HasBody() == false && at != len(b) {
			t.Errorf("%d bytes of %d read", at, len(b))
		}
	})
}

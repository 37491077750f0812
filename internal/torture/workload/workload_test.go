package workload

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"pawl/internal/seeds"
	"pawl/internal/torture/history"
)

func TestPayloadProvesItself(t *testing.T) {
	rng := seeds.Rand(t.Name())
	for _, filler := range []int{0, 1, 100, 5000} {
		p := makePayload(rng, 0xfeed, 3, 9, filler)
		nonce, intact := readPayload(p)
		if nonce != 0xfeed || !intact {
			t.Errorf("filler %d: got nonce %x, intact %t, want feed, true", filler, nonce, intact)
		}
		for i := range min(len(p), 200) {
			broken := []byte(p)
			broken[i] ^= 1 << rng.IntN(8)
			if nonce, intact := readPayload(string(broken)); intact {
				t.Errorf("filler %d: a flipped bit in byte %d went unnoticed (nonce %x)", filler, i, nonce)
			}
		}
		if _, intact := readPayload(p[:len(p)-1]); intact {
			t.Errorf("filler %d: a missing byte went unnoticed", filler)
		}
	}
}

func TestSeedFixesWhatClientsTry(t *testing.T) {
	payloads := func(seed uint64) (all []string) {
		w := New(Options{Seed: seed}, nil, nil).client(2)
		for _, q := range w.queues {
			_, args, _ := w.job(q)
			all = append(all, strings.Join(args, " "))
		}
		return all
	}
	first, second, other := payloads(1), payloads(1), payloads(2)
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("job %d: one seed gave %q and %q", i, first[i], second[i])
		}
		if first[i] == other[i] {
			t.Errorf("job %d: two seeds gave %q", i, first[i])
		}
	}
}

func TestOutcomes(t *testing.T) {
	for _, row := range []struct {
		reply string
		want  history.Outcome
	}{
		{"+OK\r\n", history.OK},
		{"$-1\r\n", history.OK},
		{"-ERR lease does not exist\r\n", history.No},
		{"-MISCONF disk full\r\n", history.No},
		{"-LOADING replaying\r\n", history.No},
		{"-UNKNOWN the write failed\r\n", history.Unknown},
		{"-ERR internal error\r\n", history.Unknown},
	} {
		v, err := reading(row.reply).read(0)
		if err != nil {
			t.Errorf("%q: %v", row.reply, err)
		}
		if got := outcomeOf(v); got != row.want {
			t.Errorf("%q: got %s, want %s", row.reply, got, row.want)
		}
	}
}

func reading(stream string) *conn {
	return &conn{Conn: (net.Conn)(nil), in: bufio.NewReader(strings.NewReader(stream))}
}

func TestReadIsStrict(t *testing.T) {
	v, err := reading("*2\r\n$3\r\na\r\n\r\n:7\r\n").read(0)
	if err != nil || len(v.items) != 2 || v.items[0].text != "a\r\n" || v.items[1].num != 7 {
		t.Errorf("a good array: got %+v, %v", v, err)
	}
	for _, stream := range []string{
		"", "+OK", "+OK\n", "$3\r\nabcd\r\n", "$3\r\nab", "$-2\r\n", ":x\r\n", "?1\r\n", "*1\r\n",
		"$99999999999\r\n", strings.Repeat("*1\r\n", 20) + ":1\r\n",
	} {
		if v, err := reading(stream).read(0); err == nil {
			t.Errorf("%q was read as %+v", stream, v)
		}
	}
}

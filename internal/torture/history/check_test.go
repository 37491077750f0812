package history_test

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawl/internal/torture/history"
)

// parse reads a history written by hand, one operation or event a line:
//
//	enqueue n=1 at=0-1          called at 0 ms, returned at 1 ms
//	fetch at=5-6 for=100 n=1 lease=a [n=2 lease=b …]
//	ack lease=a at=7-8 no | unknown
//	killed at=9 inc=1
//
// The queue is q, the incarnation 1, the outcome ok unless said otherwise.
func parse(t *testing.T, text string) history.History {
	t.Helper()
	var h history.History
	for number, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		op := history.Op{Kind: history.Kind(words[0]), Queue: "q", Incarnation: 1, Client: number, Outcome: history.OK}
		event := history.Event{Kind: history.EventKind(words[0]), Incarnation: 1}
		ms := func(s string) time.Duration {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			return time.Duration(f * float64(time.Millisecond))
		}
		num := func(s string) int {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			return n
		}
		isEvent := false
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			var grant *history.Grant
			if len(op.Grants) > 0 {
				grant = &op.Grants[len(op.Grants)-1]
			}
			switch key {
			case "at":
				from, to, span := strings.Cut(value, "-")
				if isEvent = !span; isEvent {
					event.At = ms(from)
				} else {
					op.Call, op.Return = ms(from), ms(to)
				}
			case "no":
				op.Outcome, op.Error = history.No, history.NoLease
			case "unknown":
				op.Outcome = history.Unknown
			case "n":
				n := uint64(num(value))
				switch op.Kind {
				case history.Fetch:
					op.Grants = append(op.Grants, history.Grant{Nonce: n, Job: "job" + value, Intact: true, Digest: n})
				case history.Peek:
					op.Shown = append(op.Shown, n)
				default:
					op.Nonce, op.Digest = n, n
					if op.Kind == history.Enqueue {
						op.Job = "job" + value
					}
				}
			case "lease":
				if grant != nil {
					grant.Lease = value
				} else {
					op.Lease = value
				}
			case "job":
				if grant != nil {
					grant.Job = value
				} else {
					op.Job = value
				}
			case "digest":
				if grant != nil {
					grant.Digest = uint64(num(value))
				} else {
					op.Digest = uint64(num(value))
				}
			case "attempt":
				grant.Attempt = num(value)
			case "torn":
				grant.Intact = false
			case "for":
				op.LeaseFor = ms(value)
				op.For = ms(value)
			case "wait":
				op.Wait = ms(value)
			case "delay":
				op.Delay = ms(value)
			case "q":
				op.Queue = value
			case "inc":
				op.Incarnation, event.Incarnation = num(value), num(value)
			case "prio":
				op.Priority = num(value)
			case "tries":
				op.Tries = num(value)
			case "unique":
				op.Unique = value
			case "duplicate":
				op.Duplicate = true
			case "batch":
				op.Batch = num(value)
			case "dead":
				op.Dead = true
			case "quiet":
				op.Quiet = true
			case "counts": // ready,processing,dead[,leases,heap]
				var c history.Counts
				parts := strings.Split(value, ",")
				c.Ready, c.Processing, c.Dead = num(parts[0]), num(parts[1]), num(parts[2])
				c.ActiveLeases, c.Heap = c.Processing, c.Processing
				if len(parts) > 3 {
					c.ActiveLeases, c.Heap = num(parts[3]), num(parts[4])
				}
				op.Count = &c
			case "code":
				event.Code = num(value)
			case "text":
				event.Text = value
			case "bytes":
				event.Bytes = int64(num(value))
			case "limit":
				event.Limit = int64(num(value))
			case "stepped":
				event.WallOffset = ms(value)
			default:
				t.Fatalf("line %q: unknown word %q", line, word)
			}
		}
		if isEvent {
			h.Events = append(h.Events, event)
		} else {
			h.Ops = append(h.Ops, op)
		}
	}
	return h
}

// drained ends a history whose queues were emptied.
const drained = "\ndrain at=10000\ndrained at=20000\n"

// controls holds for every invariant a history that breaks it and one beside
// it that does not: the smallest difference that makes it right.
var controls = []struct{ name, what, bad, clean string }{
	{"S1", "acknowledged and gone",
		"enqueue n=1 at=0-1" + drained,
		"enqueue n=1 at=0-1 unknown" + drained},
	{"S1", "a refused ack finishes nothing",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=10 n=1 lease=a\nack lease=a at=4-5 no" + drained,
		"enqueue n=1 at=0-1\nfetch at=2-3 for=10 n=1 lease=a\nack lease=a at=4-5 unknown" + drained},
	{"S1", "a job with tries left has no reason to be gone",
		"enqueue n=1 at=0-1 tries=2\nfetch at=2-3 for=10 n=1 lease=a" + drained,
		"enqueue n=1 at=0-1 tries=1\nfetch at=2-3 for=10 n=1 lease=a" + drained},
	{"S1", "buried, but not among the dead that were listed",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=10 n=1 lease=a\nbury lease=a at=4-5\npeek dead at=10001-10002" + drained,
		"enqueue n=1 at=0-1\nfetch at=2-3 for=10 n=1 lease=a\nbury lease=a at=4-5\npeek dead n=1 at=10001-10002" + drained},
	{"S9", "dead, then gone",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=10 n=1 lease=a\nbury lease=a at=4-5\npeek dead n=1 at=10001-10002\npeek dead at=10003-10004" + drained,
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=10 n=1 lease=a\nbury lease=a at=4-5\npeek dead n=1 at=10001-10002\npeek dead n=1 at=10003-10004" + drained},
	{"S2", "bytes that nobody made",
		"fetch at=2-3 for=10 n=1 torn lease=a",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=10 n=1 lease=a"},
	{"S2", "never enqueued",
		"fetch at=2-3 for=10 n=1 lease=a",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=10 n=1 lease=a"},
	{"S2", "of another queue",
		"enqueue n=1 at=0-1 q=p\nfetch at=2-3 for=10 n=1 lease=a",
		"enqueue n=1 at=0-1 q=q\nfetch at=2-3 for=10 n=1 lease=a"},
	{"S3", "delivered after its ack, by another incarnation",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=10 n=1 lease=a\nack lease=a at=4-5\nkilled at=6\nfetch inc=2 at=30-31 for=10 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=10 n=1 lease=a\nack lease=a at=4-5 unknown\nkilled at=6\nfetch inc=2 at=30-31 for=10 n=1 lease=b"},
	{"S4", "two leases both finish the job",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=1 n=1 lease=a\nfetch at=30-31 for=100 n=1 lease=b\nack lease=b at=32-33\nack lease=a at=32-33",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=1 n=1 lease=a\nfetch at=30-31 for=100 n=1 lease=b\nack lease=b at=32-33\nack lease=a at=32-33 no"},
	{"S4", "one lease used twice",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nack lease=a at=4-5\nack lease=a at=6-7",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nack lease=a at=4-5\nack lease=a at=6-7 no"},
	{"S5", "delivered again inside its lease",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nfetch at=50-51 for=100 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nfetch at=97-98 for=100 n=1 lease=b"},
	{"S5", "delivered again inside its lease after a restart",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nkilled at=10\nfetch inc=2 at=50-51 for=100 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nkilled at=10\nready at=12 stepped=80 inc=2\nfetch inc=2 at=50-51 for=100 n=1 lease=b"},
	{"S5", "two overlapping fetches",
		"enqueue n=1 at=0-1\nfetch at=2-5 for=100 n=1 lease=a\nfetch at=3-4 for=100 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-50 for=10 n=1 lease=a\nfetch at=3-4 for=10 n=1 lease=b"},
	{"S5", "an extension counts",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=20 n=1 lease=a\nextend lease=a at=5-6 for=100\nfetch at=50-51 for=10 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=20 n=1 lease=a\nextend lease=a at=5-6 for=100 unknown\nfetch at=50-51 for=10 n=1 lease=b"},
	{"S6", "an old lease after redelivery",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nfetch at=20-21 for=100 n=1 lease=b\nack lease=a at=30-31",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nfetch at=20-21 for=100 n=1 lease=b\nack lease=a at=30-31 no"},
	{"S7", "one lease for two jobs",
		"enqueue n=1 at=0-1\nenqueue n=2 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nfetch inc=2 at=20-21 for=100 n=2 lease=a",
		"enqueue n=1 at=0-1\nenqueue n=2 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nfetch inc=2 at=20-21 for=100 n=2 lease=b"},
	{"S7", "one task ID for two jobs",
		"enqueue n=1 at=0-1 job=x\nenqueue n=2 at=2-3 job=x",
		"enqueue n=1 at=0-1 job=x\nenqueue n=2 at=2-3 job=y"},
	{"S7", "a task ID that changes",
		"enqueue n=1 at=0-1 job=x\nfetch at=2-3 for=5 n=1 job=y lease=a",
		"enqueue n=1 at=0-1 job=x\nfetch at=2-3 for=5 n=1 job=x lease=a"},
	{"S7", "one task ID, another job's payload",
		"enqueue n=1 at=0-1 job=x\nenqueue n=2 at=0-1 unknown\nfetch at=2-3 for=5 n=2 job=x lease=a",
		"enqueue n=1 at=0-1 job=x\nenqueue n=2 at=0-1 unknown\nfetch at=2-3 for=5 n=2 job=y lease=a"},
	{"S8", "finished, and made once more",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=5 n=1 job=x lease=a\nack lease=a at=4-5\nfetch at=20-21 for=5 n=1 job=y lease=b",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=5 n=1 job=x lease=a\nack lease=a at=4-5"},
	{"S8", "an enqueue with a lost answer made two",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=5 n=1 job=x lease=a\nfetch at=20-21 for=5 n=1 job=y lease=b",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=5 n=1 job=x lease=a\nfetch at=20-21 for=5 n=1 job=x lease=b"},
	{"S8", "two jobs with one key",
		"enqueue n=1 at=0-1 unique=k for=100\nenqueue n=2 at=50-51 unique=k for=100",
		"enqueue n=1 at=0-1 unique=k for=100\nenqueue n=2 at=50-51 unique=k for=100 duplicate job=job1"},
	{"S9", "seen and gone",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=5 n=1 lease=a\nkilled at=4" + drained,
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=5 n=1 lease=a\nkilled at=4\nfetch inc=2 at=10001-10002 for=5 n=1 lease=b" + drained},
	{"S9", "shown and gone",
		"enqueue n=1 at=0-1 unknown\npeek n=1 at=2-3\nkilled at=4" + drained,
		"enqueue n=1 at=0-1 unknown\npeek at=2-3\nkilled at=4" + drained},
	{"S9", "counted and gone",
		"enqueue n=1 at=0-1 unknown\nstats at=2-3 counts=1,0,0\nkilled at=4" + drained,
		"enqueue n=1 at=0-1 unknown\nstats at=2-3 counts=0,0,0\nkilled at=4" + drained},
	{"S9", "two counted, one there at the end",
		"enqueue n=1 at=0-1\nenqueue n=2 at=0-1 unknown\nstats at=2-3 counts=2,0,0\nkilled at=4\nfetch inc=2 at=10001-10002 for=5 n=1 lease=b" + drained,
		"enqueue n=1 at=0-1\nenqueue n=2 at=0-1 unknown\nstats at=2-3 counts=2,0,0\nkilled at=4\nfetch inc=2 at=10001-10002 for=5 n=1 lease=b n=2 lease=c" + drained},
	{"S9", "counted, and deleted as far as anybody knows",
		"enqueue n=1 at=0-1 unknown\nstats at=2-3 counts=1,0,0\ndelete n=1 at=4-5 no\nkilled at=6" + drained,
		"enqueue n=1 at=0-1 unknown\nstats at=2-3 counts=1,0,0\ndelete n=1 at=4-5 unknown\nkilled at=6" + drained},
	{"S10", "counters that contradict themselves",
		"enqueue n=1 at=0-1\nstats at=5-6 counts=0,1,0,0,1",
		"enqueue n=1 at=0-1\nstats at=5-6 counts=0,1,0,1,1"},
	{"S10", "more leases than deadlines",
		"enqueue n=1 at=0-1\nstats at=5-6 counts=0,1,0,1,0",
		"enqueue n=1 at=0-1\nstats at=5-6 counts=0,1,0,1,2"},
	{"S10", "one job too many at rest",
		"enqueue n=1 at=0-1\nstats at=5-6 counts=2,0,0",
		"enqueue n=1 at=0-1\nenqueue n=2 at=0-1 unknown\nstats at=5-6 counts=2,0,0"},
	{"S10", "one job too few at rest",
		"enqueue n=1 at=0-1\nenqueue n=2 at=0-1\nstats at=5-6 quiet counts=1,0,0",
		"enqueue n=1 at=0-1\nenqueue n=2 at=0-1\nstats at=5-6 quiet counts=1,1,0"},
	{"S11", "the second before the first",
		"enqueue n=1 at=0-1\nenqueue n=2 at=2-3\nfetch at=4-5 for=100 n=2 lease=a\nfetch at=6-7 for=100 n=1 lease=b",
		"enqueue n=1 at=0-2\nenqueue n=2 at=2-3\nfetch at=4-5 for=100 n=2 lease=a\nfetch at=6-7 for=100 n=1 lease=b"},
	{"S11", "within one answer",
		"enqueue n=1 at=0-1\nenqueue n=2 at=2-3\nfetch at=4-5 for=100 n=2 lease=a n=1 lease=b",
		"enqueue n=1 at=0-1\nenqueue n=2 at=2-3\nfetch at=4-5 for=100 n=1 lease=a n=2 lease=b"},
	{"S11", "a lost answer excuses what it may have held",
		"fetch at=0-1 for=1 unknown\nkilled at=2\nenqueue inc=2 n=1 at=3-4\nenqueue inc=2 n=2 at=5-6\nfetch inc=2 at=7-8 for=100 n=2 lease=a\nfetch inc=2 at=9-10 for=100 n=1 lease=b",
		"enqueue n=1 at=0-1\nenqueue n=2 at=2-3\nfetch at=3.5-3.6 for=1 unknown\nkilled at=3.7\nfetch inc=2 at=7-8 for=100 n=2 lease=a\nfetch inc=2 at=9-10 for=100 n=1 lease=b"},
	{"S12", "changed from outside",
		"enqueue n=1 at=0-1\nstats at=2-3 counts=1,0,0\nenqueue n=2 q=p at=4-5\nstats at=6-7 counts=0,0,0",
		"enqueue n=1 at=0-1\nstats at=2-3 counts=1,0,0\nenqueue n=2 q=p at=4-5\nstats at=6-7 counts=0,1,0"},
	{"S12", "an operation that overlaps the second look",
		"stats at=2-3 counts=0,0,0\nstats at=4-6 counts=1,0,0",
		"stats at=2-3 counts=0,0,0\nenqueue n=1 at=5-8\nstats at=4-6 counts=1,0,0"},
	{"S13", "other bytes",
		"enqueue n=1 digest=5 at=0-1\nfetch at=2-3 for=5 n=1 digest=6 lease=a",
		"enqueue n=1 digest=5 at=0-1\nfetch at=2-3 for=5 n=1 digest=5 lease=a"},
	{"S13", "bytes that no edit wrote",
		"enqueue n=1 digest=1 at=0-1\nedit n=1 digest=2 at=2-3\nfetch at=4-5 for=5 n=1 digest=3 lease=a",
		"enqueue n=1 digest=1 at=0-1\nedit n=1 digest=3 at=2-3\nfetch at=4-5 for=5 n=1 digest=3 lease=a"},
	{"S14", "an answer after a failed sync",
		"sync-failed at=10\nenqueue n=1 at=61-62",
		"sync-failed at=10\nenqueue n=1 at=59-60"},
	{"S15", "refused and there all the same",
		"enqueue n=1 at=0-1 no\nfetch at=2-3 for=5 n=1 lease=a",
		"enqueue n=1 at=0-1 unknown\nfetch at=2-3 for=5 n=1 lease=a"},
	{"S15", "a refused ack finished the job",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nack lease=a at=4-5 no" + drained,
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nack lease=a at=14-15 no\nfetch at=10001-10002 for=5 n=1 lease=b" + drained},
	{"S16", "what is sent to a dead process does nothing",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nack lease=a at=5-6\nkilled at=10\nfetch inc=2 at=110-111 for=100 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nkilled at=10\nack lease=a at=11-12 unknown\nfetch inc=2 at=110-111 for=100 n=1 lease=b"},
	{"S16", "a live lease refused",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nack lease=a at=4-5 no",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nack lease=a at=104-105 no"},
	{"S16", "a lease accepted after its deadline",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nack lease=a at=110-111",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=100 n=1 lease=a\nack lease=a at=100-111"},
	{"S16", "delivered before it was enqueued",
		"enqueue n=1 at=10-11\nfetch at=2-3 for=100 n=1 lease=a",
		"enqueue n=1 at=2.5-11\nfetch at=2-3 for=100 n=1 lease=a"},
	{"S17", "a job was ready, none was given",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5\nfetch at=4-5 for=5 n=1 lease=a",
		"enqueue n=1 at=0-2\nfetch at=2-3 for=5\nfetch at=4-5 for=5 n=1 lease=a"},
	{"S17", "given back, but not given out",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nrelease lease=a at=4-5\nfetch at=6-7 for=5\nfetch at=8-9 for=5 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nrelease lease=a at=4-5 unknown\nfetch at=6-7 for=5\nfetch at=8-9 for=5 n=1 lease=b"},
	{"S18", "before its delay",
		"enqueue n=1 delay=100 at=0-1\nfetch at=50-51 for=5 n=1 lease=a",
		"enqueue n=1 delay=100 at=0-1\nfetch at=95-96 for=5 n=1 lease=a"},
	{"S18", "before the delay of a nack",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nnack lease=a delay=100 at=4-5\nfetch at=50-51 for=5 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nnack lease=a delay=100 at=4-5 unknown\nfetch at=50-51 for=5 n=1 lease=b"},
	{"S19", "the counter starts again",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 attempt=1 lease=a\nfetch inc=2 at=50-51 for=5 n=1 attempt=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 attempt=1 lease=a\nfetch inc=2 at=50-51 for=5 n=1 attempt=2 lease=b"},
	{"S19", "a delivery nobody saw",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 attempt=1 lease=a\nfetch at=50-51 for=5 n=1 attempt=3 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 attempt=1 lease=a\nfetch at=20-21 for=5 unknown\nfetch at=50-51 for=5 n=1 attempt=3 lease=b"},
	{"S19", "one number for two deliveries that overlap",
		"enqueue n=1 at=0-1\nfetch at=2-30 for=5 n=1 attempt=1 lease=a\nfetch at=20-21 for=5 n=1 attempt=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-30 for=5 n=1 attempt=1 lease=a\nfetch at=20-21 for=5 n=1 attempt=2 lease=b"},
	{"S19", "an answer that was read late",
		"enqueue n=1 at=0-1\nfetch at=2-30 for=5 n=1 attempt=1 lease=a\nfetch at=50-51 for=5 n=1 attempt=3 lease=c",
		"enqueue n=1 at=0-1\nfetch at=2-30 for=5 n=1 attempt=1 lease=a\nfetch at=20-21 for=5 n=1 attempt=2 lease=b\nfetch at=50-51 for=5 n=1 attempt=3 lease=c"},
	{"S19", "more deliveries than tries",
		"enqueue n=1 tries=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nnack lease=a at=4-5\nfetch at=50-51 for=5 n=1 lease=b",
		"enqueue n=1 tries=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nrelease lease=a at=4-5\nfetch at=50-51 for=5 n=1 lease=b"},
	{"S20", "dead before its time",
		"enqueue n=1 tries=2 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nnack lease=a at=4-5\npeek dead n=1 at=6-7",
		"enqueue n=1 tries=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nnack lease=a at=4-5\npeek dead n=1 at=6-7"},
	{"S20", "dropped instead of buried",
		"enqueue n=1 tries=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nnack lease=a at=4-5\npeek dead at=10001-10002" + drained,
		"enqueue n=1 tries=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nnack lease=a at=4-5\npeek dead n=1 at=10001-10002" + drained},
	{"S21", "half of a transaction",
		"enqueue n=1 batch=1 at=0-1 unknown\nenqueue n=2 batch=1 at=0-1 unknown\nkilled at=2\nfetch inc=2 at=10001-10002 for=5 n=1 lease=a" + drained,
		"enqueue n=1 batch=1 at=0-1 unknown\nenqueue n=2 batch=1 at=0-1 unknown\nkilled at=2\nfetch inc=2 at=10001-10002 for=5 n=1 lease=a n=2 lease=b" + drained},
	{"S21", "enqueued, but not finished",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nack lease=a batch=1 at=4-5 unknown\nenqueue n=2 batch=1 at=4-5 unknown\nkilled at=6\nfetch inc=2 at=10001-10002 for=5 n=2 lease=b\nfetch inc=2 at=10003-10004 for=5 n=1 lease=c" + drained,
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nack lease=a batch=1 at=4-5 unknown\nenqueue n=2 batch=1 at=4-5 unknown\nkilled at=6\nfetch inc=2 at=10001-10002 for=5 n=2 lease=b" + drained},
	{"S21", "finished, but not enqueued",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nack lease=a batch=1 at=4-5 unknown\nenqueue n=2 batch=1 at=4-5 unknown\nkilled at=6" + drained,
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nack lease=a batch=1 at=4-5 unknown\nenqueue n=2 batch=1 at=4-5 unknown\nkilled at=6\nfetch inc=2 at=10003-10004 for=5 n=1 lease=c" + drained},
	{"S22", "deleted and delivered",
		"enqueue n=1 at=0-1\ndelete n=1 at=2-3\nfetch at=4-5 for=5 n=1 lease=a",
		"enqueue n=1 at=0-1\ndelete n=1 at=2-3 unknown\nfetch at=4-5 for=5 n=1 lease=a"},
	{"S22", "the text before the edit",
		"enqueue n=1 digest=1 at=0-1\nedit n=1 digest=2 at=2-3\nfetch at=4-5 for=5 n=1 digest=1 lease=a",
		"enqueue n=1 digest=1 at=0-1\nedit n=1 digest=2 at=2-3\nfetch at=4-5 for=5 n=1 digest=2 lease=a"},
	{"S23", "the lower first",
		"enqueue n=1 prio=5 at=0-1\nenqueue n=2 prio=1 at=0-1\nfetch at=2-3 for=50 n=2 lease=a\nfetch at=4-5 for=50 n=1 lease=b",
		"enqueue n=1 prio=5 at=0-1\nenqueue n=2 prio=1 at=0-1\nfetch at=2-3 for=50 n=1 lease=a\nfetch at=4-5 for=50 n=2 lease=b"},

	{"L1", "slow start", "start at=0\nready at=1100", "start at=0\nready at=900"},
	{"L2", "an ended lease forgotten",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nfetch at=3000-3001 for=5\nfetch at=4000-4001 for=5 n=1 lease=b",
		"enqueue n=1 at=0-1\nfetch at=2-3 for=5 n=1 lease=a\nfetch at=1000-1001 for=5\nfetch at=4000-4001 for=5 n=1 lease=b"},
	{"L3", "a waiting fetch left waiting",
		"fetch wait=5000 at=0-2000 for=5 n=1 lease=a\nenqueue n=1 at=10-11",
		"fetch wait=5000 at=0-2000 for=5 n=1 lease=a\nenqueue n=1 at=1990-1991"},
	{"L4", "still refusing",
		"healed at=0\nenqueue n=1 at=6000-6001 no",
		"healed at=0\nenqueue n=1 at=4000-4001 no"},
	{"L5", "over the formula", "disk at=0 bytes=11 limit=10", "disk at=0 bytes=10 limit=10"},
	{"L6", "slow to end", "terminate at=0\nexited at=11000", "terminate at=0\nexited at=9000"},
	{"L7", "a client kept waiting", "enqueue n=1 at=0-1200", "enqueue n=1 at=0-900"},
	{"L8", "a backlog that stays", "drain at=10", "drain at=10\ndrained at=20"},

	{"R1", "a code that means nothing", "terminate at=0\nexited at=1 code=2 text=oops", "terminate at=0\nexited at=1"},
	{"R1", "a stack trace", "terminate at=0\nexited at=1 code=74 text=panic:", "terminate at=0\nexited at=1 code=74 text=disk"},
	{"R1", "silence", "terminate at=0\nexited at=1 code=74", "terminate at=0\nexited at=1 code=74 text=disk"},
	{"R1", "by itself", "exited at=1", "terminate at=0\nexited at=1"},
}

func TestControls(t *testing.T) {
	opt := history.Options{Bounds: true}
	covered := map[string]bool{}
	for _, control := range controls {
		covered[control.name] = true
		t.Run(control.name+" "+control.what, func(t *testing.T) {
			bad := history.Check(parse(t, control.bad), opt)
			if !bad.Has(control.name) {
				t.Errorf("the bad history was not reported as %s: %s", control.name, bad)
			}
			clean := history.Check(parse(t, control.clean), opt)
			if clean.Has(control.name) {
				t.Errorf("the clean history was reported: %s", clean)
			}
		})
	}
	for _, name := range history.Invariants() {
		if !covered[name] {
			t.Errorf("%s (%s) has no control", name, history.Explain[name])
		}
	}
}

// A whole clean run breaks nothing at all.
func TestCleanRun(t *testing.T) {
	clean := parse(t, `
start at=0
ready at=5
enqueue n=1 at=10-11
enqueue n=2 at=12-13
enqueue n=3 at=14-20 unknown
killed at=20
start at=21 inc=2
ready at=25 inc=2
fetch inc=2 at=30-31 for=100 n=1 lease=a attempt=1
fetch inc=2 at=32-33 for=50 n=2 lease=b attempt=1
extend inc=2 lease=a for=100 at=34-35
stats inc=2 at=36-37 counts=1,2,0
ack inc=2 lease=a at=40-41
ack inc=2 lease=a at=42-43 no
release inc=2 lease=b at=44-45
fetch inc=2 at=50-51 for=50 n=2 lease=c attempt=2
fetch inc=2 at=52-53 for=50 n=3 lease=d attempt=1
fetch inc=2 at=54-55 for=50
drain at=10000
fetch inc=2 at=10001-10002 for=50 n=2 lease=e attempt=3
ack inc=2 lease=e at=10003-10004
fetch inc=2 at=10005-10006 for=50 n=3 lease=f attempt=2
ack inc=2 lease=f at=10007-10008
stats inc=2 at=10010-10011 quiet counts=0,0,0
drained at=10012 inc=2
terminate at=10013 inc=2
exited at=10020 inc=2`)
	report := history.Check(clean, history.Options{Bounds: true})
	if !report.OK() {
		t.Errorf("a clean run was reported: %s", report)
	}
	if report.Jobs != 3 || report.Deaths != 2 || report.Unknown != 1 {
		t.Errorf("got %d jobs, %d deaths, %d unknown, want 3, 2, 1", report.Jobs, report.Deaths, report.Unknown)
	}
}

func TestSaveAndLoad(t *testing.T) {
	want := parse(t, controls[1].bad)
	var file bytes.Buffer
	if err := history.Save(&file, want); err != nil {
		t.Fatal(err)
	}
	got, err := history.Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := history.Load(strings.NewReader("{\"Op\":")); err == nil {
		t.Error("half a line was loaded without an error")
	}
}

// A history judged in parts: an ID that was given in one must not come again in
// another, and within a part the same ID may stand in many answers.
func TestParts(t *testing.T) {
	var before history.IDs
	judge := func(text string) history.Report {
		return history.Check(parse(t, text), history.Options{Before: &before})
	}
	const first = `
enqueue n=1 at=10-11
fetch at=30-31 for=10 n=1 lease=a
fetch at=50-51 for=10 n=1 lease=b
ack lease=b at=52-53`
	if r := judge(first); !r.OK() {
		t.Errorf("the first part: %s", r)
	}
	for _, c := range []struct {
		what, text string
		again      int
	}{
		{"another job, another lease", "enqueue n=2 at=110-111\nfetch at=130-131 for=10 n=2 lease=c", 0},
		{"a lease ID again", "enqueue n=3 at=210-211\nfetch at=230-231 for=10 n=3 lease=a", 1},
		{"a task ID again", "enqueue n=4 job=job1 at=310-311\nfetch at=330-331 for=10 n=4 job=job1 lease=d", 1},
	} {
		if r := judge(c.text); r.Counts["S7"] != c.again {
			t.Errorf("%s: got %d reports of S7, want %d: %s", c.what, r.Counts["S7"], c.again, r)
		}
	}
}

// What S16 has no time for is counted, and makes the report no clean one.
func TestUndecided(t *testing.T) {
	h := parse(t, "enqueue n=1 at=10-11\nfetch at=30-31 for=10 n=1 lease=a")
	r := history.Check(h, history.Options{Patience: 1})
	if r.Undecided != 1 || r.OK() {
		t.Errorf("got %d undecided, OK %t, want 1, false", r.Undecided, r.OK())
	}
}

func TestRecorder(t *testing.T) {
	rec := history.NewRecorder()
	done := rec.Call(history.Op{Kind: history.Enqueue, Nonce: 1})
	rec.Call(history.Op{Kind: history.Enqueue, Nonce: 2})
	rec.Return(done, history.OK)
	rec.Event(history.Event{Kind: history.Ready})
	h := rec.History()
	got := []history.Outcome{h.Ops[0].Outcome, h.Ops[1].Outcome}
	if want := []history.Outcome{history.OK, history.Unknown}; !slices.Equal(got, want) {
		t.Errorf("outcomes: got %v, want %v", got, want)
	}
	if h.Ops[0].Return < h.Ops[0].Call || h.Events[0].At < h.Ops[0].Return {
		t.Errorf("times go backwards: %+v %+v", h.Ops[0], h.Events[0])
	}
	if ops, _ := rec.Count(); ops != 2 {
		t.Errorf("got %d operations, want 2", ops)
	}
	now := rec.Now()
	rec.Forget()
	if h := rec.History(); len(h.Ops)+len(h.Events) != 0 {
		t.Errorf("after Forget there is %+v", h)
	}
	if rec.Now() < now {
		t.Error("the clock was set back")
	}
}

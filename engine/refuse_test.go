package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/engine"
	"pawl/state"
)

// Every refusal: it says why, and the state is as it was, to the byte.
func TestRefusalsChangeNothing(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 256)
	settings := func(which state.SettingSet, v state.Settings) func(*shop) engine.Command {
		return func(s *shop) engine.Command {
			s.must(&engine.QueueSet{Queue: key("q"), Settings: v, Which: which})
			s.enqueue("q", "12345")
			return &engine.Enqueue{Queue: key("q"), Payload: []byte("123456")}
		}
	}
	never := state.LeaseID{Slot: 1}
	tests := []struct {
		rule string
		opt  engine.Options
		make func(s *shop) engine.Command
		want error
	}{
		{"no name", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: key("")} }, engine.ErrEmptyName},
		{"white space for a name", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: key(" \t")} }, engine.ErrEmptyName},
		{"no namespace", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: key("/x")} }, engine.ErrEmptyName},
		{"no key at all", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: []byte("mail")} }, engine.ErrEmptyName},
		{"long name", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: key(string(long))} }, engine.ErrNameTooLong},
		{"long namespace", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: key(string(long) + "/x")} }, engine.ErrNameTooLong},
		{"fetch without a name", engine.Options{}, func(s *shop) engine.Command {
			return &engine.Fetch{Queues: [][]byte{key("q"), key("")}, LeaseMs: 1}
		}, engine.ErrEmptyName},
		{"fetch from too many queues", engine.Options{}, func(s *shop) engine.Command {
			return &engine.Fetch{Queues: make([][]byte, engine.MaxFetchQueues+1), LeaseMs: 1}
		}, engine.ErrTooMany},
		{"lease beyond all time", engine.Options{}, func(s *shop) engine.Command {
			s.enqueue("q", "x")
			return &engine.Fetch{Queues: [][]byte{key("q")}, LeaseMs: 1<<63 - 1}
		}, engine.ErrTimeout},
		{"negative lease", engine.Options{}, func(s *shop) engine.Command {
			return &engine.Fetch{Queues: [][]byte{key("q")}, LeaseMs: -1}
		}, engine.ErrTimeout},
		{"payload over the limit", engine.Options{MaxPayload: 10}, func(s *shop) engine.Command {
			return &engine.Enqueue{Queue: key("q"), Payload: make([]byte, 11)}
		}, engine.ErrTooLarge},
		{"TTL as long as the delay", engine.Options{}, func(s *shop) engine.Command {
			return &engine.Enqueue{Queue: key("q"), Delay: 1000, TTL: engine.Some(state.Millis(1000))}
		}, engine.ErrTTLShorter},
		{"TTL of the queue shorter than the delay", engine.Options{}, func(s *shop) engine.Command {
			s.must(&engine.QueueSet{Queue: key("q"), Settings: state.Settings{TTL: 1000}, Which: state.SetTTL})
			return &engine.Enqueue{Queue: key("q"), Delay: 2000}
		}, engine.ErrTTLShorter},
		{"too many attributes", engine.Options{}, func(s *shop) engine.Command {
			return &engine.Enqueue{Queue: key("q"), Attrs: make([]engine.Attr, 17)}
		}, engine.ErrAttrs},
		{"long attribute", engine.Options{}, func(s *shop) engine.Command {
			return &engine.Enqueue{Queue: key("q"), Attrs: []engine.Attr{{Name: []byte("a"), Value: long}}}
		}, engine.ErrAttrs},
		{"long unique key", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: key("q"), Unique: long} }, engine.ErrAttrs},
		{"long group", engine.Options{}, func(s *shop) engine.Command { return &engine.Enqueue{Queue: key("q"), Group: long} }, engine.ErrAttrs},
		{"MAXLEN", engine.Options{}, settings(state.SetMaxLen, state.Settings{MaxLen: 1}), engine.ErrQueueFull},
		{"MAXBYTES", engine.Options{}, settings(state.SetMaxBytes, state.Settings{MaxBytes: 10}), engine.ErrQueueFull},
		{"draining", engine.Options{}, func(s *shop) engine.Command {
			s.must(&engine.Drain{On: true})
			return &engine.Enqueue{Queue: key("q")}
		}, engine.ErrDraining},
		{"memory", engine.Options{MaxMemory: 1}, func(s *shop) engine.Command {
			s.must(&engine.QueueSet{Queue: key("q"), Settings: state.Settings{MaxLen: 1}, Which: state.SetMaxLen})
			return &engine.Enqueue{Queue: key("q")}
		}, engine.ErrNoMemory},
		{"too many queues", engine.Options{MaxQueues: 1}, func(s *shop) engine.Command {
			s.enqueue("q", "x")
			return &engine.Enqueue{Queue: key("p")}
		}, engine.ErrTooMany},
		{"too many queues, by pause", engine.Options{MaxQueues: 1}, func(s *shop) engine.Command {
			s.enqueue("q", "x")
			return &engine.QueuePause{Queue: key("p")}
		}, engine.ErrTooMany},
		{"too many groups", engine.Options{MaxGroups: 1}, func(s *shop) engine.Command {
			s.must(&engine.Enqueue{Queue: key("q"), Group: []byte("a")})
			s.must(&engine.Enqueue{Queue: key("q"), Group: []byte("a")}) // no more than there were
			return &engine.Enqueue{Queue: key("q"), Group: []byte("b")}
		}, engine.ErrTooMany},
		{"ack of nothing", engine.Options{}, func(s *shop) engine.Command { return &engine.Ack{Leases: []state.LeaseID{never}} }, engine.ErrNoLease},
		{"nack of nothing", engine.Options{}, func(s *shop) engine.Command { return &engine.Nack{Lease: never} }, engine.ErrNoLease},
		{"release of nothing", engine.Options{}, func(s *shop) engine.Command { return &engine.Release{Lease: never} }, engine.ErrNoLease},
		{"bury of nothing", engine.Options{}, func(s *shop) engine.Command { return &engine.Bury{Lease: never} }, engine.ErrNoLease},
		{"extend of nothing", engine.Options{}, func(s *shop) engine.Command { return &engine.Extend{Lease: never, LeaseMs: 1} }, engine.ErrNoLease},
		{"extend beyond all time", engine.Options{}, func(s *shop) engine.Command {
			s.enqueue("q", "x")
			return &engine.Extend{Lease: s.want("q", "x").Lease, LeaseMs: 1 << 62}
		}, engine.ErrTimeout},
		{"ack with a lease of another delivery", engine.Options{}, func(s *shop) engine.Command {
			s.enqueue("q", "x")
			d := s.want("q", "x")
			s.must(&engine.Release{Lease: d.Lease})
			s.want("q", "x")
			return &engine.Ack{Leases: []state.LeaseID{d.Lease}}
		}, engine.ErrNoLease},
		{"edit of no job", engine.Options{}, func(s *shop) engine.Command { return &engine.JobEdit{Kind: engine.EditRun} }, engine.ErrNoJob},
		{"edit of a leased job", engine.Options{}, func(s *shop) engine.Command {
			s.enqueue("q", "x")
			return &engine.JobEdit{ID: s.want("q", "x").ID, Kind: engine.EditPriority, Priority: 5}
		}, engine.ErrBusyJob},
		{"payload edit over the limit", engine.Options{MaxPayload: 10}, func(s *shop) engine.Command {
			return &engine.JobEdit{ID: s.enqueue("q", "x"), Kind: engine.EditPayload, Payload: make([]byte, 11)}
		}, engine.ErrTooLarge},
		{"payload edit over MAXBYTES", engine.Options{}, func(s *shop) engine.Command {
			id := s.enqueue("q", "x")
			s.must(&engine.QueueSet{Queue: key("q"), Settings: state.Settings{MaxBytes: 5}, Which: state.SetMaxBytes})
			return &engine.JobEdit{ID: id, Kind: engine.EditPayload, Payload: []byte("123456")}
		}, engine.ErrQueueFull},
		{"delay beyond the TTL", engine.Options{}, func(s *shop) engine.Command {
			c := &engine.Enqueue{Queue: key("q"), TTL: engine.Some(state.Millis(60_000))}
			s.must(c)
			return &engine.JobEdit{ID: c.ID, Kind: engine.EditDelay, Delay: 3_600_000}
		}, engine.ErrTTLShorter},
		{"move to a full queue", engine.Options{}, func(s *shop) engine.Command {
			s.must(&engine.QueueSet{Queue: key("full"), Settings: state.Settings{MaxLen: 1}, Which: state.SetMaxLen})
			s.enqueue("full", "x")
			return &engine.JobEdit{ID: s.enqueue("q", "x"), Kind: engine.EditMove, Queue: key("full")}
		}, engine.ErrQueueFull},
		{"move to where the key is taken", engine.Options{}, func(s *shop) engine.Command {
			s.must(&engine.Enqueue{Queue: key("p"), Unique: []byte("k")})
			c := &engine.Enqueue{Queue: key("q"), Unique: []byte("k")}
			s.must(c)
			return &engine.JobEdit{ID: c.ID, Kind: engine.EditMove, Queue: key("p")}
		}, engine.ErrUniqueTaken},
		{"run of a dead job in a full queue", engine.Options{}, func(s *shop) engine.Command {
			s.must(&engine.QueueSet{Queue: key("q"), Settings: state.Settings{MaxLen: 1}, Which: state.SetMaxLen})
			id := s.enqueue("q", "x")
			s.must(&engine.Bury{Lease: s.want("q", "x").Lease})
			s.enqueue("q", "y")
			return &engine.JobEdit{ID: id, Kind: engine.EditRun}
		}, engine.ErrQueueFull},
		{"delete of a queue with a leased job", engine.Options{}, func(s *shop) engine.Command {
			s.enqueue("q", "x")
			s.enqueue("q", "y")
			s.want("q", "x")
			return &engine.QueueDelete{Queue: key("q")}
		}, engine.ErrQueueLeased},
		{"peek behind a job that went", engine.Options{}, func(s *shop) engine.Command {
			id := s.enqueue("q", "x")
			s.ack(s.want("q", "x"))
			return &engine.QueuePeek{Queue: key("q"), Place: state.Ready, After: id.AppendText(nil)}
		}, engine.ErrCursor},
		{"peek behind a job of another place", engine.Options{}, func(s *shop) engine.Command {
			id := s.enqueue("q", "x")
			return &engine.QueuePeek{Queue: key("q"), Place: state.Dead, After: id.AppendText(nil)}
		}, engine.ErrCursor},
		{"peek behind nonsense", engine.Options{}, func(s *shop) engine.Command {
			return &engine.QueuePeek{Queue: key("q"), Place: state.Ready, After: []byte("?")}
		}, engine.ErrCursor},
		{"long pattern", engine.Options{}, func(s *shop) engine.Command {
			return &engine.QueueList{Pool: "default", Match: bytes.Repeat([]byte("*"), engine.MaxGlobBytes+1)}
		}, engine.ErrTooLarge},
		{"meta that exists", engine.Options{}, func(s *shop) engine.Command {
			s.must(&engine.MetaSet{Key: "user/a", Value: []byte("1")})
			return &engine.MetaSet{Key: "user/a", Value: []byte("2"), IfAbsent: true}
		}, engine.ErrExists},
		{"large meta", engine.Options{}, func(s *shop) engine.Command {
			return &engine.MetaSet{Key: "user/a", Value: make([]byte, engine.MaxMetaBytes+1)}
		}, engine.ErrTooLarge},
		{"too many metas", engine.Options{MaxMeta: 1}, func(s *shop) engine.Command {
			s.must(&engine.MetaSet{Key: "user/a", Value: []byte("1")})
			return &engine.MetaSet{Key: "user/b", Value: []byte("1")}
		}, engine.ErrTooMany},
		{"meta without a key", engine.Options{}, func(s *shop) engine.Command { return &engine.MetaSet{Value: []byte("1")} }, engine.ErrEmptyName},
		{"cron without a name", engine.Options{}, func(s *shop) engine.Command {
			return &engine.CronSet{Cron: state.Cron{Namespace: "default/default", Spec: "* * * * *", Queue: string(key("q"))}}
		}, engine.ErrEmptyName},
		{"cron without a queue", engine.Options{}, func(s *shop) engine.Command {
			return &engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: "c", Spec: "* * * * *"}}
		}, engine.ErrEmptyName},
		{"cron that cannot be read", engine.Options{}, func(s *shop) engine.Command {
			return &engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: "c", Spec: "* * *", Queue: string(key("q"))}}
		}, engine.ErrCronSpec},
		{"cron with a large payload", engine.Options{MaxPayload: 10}, func(s *shop) engine.Command {
			return &engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: "c", Spec: "* * * * *", Queue: string(key("q")), Payload: make([]byte, 11)}}
		}, engine.ErrTooLarge},
		{"cron with options that are none", engine.Options{}, func(s *shop) engine.Command {
			return &engine.CronSet{Cron: state.Cron{Namespace: "default/default", Name: "c", Spec: "* * * * *", Queue: string(key("q")), Options: []byte("{")}}
		}, engine.ErrAttrs},
		{"too many crons", engine.Options{MaxCrons: 1}, func(s *shop) engine.Command {
			cron := state.Cron{Namespace: "default/default", Name: "c", Spec: "* * * * *", Queue: string(key("q"))}
			s.must(&engine.CronSet{Cron: cron})
			cron.Name = "d"
			return &engine.CronSet{Cron: cron}
		}, engine.ErrTooMany},
		{"long transaction", engine.Options{}, func(s *shop) engine.Command {
			return &engine.Multi{Commands: make([]engine.Command, engine.MaxMulti+1)}
		}, engine.ErrTooMany},
		{"transaction of many leases and IDs", engine.Options{}, func(s *shop) engine.Command {
			ids := []state.JobID{s.enqueue("q", "x")}
			leases := make([]state.LeaseID, engine.MaxMulti/2)
			multi := &engine.Multi{Commands: []engine.Command{&engine.Ack{Leases: leases}, &engine.JobDelete{IDs: make([]state.JobID, engine.MaxMulti/2)}}}
			s.must(multi)
			multi.Commands = append(multi.Commands, &engine.JobDelete{IDs: ids})
			return multi
		}, engine.ErrTooMany},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			inBubble(t, test.opt, func(t *testing.T, s *shop) {
				cmd := test.make(s)
				before := s.dump()
				if err := s.do(cmd); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if after := s.dump(); after != before {
					t.Errorf("the state changed:\n%s\nwant\n%s", after, before)
				}
			})
		})
	}
}

// A refusal within a transaction undoes nothing because nothing was done.
func TestMultiAbortsWhole(t *testing.T) {
	tests := []struct {
		rule  string
		make  func(s *shop) []engine.Command
		index int
		want  error
	}{
		{"a lease ended twice", func(s *shop) []engine.Command {
			s.enqueue("q", "x")
			d := s.want("q", "x")
			return []engine.Command{&engine.Ack{Leases: []state.LeaseID{d.Lease}}, &engine.Nack{Lease: d.Lease}}
		}, 1, engine.ErrNoLease},
		{"ack after nack", func(s *shop) []engine.Command {
			s.enqueue("q", "x")
			d := s.want("q", "x")
			return []engine.Command{&engine.Nack{Lease: d.Lease}, &engine.Ack{Leases: []state.LeaseID{d.Lease}}}
		}, 1, engine.ErrNoLease},
		{"extend after release", func(s *shop) []engine.Command {
			s.enqueue("q", "x")
			d := s.want("q", "x")
			return []engine.Command{&engine.Release{Lease: d.Lease}, &engine.Extend{Lease: d.Lease, LeaseMs: 1}}
		}, 1, engine.ErrNoLease},
		{"bury after delete", func(s *shop) []engine.Command {
			s.enqueue("q", "x")
			d := s.want("q", "x")
			return []engine.Command{&engine.JobDelete{IDs: []state.JobID{d.ID}}, &engine.Bury{Lease: d.Lease}}
		}, 1, engine.ErrNoLease},
		{"ack after an extension to nothing", func(s *shop) []engine.Command {
			s.enqueue("q", "x")
			d := s.want("q", "x")
			return []engine.Command{&engine.Extend{Lease: d.Lease, LeaseMs: 0}, &engine.Ack{Leases: []state.LeaseID{d.Lease}}}
		}, 1, engine.ErrNoLease},
		{"MAXLEN by the transaction itself", func(s *shop) []engine.Command {
			s.must(&engine.QueueSet{Queue: key("q"), Settings: state.Settings{MaxLen: 2}, Which: state.SetMaxLen})
			s.enqueue("q", "x")
			return []engine.Command{&engine.Enqueue{Queue: key("q")}, &engine.Enqueue{Queue: key("q")}}
		}, 1, engine.ErrQueueFull},
		{"too large at the end", func(s *shop) []engine.Command {
			return []engine.Command{&engine.Enqueue{Queue: key("new")}, &engine.Enqueue{Queue: key("q"), Payload: make([]byte, 2000)}}
		}, 1, engine.ErrTooLarge},
		{"too many queues", func(s *shop) []engine.Command {
			return []engine.Command{&engine.Enqueue{Queue: key("1")}, &engine.Enqueue{Queue: key("2")}, &engine.Enqueue{Queue: key("1")}, &engine.Enqueue{Queue: key("3")}, &engine.Enqueue{Queue: key("4")}}
		}, 4, engine.ErrTooMany},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			inBubble(t, engine.Options{MaxPayload: 1000, MaxQueues: 3}, func(t *testing.T, s *shop) {
				cmds := test.make(s)
				before := s.dump()
				m := &engine.Multi{Commands: cmds}
				err := s.do(m)
				abort, ok := errors.AsType[*engine.AbortError](err)
				if !ok || abort.Index != test.index || !errors.Is(abort, test.want) {
					t.Errorf("got %v, want command %d: %v", err, test.index, test.want)
				}
				if after := s.dump(); after != before {
					t.Errorf("the state changed:\n%s\nwant\n%s", after, before)
				}
			})
		})
	}
}

// What a transaction must not refuse.
func TestMultiTakesWhatFitsTogether(t *testing.T) {
	inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
		s.must(&engine.QueueSet{Queue: key("q"), Settings: state.Settings{MaxLen: 1, MaxBytes: 5}, Which: state.SetMaxLen | state.SetMaxBytes})
		s.enqueue("q", "12345")
		for i := range 10 { // ack this and enqueue that, in a queue that is full
			d := s.fetch("q", 60_000)
			in := &engine.Enqueue{Queue: key("q"), Payload: []byte("54321"), Unique: []byte(fmt.Sprint(i))}
			again := &engine.Enqueue{Queue: key("q"), Payload: []byte("54321"), Unique: []byte(fmt.Sprint(i))}
			other := &engine.Enqueue{Queue: key("log"), Payload: []byte("done")}
			s.must(&engine.Multi{Commands: []engine.Command{&engine.Ack{Leases: []state.LeaseID{d.Lease}}, in, again, other}})
			if !again.Duplicate || again.ID != in.ID || in.Duplicate {
				t.Fatalf("got %v and %v, duplicate %v, want one job", in.ID, again.ID, again.Duplicate)
			}
		}
		s.wantCounts("q", 1, 0, 0, 0)
		s.wantCounts("log", 10, 0, 0, 0)

		id := s.enqueue("p", "x")
		d := s.want("p", "x")
		del := &engine.JobDelete{IDs: []state.JobID{id, id}}
		s.must(&engine.Multi{Commands: []engine.Command{&engine.Nack{Lease: d.Lease}, del}})
		if del.Deleted != 1 {
			t.Errorf("got %d deleted, want 1", del.Deleted)
		}
		some := &engine.Ack{Leases: []state.LeaseID{d.Lease, {}}}
		s.must(&engine.Multi{Commands: []engine.Command{some}})
		if len(some.Done) != 2 || some.Done[0] || some.Done[1] {
			t.Errorf("got %v, want neither done", some.Done)
		}
		s.must(&engine.Multi{})
	})
}

// Unique keys and groups in a transaction at the very limit: what would be taken
// one by one is taken together.
func TestMultiIsExact(t *testing.T) {
	unique := func(text string) *engine.Enqueue {
		return &engine.Enqueue{Queue: key("q"), Unique: []byte(text), For: 1000}
	}
	grouped := func(group string) *engine.Enqueue {
		return &engine.Enqueue{Queue: key("q"), Group: []byte(group)}
	}
	full := func(s *shop) {
		s.must(&engine.QueueSet{Queue: key("q"), Settings: state.Settings{MaxLen: 2}, Which: state.SetMaxLen})
		s.enqueue("q", "other")
	}
	t.Run("a key that its window still holds is a duplicate in a full queue", func(t *testing.T) {
		inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
			full(s)
			first := unique("k")
			s.must(first)
			again, more := unique("k"), unique("l")
			s.must(&engine.Multi{Commands: []engine.Command{&engine.JobDelete{IDs: []state.JobID{first.ID}}, more, again}})
			if !again.Duplicate || again.ID != first.ID || more.Duplicate {
				t.Errorf("got %v, duplicate %v, want the first job %v", again.ID, again.Duplicate, first.ID)
			}
		})
	})
	t.Run("a key whose window is over is free", func(t *testing.T) {
		inBubble(t, engine.Options{}, func(t *testing.T, s *shop) {
			full(s)
			first := unique("k")
			s.must(first)
			s.sleep(time.Second)
			again := unique("k")
			s.must(&engine.Multi{Commands: []engine.Command{&engine.JobDelete{IDs: []state.JobID{first.ID}}, again}})
			if again.Duplicate {
				t.Error("got a duplicate of a job that the transaction deleted")
			}
			m := &engine.Multi{Commands: []engine.Command{unique("k"), unique("m")}}
			if err := s.do(m); !errors.Is(err, engine.ErrQueueFull) {
				t.Errorf("got %v, want the second command refused: the first adds nothing", err)
			}
		})
	})
	t.Run("groups", func(t *testing.T) {
		inBubble(t, engine.Options{MaxGroups: 2}, func(t *testing.T, s *shop) {
			s.must(&engine.Multi{Commands: []engine.Command{grouped("a"), grouped("a"), grouped("b"), grouped("b")}})
			refused := &engine.Multi{Commands: []engine.Command{grouped("a"), grouped("c")}}
			if err := s.do(refused); !errors.Is(err, engine.ErrTooMany) {
				t.Errorf("got %v for a third group, want %v", err, engine.ErrTooMany)
			}
			last := grouped("a")
			s.must(last)
			for range 2 { // the last job of the group makes room for another group
				s.ack(s.want("q", ""))
				s.ack(s.want("q", ""))
			}
			s.must(&engine.Multi{Commands: []engine.Command{&engine.JobDelete{IDs: []state.JobID{last.ID}}, grouped("c"), grouped("d")}})
		})
	})
}

// What others change beside the critical section cannot stop a transaction half
// way: memory is an estimate, and here it is at its limit.
func TestMultiAtTheLimitOfMemory(t *testing.T) {
	for limit := int64(30_000); limit < 38_000; limit += 500 {
		inBubble(t, engine.Options{MaxMemory: limit}, func(t *testing.T, s *shop) {
			for i := range 1000 {
				var cmds []engine.Command
				for j := range 8 {
					name := fmt.Sprint(i, "/", j)
					cmds = append(cmds, &engine.Enqueue{
						Queue: key("q" + name), Unique: []byte(name), Group: []byte(name), TTL: engine.Some(state.Millis(1000)),
					})
				}
				if err := s.do(&engine.Multi{Commands: cmds}); errors.Is(err, engine.ErrNoMemory) {
					return
				}
			}
			t.Error("the limit was never met")
		})
	}
}

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"*", "", true}, {"*", "mail", true}, {"", "", true}, {"", "a", false},
		{"m?il", "mail", true}, {"m?il", "mil", false}, {"m*l", "mail", true}, {"m*l", "mails", false},
		{"[a-c]x", "bx", true}, {"[a-c]x", "dx", false}, {"[^a-c]x", "dx", true}, {"[^a-c]x", "ax", false},
		{"[c-a]x", "bx", true}, {`\*`, "*", true}, {`\*`, "x", false}, {`[\]]`, "]", true}, {"[abc", "b", true},
		{"a*b*c", "a-b-b-c", true}, {"a*b*c", "a-c-b", false}, {"**a**", "bab", true},
	}
	for _, test := range tests {
		if got := engine.Glob(test.pattern, test.name); got != test.want {
			t.Errorf("%q on %q: got %v, want %v", test.pattern, test.name, got, test.want)
		}
	}
	// What takes exponential time elsewhere.
	if engine.Glob(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 700)) {
		t.Error("got a match")
	}
}

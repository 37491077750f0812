package state

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

func golden(t *testing.T) *State {
	b, err := os.ReadFile("testdata/golden/1.state")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each row breaks one thing that Check must find. In the golden state, jobs 1 to
// 12 are of queue 1: 1 and 2 are ready, 3 is head of group 1 and 4 and 5 wait
// behind it, 6 is delayed with a group, 7 and 8 are delayed, 9 and 10 by wall
// time, 11 is leased, 12 is dead with a key. Job 16 of queue 2 failed and is
// delayed, 17 is dead.
func TestCheckFinds(t *testing.T) {
	x := func(s *State, slot uint32) *extra { return s.extras.edit(s.jobs.at(slot).extra) }
	for _, tt := range []struct {
		want  string
		spoil func(*State)
	}{
		{"log time", func(s *State) { s.now = -1 }},
		{"log time", func(s *State) { s.offset = MaxMillis + 1 }},
		{"jobs: free list leads to", func(s *State) { s.jobs.free = 99 }},
		{"jobs: free list leads to", func(s *State) { s.jobs.edit(s.jobs.free).next = s.jobs.free }},
		{"job 1: free false, place 0", func(s *State) { s.jobs.edit(1).where = 0 }},
		{"free and not empty", func(s *State) { s.jobs.edit(15).length = 1 }},
		{"queues: entry 4 is free and not empty", func(s *State) { s.queues.slab.edit(4).queue = &queue{rateUsed: 1} }},
		{"jobs: page 0 has", func(s *State) { s.jobs.uses[0].n++ }},
		{"claims: 0 packed pages, counted were 1", func(s *State) { s.claims.packed++ }},
		{"extras: 1 free entries, want 2", func(s *State) { s.extras.used-- }},
		{"levels: 2 free entries, want 3", func(s *State) { s.levels.used-- }},
		{"groups: 0 free entries", func(s *State) { s.groups.used-- }},
		{"claims: ", func(s *State) { s.claims.used-- }},
		{"reasons: 0 free entries", func(s *State) { s.reasons.used-- }},
		{"policies: 0 free entries", func(s *State) { s.policies.used-- }},
		{"settings: 0 free entries", func(s *State) { s.settings.used-- }},
		{"queues: ", func(s *State) { s.queues.used-- }},
		{"extras that no job has", func(s *State) { s.jobs.edit(16).extra = 0 }},
		{"job 1: place 7", func(s *State) { s.jobs.edit(1).where = 7 }},
		{"job 1: place 33", func(s *State) { s.jobs.edit(1).where |= 32 }},
		{"job 1: queue 4", func(s *State) { s.jobs.edit(1).queue = 4 }},
		{"job 1: overhead", func(s *State) { s.jobs.edit(1).length = 3 }},
		{"ready by wall time", func(s *State) { s.jobs.edit(1).where |= dueWall }},
		{"dead with a TTL", func(s *State) { s.jobs.edit(12).setExpiry(5) }},
		{"delayed until 0", func(s *State) { s.jobs.edit(7).setWhen(0) }},
		{"no policy of its own", func(s *State) { s.jobs.edit(1).setPolicy(ownPolicy) }},
		{"job 1: policy 9", func(s *State) { s.jobs.edit(1).setPolicy(9) }},
		{"policy 1: 1 references, want 2", func(s *State) { s.jobs.edit(1).setPolicy(1) }},
		{"policy 1: 2 references", func(s *State) { s.policies.edit(1).refs++ }},
		{"policy 1: 1 references", func(s *State) { s.policies.edit(1).policyValue = policyValue{} }},
		{"job 1: in no group", func(s *State) { s.jobs.edit(1).where |= inGroup }},
		{"job 12: in no group", func(s *State) { s.jobs.edit(12).where |= inGroup }},
		{"job 1: extra 77", func(s *State) { s.jobs.edit(1).extra = 77 }},
		{"extra", func(s *State) { s.jobs.edit(4).extra = s.jobs.at(3).extra }},
		{"extra that says nothing", func(s *State) { *x(s, 16) = extra{} }},
		{"lease while", func(s *State) { x(s, 16).nonce[3] = 1 }},
		{"two policies", func(s *State) { x(s, 16).tries = 1 }},
		{"job 16: reason 9", func(s *State) { x(s, 16).reason = 9 }},
		{"job 16: claim 9", func(s *State) { x(s, 16).claim = 9 }},
		{"job 16: group 9", func(s *State) { x(s, 16).group = 9 }},
		{"is another's", func(s *State) { x(s, 16).claim = 1 }},
		{"is another's", func(s *State) { s.claims.edit(x(s, 4).claim).held = false }},
		{"group 1 of another queue", func(s *State) { s.groups.edit(1).serial = 2 }},
		{"job 6: head of group 2", func(s *State) { s.groups.edit(2).head = 6 }},
		{"in group", func(s *State) { s.jobs.edit(5).where &^= inGroup }},
		{"job 6: dead, in group true", func(s *State) {
			s.groups.edit(2).head = 6
			s.jobs.edit(6).where = uint8(Dead) | inGroup
		}},
		{"claim 1 of nothing", func(s *State) { s.claims.edit(1).next = 3 }},
		{"named 0 times", func(s *State) { x(s, 4).claim = 0 }},
		{"that is gone is not held", func(s *State) { s.claims.edit(3).held = false }},
		{"group 1 of nothing", func(s *State) { s.groups.edit(1).key = Key{} }},
		{"group 1: 4 references", func(s *State) { s.groups.edit(1).refs++ }},
		{"group 1: head 2 is not in it", func(s *State) { s.groups.edit(1).head = 2; s.jobs.edit(3).where = uint8(Delayed) }},
		{"reason 1: ", func(s *State) { s.reasons.edit(1).text = "" }},
		{"queue 1: key", func(s *State) { s.queues.edit(1).key = "p/n" }},
		{"queue 3: key", func(s *State) { s.queues.edit(3).serial = 99 }},
		{"queue 1: counts", func(s *State) { s.queues.edit(1).leased++ }},
		{"queue 1: counts", func(s *State) { s.queues.edit(1).bytes++ }},
		{"queue 1: 2 reasons, want 1", func(s *State) { s.queues.edit(1).reasons++ }},
		{"queue 1: 4 claims, want 3", func(s *State) { s.queues.edit(1).claims++ }},
		{"queue 3: settings 1", func(s *State) { s.queues.edit(3).settings = 1 }},
		{"queue 2: settings {", func(s *State) { s.settings.edit(1).RatePer = 0 }}, // an interval to divide by
		{"queue 2: dead jobs to go at", func(s *State) { s.queues.edit(2).graveAt++ }},
		{"queue 1: level 9", func(s *State) { s.queues.edit(1).level = 9 }},
		{"queue 1: level", func(s *State) { s.levels.edit(1).next = s.queues.at(1).level }},
		{"out of order or empty", func(s *State) { s.levels.edit(s.levels.at(s.queues.at(1).level).next).priority = 100 }},
		{"in a list of others", func(s *State) { s.jobs.edit(1).priority = 1 }},
		{"a list leads to job 4294967295", func(s *State) { s.levels.edit(1).first = maxUint32 }},
		{"a list ends with job", func(s *State) { s.queues.edit(1).leasedLast = 1 }},
		{"a list leads to job", func(s *State) { s.jobs.edit(11).next = 11 }},
		{"queue 1: last group", func(s *State) { s.queues.edit(1).groupLast = 2 }},
		{"queue 1: group 2 is not among", func(s *State) { s.queues.edit(1).groupFirst = 2 }},
		{"tree of delayed jobs is no heap", func(s *State) { s.secret[0]++ }},
		{"tree of delayed jobs is out of order", func(s *State) {
			j := s.jobs.edit(s.queues.at(1).due)
			j.prev, j.next = j.next, j.prev
		}},
		{"tree of delayed jobs is out of order", func(s *State) { q := s.queues.edit(1); q.due, q.dueWall = q.dueWall, q.due }},
		{"jobs in lists", func(s *State) { s.queues.edit(1).dueWall = 0 }},
		{"list of idle queues", func(s *State) { s.idleFirst = 4 }},
		{"list of idle queues ends", func(s *State) { s.idleLast = 1 }},
		{"not in order in the list of idle", func(s *State) { s.queues.edit(3).usedAt = 99 }},
		{"queue 1: idle true", func(s *State) { s.queues.edit(1).idle = true }},
		{"queue 1: idle false", func(s *State) { s.queues.edit(1).usedAt = 1 }},
		{"crons: ", func(s *State) { s.crons.used-- }},
		{"crons: ", func(s *State) { s.crons.free = 2 }},
		{"crons: free list leads to", func(s *State) { s.crons.free = 99 }},
		{"metas: ", func(s *State) { s.metas.edit(2).next = 1 }},
		{"job 2 at 500 is not in its index", func(s *State) { s.deadlines.remove(500, 2) }},
		{"deadlines in the index", func(s *State) { s.deadlines.add(501, 2) }},
		{"due wall times in the index", func(s *State) { s.walls.add(501, 2) }},
		{"windows in the index", func(s *State) { s.windows.add(501, 2) }},
		{"pauses in the index", func(s *State) { s.pauses.add(501, 2) }},
		{"graves in the index", func(s *State) { s.graves.add(501, 2) }},
		{"crons that fire in the index", func(s *State) { s.fires.add(501, 2) }},
		{"held keys in the index", func(s *State) { s.claimOf.add(queueText{}, 1) }},
		{"claim 1 is not the one", func(s *State) { s.claimOf.add(s.claims.at(1).name(), 2) }},
		{"queue 1 is not the one", func(s *State) { s.queueOf.remove("p/n/a"); s.queueOf.add("p/n/a", 2) }},
		{"queues in the index", func(s *State) { s.queueOf.add("p/n/z", 2) }},
		{"serials in the index", func(s *State) { s.queues.edit(3).serial = 2 }},
		{"group 1 is not the one", func(s *State) { s.groupOf.add(queueText{1, Key{1}}, 2) }},
		{"groups in the index", func(s *State) { s.groupOf.add(queueText{1, Key{5}}, 2) }},
		{"reason 1 is not the one", func(s *State) { s.reasons.edit(1).text = "else" }},
		{"reasons in the index", func(s *State) { s.reasonOf.add(reasonText{}, 1) }},
		{"policy 1 is not the one", func(s *State) { s.policies.edit(1).tries++ }},
		{"policies in the index", func(s *State) { s.policyOf[policyValue{}] = 1 }},
		{"cron 2 is not the one", func(s *State) { s.crons.edit(2).Name = "z" }},
		{"crons in the index", func(s *State) { s.cronOf[cronName{}] = 1 }},
		{"value 2 is not the one", func(s *State) { s.metas.edit(2).key = "z" }},
		{"values in the index", func(s *State) { s.metaOf[""] = 1 }},
		{"generations in the index", func(s *State) { s.lives[9] = Live{} }},
		{"generation 2: ", func(s *State) { s.lives[2] = Live{} }},
		{"payload bytes in the index", func(s *State) { s.bytes++ }},
		{"jobs by place", func(s *State) { s.jobsIn[Dead]++ }},
	} {
		t.Run(tt.want, func(t *testing.T) {
			s := golden(t)
			tt.spoil(s)
			if err := s.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// An interval of 0 in a rate is refused when a state is loaded: it would be
// divided by.
func TestLoadRefusesRateWithoutInterval(t *testing.T) {
	s := golden(t)
	s.settings.edit(1).RatePer = 0
	var b bytes.Buffer
	s.View().WriteTo(&b)
	if _, err := Load(&b); !errors.Is(err, ErrLoad) {
		t.Errorf("got %v, want ErrLoad", err)
	}
}

// A tree that is deeper than chance makes one is refused instead of followed.
func TestCheckDeepTree(t *testing.T) {
	c := &checker{State: golden(t)}
	c.listed = make([]bool, 99)
	if c.checkTree(1, c.queues.at(1).due, treeBounds{}, maxTreeDepth+1) {
		t.Error("a tree beyond the depth was accepted")
	}
}

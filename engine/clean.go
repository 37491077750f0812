package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"pawl/state"
	"pawl/wal"
)

const (
	// carryBytes bounds the bodies that are carried in one stay, but for a
	// single one that is larger.
	carryBytes = 64 << 10
	// carryJobs bounds how many.
	carryJobs = 256
	// cleanRest is how many times as long as it worked the cleaning rests: it
	// takes a quarter of the log's bandwidth. Where space is short it does not.
	cleanRest = 3
)

// cleanFor cleans one generation after another for so long, and says whether
// there is more to do.
func (k *keeper) cleanFor(d time.Duration) (more bool) {
	for began := time.Now(); time.Since(began) < d && k.ctx.Err() == nil; {
		if !k.clean() {
			return false
		}
	}
	return true
}

// clean carries the live bodies out of one generation that is at least half
// dead, the emptiest first, if the log holds clearly more than what is alive. It
// says whether there is more to do.
//
// Cleaning as in WiscKey (Lu et al., FAST 2016), by the rule of the
// log-structured file system (Rosenblum and Ousterhout, SOSP 1991).
func (k *keeper) clean() (more bool) {
	e := k.e
	gens := e.log.Generations()
	var size, slack int64
	for _, g := range gens {
		size += g.Length
		slack = max(slack, g.Size)
	}
	if !e.enter() {
		return false
	}
	lives := e.st.Lives()
	e.leave()
	live := make(map[uint32]state.Live, len(lives))
	var alive int64
	for _, l := range lives {
		live[l.Generation] = l
		alive += int64(l.Bytes)
	}
	if size <= 2*alive+e.keeper.snapshotEvery()+2*slack && !e.full.Load() {
		return false
	}
	var half []wal.Info
	for _, g := range gens {
		l := live[g.Generation]
		if g.Sealed && !k.rotten[g.Generation] && l.Jobs > 0 && int64(l.Bytes)*2 <= g.Length {
			half = append(half, g)
		}
	}
	if len(half) == 0 {
		return false
	}
	emptiest := slices.MinFunc(half, func(a, b wal.Info) int {
		return int(int64(live[a.Generation].Bytes)*1000/max(a.Length, 1) - int64(live[b.Generation].Bytes)*1000/max(b.Length, 1))
	})
	return k.empty(emptiest.Generation)
}

// empty carries all live bodies out of a generation. False: it could not.
func (k *keeper) empty(generation uint32) bool {
	e := k.e
	e.log.Hold(generation)
	defer e.log.Unhold(generation)
	var from state.Slot
	for k.ctx.Err() == nil {
		began := time.Now()
		k.maybeSnapshot() // this may take long, and a snapshot must not wait for it
		var jobs []state.Job
		if !e.enter() {
			return false
		}
		var slots []state.Slot
		slots, next := e.st.BodiesIn(nil, generation, from, carryJobs)
		for _, slot := range slots {
			j, _ := e.st.Job(slot)
			jobs = append(jobs, j)
		}
		if e.Wait(e.leave()) != nil || !k.carry(jobs) {
			return false
		}
		if next == 0 {
			return true
		}
		from = next
		if !e.full.Load() {
			sleep(k.ctx, cleanRest*time.Since(began))
		}
	}
	return false
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// carry reads the bodies of jobs and writes them anew. False: it cannot go on.
func (k *keeper) carry(jobs []state.Job) bool {
	e := k.e
	for len(jobs) > 0 && k.ctx.Err() == nil {
		var bodies [][]byte
		size := 0
		for _, j := range jobs {
			if size += int(j.Body.Length); size > carryBytes && len(bodies) > 0 {
				break
			}
			raw, err := e.log.Read(wal.Pos(j.Body), nil)
			if _, rotten := errors.AsType[*wal.CorruptError](err); rotten {
				e.buryDamaged(body{slot: j.Slot, pos: wal.Pos(j.Body)}, err)
				raw = nil
				k.rotten[j.Body.Generation] = true // it stays, with its buried job
			} else if err != nil {
				e.opt.Logger.Warn("cleaning cannot read, it is tried again", "place", wal.Pos(j.Body).String(), "err", err)
				return false
			}
			bodies = append(bodies, raw)
		}
		if !e.enter() {
			return false
		}
		carried := 0
		for i, raw := range bodies {
			j := &jobs[i]
			if raw == nil {
				continue
			}
			if e.room(wal.RecordBytes(160, len(raw))) != nil {
				e.leave()
				return false
			}
			// It may be done, or elsewhere, by now.
			if now, ok := e.st.Job(j.Slot); ok && now.Body == j.Body {
				e.record(&state.Record{Kind: state.KindCarry, Slot: j.Slot}, raw)
				carried += len(raw)
			}
		}
		k.cleaned.Add(uint64(carried))
		if e.Wait(e.leave()) != nil {
			return false
		}
		jobs = jobs[len(bodies):]
	}
	return true
}

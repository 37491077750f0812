package engine

import "time"

const (
	// giveBackEvery is how often the keeper looks for memory that the state does not
	// need: what was not needed for so long, or up to twice that, is given back.
	giveBackEvery = 30 * time.Second
	// packPages is how many pages of a table are packed between two looks at the
	// clock, a microsecond or so each.
	packPages = 16
)

// giveBack packs what the state has had no use for since the last look, in stays of
// half a millisecond that rest as those of masses do. Millions of jobs that are gone
// take some hundred of them.
func (k *keeper) giveBack() {
	if time.Now().Before(k.packAt) {
		return
	}
	e := k.e
	for more := true; more; {
		if !e.enter() {
			return
		}
		for more = true; more && e.stayed() <= maxTurn; {
			more = e.st.Pack(packPages)
		}
		took := e.stayed()
		k.unpacked = e.st.HasEmpty()
		e.leave()
		if more {
			sleep(k.ctx, restAfter(took))
		}
	}
	k.packAt = time.Now().Add(giveBackEvery)
}

// untilLook is how long until there is something to look at though nothing is
// written; 0 is for ever.
func (k *keeper) untilLook() (d time.Duration) {
	sooner := func(other time.Duration) {
		if d == 0 || other < d {
			d = other
		}
	}
	if until := k.untilSnapshot(); until > 0 {
		sooner(until)
	}
	if len(k.unneeded) > 0 {
		sooner(max(lookEvery, time.Duration(k.e.limits.keep.Load())/4))
	}
	if k.unpacked {
		sooner(max(time.Until(k.packAt), time.Millisecond))
	}
	return d
}

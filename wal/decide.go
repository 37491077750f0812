package wal

import "fmt"

// Evidence is what is known when a reader meets bytes that are no entry, at a
// position where group Expected would stand.
type Evidence struct {
	Expected LSN // one more than the last good group

	// Followed says that a later generation is linked. Its link says that Behind
	// bytes from here on are history: more than none, or it would not matter
	// what they are.
	Followed bool
	Behind   int64

	// The highest LSN of which something that is readable proves that it was
	// durable: an entry behind this one, or in a generation that is not linked;
	// any snapshot.
	VouchedByEntry, VouchedBySnapshot LSN

	// NotZero is how many bytes there are up to the last one that is not zero.
	NotZero int64
}

// Verdict is what to make of it.
type Verdict struct {
	// Refuse says why the bytes must have been a durable entry, so that going on
	// without them would lose what was acknowledged. Empty: the log ends here.
	Refuse string
	// Cut is how many bytes are dropped that something had been written to. They
	// were never acknowledged.
	Cut int64
}

// Decide tells a torn tail, which must be dropped, from damage, which must not.
// Only what was certainly never acknowledged is dropped. It is a function of
// its argument.
//
// After Alagappan et al., "Protocol-Aware Recovery for Consensus-Based Storage",
// FAST 2018: cutting at the first bad checksum loses committed data.
func Decide(e Evidence) Verdict {
	switch {
	case e.Followed && e.Behind > 0:
		return Verdict{Refuse: fmt.Sprintf("the next generation says that %d more bytes are history", e.Behind)}
	case e.Followed:
		// Behind the length that a link states nothing is history.
		return Verdict{}
	case e.VouchedByEntry >= e.Expected:
		return Verdict{Refuse: fmt.Sprintf("a later entry says that group %d was on disk", e.VouchedByEntry)}
	case e.VouchedBySnapshot >= e.Expected:
		return Verdict{Refuse: fmt.Sprintf("a snapshot says that group %d was on disk", e.VouchedBySnapshot)}
	default:
		return Verdict{Cut: e.NotZero}
	}
}

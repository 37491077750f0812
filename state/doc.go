// Package state says what the records of the log mean: jobs, queues, leases,
// deadlines, dead letters, unique keys, groups, crons, settings.
//
// It is pure. State.Apply is the only way a State changes, live and at replay;
// the same records give the same state, byte for byte, on every machine. There
// is no clock, IO, goroutine, lock or randomness here: the present time, nonces
// and jitter reach it in records. Choosing belongs to the engine, which asks by
// the reads (NextReady, Due, Lookup, …), makes records of what it decided, and
// applies them:
//
//	slot, block := s.NextReady(queue, now)
//	if block.Why == state.NotBlocked && slot != 0 {
//		r := state.Record{Kind: state.KindLease, Slot: slot, Nonce: nonce, At: now + 30_000}
//		group.Add(r.AppendHead(buf[:0]))
//		err := s.Apply(&r, state.Body{}, now) // fails only for a bug
//	}
//
// A State is owned by one goroutine. Only what View gives may be read by
// another one meanwhile.
package state

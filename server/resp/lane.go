package resp

import "runtime"

// lane is where those go who move much: the rest of a command that is not complete
// yet, a long reply, a large buffer. Only so many are in it at a time as half the
// processors, with a piece of at most flushBytes, and the others wait in turn. So
// hundreds of connections with megabytes each are no hundreds of goroutines that
// want to run before those of connections with a short command, and the runtime
// looks for what has come on sockets every few microseconds: while there are any
// that can run, it does so every ten milliseconds only.
//
// Whoever is in it waits for nobody: neither a client nor the disk nor room.
type lane chan struct{}

func newLane() lane { return make(lane, max(1, runtime.GOMAXPROCS(0)/2)) }

func (l lane) enter() { l <- struct{}{} }
func (l lane) leave() { <-l }

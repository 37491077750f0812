package engine

import (
	"fmt"
	"runtime/debug"
)

// EndOnPanic ends the process when a panic passes through it, whoever would
// recover it further up. It is deferred around every call of an Engine from a
// goroutine whose panics somebody recovers, such as net/http's: where one passed
// through the engine, the state may be half changed and its locks held.
func EndOnPanic() {
	if v := recover(); v != nil {
		text := fmt.Sprintf("%v\n\n%s", v, debug.Stack())
		go func() { panic(text) }()
		select {} // the process is about to end; nothing may be answered
	}
}

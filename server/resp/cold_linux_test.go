package resp

import (
	"testing"
	"time"
)

// One slow read does not keep bodies out of the poller, nor do two far apart; two
// close to each other do, for a second.
func TestColdness(t *testing.T) {
	now := time.Unix(1, 0)
	var k coldness
	read := func(n int, took time.Duration) {
		for range n {
			k.note(now, took)
		}
	}
	read(1, time.Minute)
	read(15, coldRead)
	read(1, time.Minute)
	if k.is(now) {
		t.Error("two slow reads of seventeen say that bodies are cold")
	}
	read(14, 0)
	read(1, 2*coldRead)
	if !k.is(now) || !k.is(now.Add(coldTime-1)) {
		t.Error("two slow reads of sixteen do not say that bodies are cold")
	}
	if now = now.Add(coldTime); k.is(now) {
		t.Error("bodies stay cold")
	}
	if read(1, time.Minute); k.is(now) {
		t.Error("after that one slow read says that they are cold")
	}
}

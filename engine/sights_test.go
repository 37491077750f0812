package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pawl/engine"
)

// sights count what the games of TestModel have seen: commands by what they
// answered, and what became of jobs.
type sights map[string]int

func (s sights) saw(what string, more ...string) {
	s[strings.Join(append([]string{what}, more...), " ")]++
}

// answer counts what a command has answered.
func (s sights) answer(cmd engine.Command, refusal string, more ...string) {
	if refusal == "" {
		refusal = "OK"
	}
	s.saw(fmt.Sprintf("%s: %s", strings.TrimPrefix(fmt.Sprintf("%T", cmd), "*engine."), refusal), more...)
}

func few(n int) string {
	return []string{"none", "one", "several"}[min(n, 2)]
}

// wanted is what a long run must have seen, each of it many times in a million
// commands: every command with every answer that the generator can lead to.
var wanted = map[string][]string{
	"Enqueue:":                              {"OK", "ttl", "draining", "full", "OK in EXEC", "ttl in EXEC", "draining in EXEC", "full in EXEC"},
	"Enqueue with":                          {"Delay", "At", "TTL", "Tries", "Backoff", "BackoffMax", "For"},
	"Enqueue: a duplicate of a job that is": {"ready", "delayed", "leased", "dead", "gone"},
	"Fetch:":                                {"0 of 1", "1 of 1", "0 of 3", "1 of 3", "2 of 3", "3 of 3"},
	"Ack:":                                  {"OK", "no lease", "OK in EXEC", "no lease in EXEC"},
	"Ack of several:":                       {"true", "false"},
	"Nack:":                                 {"OK", "no lease", "OK in EXEC", "no lease in EXEC", "then ready", "then delayed", "then dead"},
	"Release:":                              {"OK", "no lease", "OK in EXEC", "no lease in EXEC"},
	"Bury:":                                 {"OK", "no lease", "OK in EXEC", "no lease in EXEC"},
	"Extend:":                               {"OK", "no lease", "OK in EXEC", "no lease in EXEC"},
	"Multi:":                                {"of 1", "of 4", "aborted"},
	"JobDelete:":                            {"OK", "OK in EXEC"},
	"JobEdit:":                              {"no job", "busy"},
	"JobRun of a job that is":               {"ready: OK", "delayed: OK", "dead: OK"},
	"JobDelay of a job that is":             {"ready: OK", "ready: ttl", "delayed: OK", "dead: OK"},
	"JobPriority of a job that is":          {"ready: OK", "delayed: OK", "dead: OK"},
	"JobPayload of a job that is":           {"ready: OK", "ready: full", "delayed: OK", "dead: OK"},
	"JobMove of a job that is":              {"ready: OK", "ready: full", "ready: taken", "delayed: OK", "dead: OK"},
	"Purge of":                              {"ready several", "delayed several", "dead several", "dead none"},
	"QueueRedrive:":                         {"OK none", "OK one", "OK several", "full none", "taken none"},
	"QueueDelete:":                          {"OK", "leased", "found true", "found false"},
	"QueueSet:":                             {"OK"},
	"QueueReset:":                           {"OK"},
	"QueuePause:":                           {"OK"},
	"QueueResume:":                          {"OK"},
	"Drain:":                                {"OK"},
	"total of": {
		"Enqueued", "Delivered", "Acked", "Nacked", "Released", "Expired", "Buried", "Dead", "Deleted", "Lapsed", "Redriven",
	},
	"times": {"a command came before the reaper", "a reply could not be written", "a restart", "a power cut"},
}

// judge prints the counts, and demands all that is wanted of a run that was long
// enough.
func (s sights) judge(t *testing.T, long bool) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(s)) {
		t.Logf("%8d × %s", s[what], what)
	}
	for what, answers := range wanted {
		for _, answer := range answers {
			if long && s[what+" "+answer] == 0 {
				t.Errorf("never seen: %s %s", what, answer)
			}
		}
	}
}

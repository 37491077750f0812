package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"pawl/client"
)

// A machine that has been booted anew has another monotonic clock, as a process
// in a time namespace has. A lease, a delay, a pause and the counters go on over
// kills, with that clock 100,000 seconds ahead and back again: nothing ends
// early or begins anew.
func TestMonotonicClockOfAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	pawl, sock := filepath.Join(dir, "pawl"), filepath.Join(dir, "s")
	linkPawl(t, pawl)
	const ahead = "100000"
	ordinary := []string{pawl}
	elsewhere := []string{"unshare", "--time", "--monotonic", ahead, "--boottime", ahead, pawl}
	if out, err := exec.Command(elsewhere[0], append(elsewhere[1:], "help")...).CombinedOutput(); err != nil {
		t.Skipf("no time namespaces here: %v %s", err, out)
	}
	c := client.New(client.Options{Addr: sock})
	defer c.Close()
	boot := func(words []string) *process {
		t.Helper()
		p := startProcess(t, words[0], dir, append(words[1:len(words):len(words)], "serve", "--dir", "data", "--addr", sock, "--http-addr=", "--admin-addr=")...)
		p.output.wait(t, "msg=serving")
		return p
	}
	ask := func(words ...string) client.Value { t.Helper(); return ask(t, c, words...) }
	number := func(id, field string) int64 {
		t.Helper()
		return ask("JOB", "GET", id).Field(field).Number()
	}

	daemon := boot(ordinary)
	leased := ask("ENQUEUE", "q", "leased").Field("task_id").Text
	ask("NACK", ask("FETCH", "q", "60000").Field("lease_id").Text)
	lease := ask("FETCH", "q", "3600000").Field("lease_id").Text
	delayed := ask("ENQUEUE", "q", "delayed", "DELAY", "3600000").Field("task_id").Text
	ask("ENQUEUE", "paused", "x")
	ask("QUEUE", "PAUSE", "paused", "FOR", "3600000")
	deadline, due := number(leased, "deadline"), number(delayed, "due_at")
	for i, words := range [][]string{elsewhere, ordinary, elsewhere} {
		daemon.kill()
		daemon = boot(words)
		if early := ask("FETCH", "q", "1000", "OR", "paused").Field("task_id").Text; early != "" {
			t.Fatalf("boot %d: job %s came early", i, early)
		}
		// What passes between two processes is measured on the wall clock.
		const slack = 1000
		if got := number(leased, "deadline"); got < deadline-slack || got > deadline+slack {
			t.Errorf("boot %d: the lease ends at %d, want %d", i, got, deadline)
		}
		if got := number(delayed, "due_at"); got < due-slack || got > due+slack {
			t.Errorf("boot %d: the delay ends at %d, want %d", i, got, due)
		}
		if attempt, failures := number(leased, "attempt"), number(leased, "failures"); attempt != 2 || failures != 1 {
			t.Errorf("boot %d: got attempt %d and %d failures, want 2 and 1", i, attempt, failures)
		}
	}
	if err := c.Ack(t.Context(), lease); err != nil {
		t.Errorf("the lease of three boots ago: %v", err)
	}
}

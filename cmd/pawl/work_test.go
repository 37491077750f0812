package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/client"
)

// process is a pawl of its own.
type process struct {
	cmd    *exec.Cmd
	output output
	ended  chan struct{}
}

func startProcess(t *testing.T, pawl, dir string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(pawl, args...), ended: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// ask is a command that must not be refused.
func ask(t *testing.T, c *client.Client, words ...string) client.Value {
	t.Helper()
	v, err := c.Do(t.Context(), words...)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	return v
}

// The worker is killed, the daemon is killed, in turns, while jobs are done.
// Every job is done at least once, and none is left.
func TestWorkSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	dir := t.TempDir()
	pawl, sock := filepath.Join(dir, "pawl"), filepath.Join(dir, "s")
	linkPawl(t, pawl)
	daemon := func() *process {
		return startProcess(t, pawl, dir, "serve", "--dir", "data", "--addr", sock, "--http-addr=", "--admin-addr=")
	}
	worker := func() *process {
		// Each job is one short line: appends of these do not mix.
		return startProcess(t, pawl, dir, "work", "q", "--addr", sock, "--concurrency", "3", "--lease", "1s", "--", "sh", "-c", "read line; echo $line >> done")
	}
	c := client.New(client.Options{Addr: sock})
	defer c.Close()
	serving := func() {
		t.Helper()
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			_, err := c.Stats(t.Context(), "q")
			if err == nil {
				return
			}
			if time.Since(begun) > awaited {
				t.Fatalf("the daemon does not serve: %v", err)
			}
		}
	}
	lines := func() int {
		data, err := os.ReadFile(filepath.Join(dir, "done"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return bytes.Count(data, []byte("\n"))
	}
	var w *process
	more := func(n int) { // waits until n lines more are there
		t.Helper()
		want := lines() + n
		for begun := time.Now(); lines() < want; time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > awaited {
				t.Fatalf("waited %v for %d lines, there are %d; the worker says\n%s", awaited, want, lines(), &w.output)
			}
		}
	}

	d := daemon()
	serving()
	const n = 120
	jobs := make([]client.Job, n)
	for i := range jobs {
		jobs[i] = client.Job{Queue: "q", Payload: fmt.Appendf(nil, "job-%03d\n", i)}
	}
	if _, err := c.EnqueueAll(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	w = worker()
	for range 3 {
		more(8)
		w.kill()
		w = worker()
		more(8)
		d.kill()
		d = daemon()
		serving()
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		stats, err := c.Stats(t.Context(), "q")
		if err != nil {
			t.Fatal(err)
		}
		if stats.Ready+stats.Processing == 0 {
			break
		}
		if time.Since(begun) > 2*awaited {
			t.Fatalf("jobs are left: %+v", stats)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "done"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if !strings.Contains(string(data), fmt.Sprintf("job-%03d\n", i)) {
			t.Errorf("job %d was never done, and is gone", i)
		}
	}
	// A stop by signal is clean: exit code 0, nothing is leased any more.
	w.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.ended:
		if code := w.cmd.ProcessState.ExitCode(); code != exitOK {
			t.Errorf("the worker's exit code is %d after SIGTERM:\n%s", code, &w.output)
		}
	case <-time.After(awaited):
		t.Error("the worker does not end on SIGTERM")
	}
}

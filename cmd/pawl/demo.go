package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

func demoCommand() subcommand {
	return subcommand{
		name: "demo", summary: "show on a real daemon that a job survives its worker and kill -9", group: groupTools,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("demo")
			lease := fs.Duration("lease", 3*time.Second, "of the worker that disappears")
			asJSON := addJSON(fs)
			return fs, func(ctx context.Context, args []string) error {
				if err := wantArgs(args, 0, 0); err != nil {
					return err
				}
				if *lease < time.Second {
					return usagef("--lease: at least 1s, for the daemon has to come back before it ends")
				}
				return demonstrate(ctx, e, *lease, *asJSON)
			}
		},
	}
}

// demo is one run of pawl demo.
type demo struct {
	e      *env
	dir    string
	addr   string
	asJSON bool
	client *client.Client
	daemon *exec.Cmd
	ended  chan struct{} // closed when the daemon has
	output bytes.Buffer
	began  time.Time
}

func demonstrate(ctx context.Context, e *env, lease time.Duration, asJSON bool) (err error) {
	dir, err := os.MkdirTemp("", "pawl-demo-*")
	if err != nil {
		return withExit(exitCreate, err)
	}
	defer os.RemoveAll(dir)
	d := &demo{e: e, dir: dir, addr: filepath.Join(dir, "pawl.sock"), asJSON: asJSON, began: time.Now()}
	d.client = client.New(client.Options{Addr: d.addr})
	defer d.client.Close()
	defer d.kill()
	if err := d.story(ctx, lease); err != nil {
		if log := strings.TrimSpace(d.output.String()); log != "" {
			fmt.Fprintf(e.stderr, "the daemon's log:\n%s\n", log)
		}
		return err
	}
	return nil
}

const demoQueue = "mail"

// story tells it. What it claims it has checked.
func (d *demo) story(ctx context.Context, lease time.Duration) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	d.say("a daemon runs on %s, its data is in %s", d.addr, d.dir)

	job, err := d.client.Enqueue(ctx, client.Job{Queue: demoQueue, Payload: []byte("send the invoice")})
	if err != nil {
		return err
	}
	d.say("ENQUEUE %s: job %s is on disk, the reply came after its fsync", demoQueue, job.ID)

	first, err := d.fetch(ctx, lease, 0)
	if err != nil {
		return err
	}
	until := time.Now().Add(lease)
	d.say("FETCH: a worker has it, attempt %d, for %v", first.Attempt, lease)
	d.say("the worker disappears without a word")

	if err := d.kill(); err != nil {
		return err
	}
	d.say("kill -9: the daemon is gone as well")
	asked := time.Now()
	if err := d.start(ctx); err != nil {
		return err
	}
	d.say("it runs again, recovered and serving after %v", time.Since(asked).Round(time.Millisecond))

	if stats, err := d.client.Stats(ctx, demoQueue); err != nil {
		return err
	} else if stats.Processing != 1 || stats.Ready != 0 {
		return fmt.Errorf("after the restart the queue has %+v, want one job that is leased", stats)
	}
	d.say("the job is still leased to the worker that is gone, nobody else gets it yet")
	second, err := d.fetch(ctx, lease, lease+10*time.Second)
	if err != nil {
		return err
	}
	if second.ID != job.ID || second.Attempt != first.Attempt+1 {
		return fmt.Errorf("got job %s attempt %d, want job %s attempt %d", second.ID, second.Attempt, job.ID, first.Attempt+1)
	}
	d.say("the lease ended %v from its time, and the job came back: attempt %d, a new lease", time.Since(until).Abs().Round(time.Millisecond), second.Attempt)
	if err := d.client.Ack(ctx, first.Lease); !errors.Is(err, client.ErrNoLease) {
		return fmt.Errorf("ACK of the old lease: got %v, want a refusal", err)
	}
	d.say("ACK with the first worker's lease: refused, it is late")
	if err := d.client.Ack(ctx, second.Lease); err != nil {
		return err
	}
	d.say("ACK with the second one's: OK, and that is on disk too")

	if err := d.kill(); err != nil {
		return err
	}
	if err := d.start(ctx); err != nil {
		return err
	}
	if v, err := d.client.Job(ctx, job.ID); err != nil {
		return err
	} else if v.Kind != client.Null {
		return fmt.Errorf("job %s came back after it was done", job.ID)
	}
	d.say("kill -9 and once more up: the finished job stays gone")
	return nil
}

func (d *demo) fetch(ctx context.Context, lease, wait time.Duration) (client.Delivery, error) {
	jobs, err := d.client.Fetch(ctx, client.FetchOptions{Queues: []string{demoQueue}, Lease: lease, Wait: wait})
	if err != nil {
		return client.Delivery{}, err
	}
	if len(jobs) != 1 {
		return client.Delivery{}, errors.New("FETCH gave no job")
	}
	return jobs[0], nil
}

func (d *demo) say(format string, args ...any) {
	if d.asJSON {
		printJSON(d.e.stdout, map[string]any{"after_ms": time.Since(d.began).Milliseconds(), "step": fmt.Sprintf(format, args...)})
		return
	}
	fmt.Fprintf(d.e.stdout, "%7.3f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts the daemon and returns when it serves jobs.
func (d *demo) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.output.Reset()
	d.daemon = exec.Command(self, "serve", "--dir", filepath.Join(d.dir, "data"), "--unix", d.addr, "--addr=", "--http-addr=", "--admin-addr=")
	d.daemon.Stderr = &d.output
	if err := d.daemon.Start(); err != nil {
		d.daemon = nil
		return withExit(exitIO, err)
	}
	ended := make(chan struct{})
	d.ended = ended
	go func(daemon *exec.Cmd) {
		daemon.Wait()
		close(ended)
	}(d.daemon)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		_, err := d.client.Stats(ctx, demoQueue)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return withExit(exitIO, errors.New("the daemon ended at once"))
		case <-ctx.Done():
			return fmt.Errorf("the daemon does not answer: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// kill is kill -9. Without a daemon it does nothing.
func (d *demo) kill() error {
	if d.daemon == nil {
		return nil
	}
	err := d.daemon.Process.Signal(syscall.SIGKILL)
	<-d.ended
	d.daemon = nil
	return err
}

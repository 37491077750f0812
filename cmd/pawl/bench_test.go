package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pawl/bench"
	"pawl/client"
)

// What a run says it did is what the daemon says was done.
func TestBenchCountsWhatHappened(t *testing.T) {
	s := serveIn(t, t.TempDir(), "--sync", "never", "--http-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0").ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	web := s.stderr.wait(t, `for="lmstfy clients" addr=(127[^\s]+)`)
	admin := s.stderr.wait(t, `for=operators addr=(127[^\s]+)`)
	e, stdout, stderr := testEnv(nil)
	if code := run(t.Context(), e, []string{"token", "create", "load", "--admin", "http://" + admin}); code != exitOK {
		t.Fatalf("token create: exit code %d: %s", code, stderr)
	}
	targets := map[string]bench.Target{
		"pawl":      bench.Pawl{Addr: s.sock},
		"pawl-http": bench.PawlHTTP{Addr: web, Namespace: "load", Token: strings.TrimSpace(stdout.String())},
	}
	for name, target := range targets {
		for _, workload := range bench.Workloads {
			t.Run(name+"/"+string(workload), func(t *testing.T) {
				var r bench.Result
				// A machine with a lot to do may need more time for anything at all.
				for span := 150 * time.Millisecond; r.Done == 0; span *= 4 {
					if span > awaited {
						t.Fatal("nothing was done")
					}
					var err error
					r, err = bench.Run(t.Context(), bench.Options{
						Workload: workload, Target: target, Conns: 3, Pipeline: 4, Duration: span, Warmup: -1, Jobs: 500,
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				// Queues are named by the time of their run.
				names, err := c.Queues(t.Context(), "*bench-*")
				if err != nil {
					t.Fatal(err)
				}
				queue := slices.MaxFunc(names, func(a, b string) int {
					return strings.Compare(a[strings.Index(a, "bench-"):], b[strings.Index(b, "bench-"):])
				})
				info, err := c.QueueInfo(t.Context(), queue)
				if err != nil {
					t.Fatal(err)
				}
				totals := info.Field("totals")
				// Over HTTP a job is finished by deleting it.
				enqueued, acked := totals.Field("enqueued").Number(), totals.Field("acked").Number()+totals.Field("deleted").Number()
				// The last round is finished after the clock has stopped.
				switch workload {
				case bench.Enqueue:
					if r.Done > enqueued || enqueued-r.Done > 3*4 {
						t.Errorf("the run says %d, the daemon %d enqueued", r.Done, enqueued)
					}
				case bench.Cycle, bench.Worker:
					if r.Done > acked || acked-r.Done > 3*4 {
						t.Errorf("the run says %d, the daemon %d acknowledged", r.Done, acked)
					}
				case bench.Backlog:
					if r.Done != 500 || acked != 500 || enqueued != 500 {
						t.Errorf("the run says %d, the daemon %d of %d, want 500", r.Done, acked, enqueued)
					}
				case bench.Mixed:
					if acked > enqueued {
						t.Errorf("the run says %d, the daemon %d enqueued and %d acknowledged", r.Done, enqueued, acked)
					}
				}
				for step, l := range r.Steps {
					if l.Count == 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max+0.001*l.Max {
						t.Errorf("%s: latencies %+v are out of order", step, l)
					}
				}
			})
		}
	}
	s.end(t)
}

func TestBenchAgainstAServerThatFails(t *testing.T) {
	s := serveIn(t, t.TempDir(), "--sync", "never").ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	if _, err := c.Do(t.Context(), "DRAIN", "on"); err != nil {
		t.Fatal(err)
	}
	_, err := bench.Run(t.Context(), bench.Options{Workload: bench.Enqueue, Target: bench.Pawl{Addr: s.sock}, Conns: 2, Duration: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "draining") {
		t.Errorf("got %v, want the refusal and not a number", err)
	}
	s.end(t)
}

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   bench.Spread
	}{
		{nil, bench.Spread{}},
		{[]float64{2}, bench.Spread{Median: 2, Min: 2, Max: 2}},
		{[]float64{3, 1, 2}, bench.Spread{Median: 2, Min: 1, Max: 3}},
		{[]float64{4, 1, 3, 2}, bench.Spread{Median: 2.5, Min: 1, Max: 4}},
	} {
		if got := bench.NewSpread(test.values); got != test.want {
			t.Errorf("spread of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

// The other servers' drivers, where these servers are installed.
func TestBenchOthers(t *testing.T) {
	for _, test := range []struct{ kind, binary string }{{"redis", "redis-server"}, {"beanstalkd", "beanstalkd"}} {
		t.Run(test.kind, func(t *testing.T) {
			if _, err := exec.LookPath(test.binary); err != nil {
				t.Skipf("%s is not installed", test.binary)
			}
			s, err := bench.Start(t.Context(), bench.StartOptions{Kind: test.kind, Dir: t.TempDir(), Sync: "never"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			for _, workload := range bench.Workloads {
				r, err := bench.Run(t.Context(), bench.Options{
					Workload: workload, Target: s.Target, Conns: 2, Pipeline: 4, Duration: 100 * time.Millisecond, Warmup: -1, Jobs: 200,
				})
				if err != nil {
					t.Fatalf("%s: %v", workload, err)
				}
				if workload == bench.Backlog && r.Done != 200 {
					t.Errorf("%s: %d done", workload, r.Done)
				}
			}
		})
	}
}

func TestBenchJSON(t *testing.T) {
	s := serveIn(t, t.TempDir(), "--sync", "never").ready(t)
	e, stdout, stderr := testEnv(nil)
	args := []string{"bench", "cycle", "--addr", s.sock, "--conns", "2", "--duration", "100ms", "--warmup", "0s", "--runs", "2", "--json"}
	if code := run(t.Context(), e, args); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var runs []bench.Result
	if err := json.Unmarshal(stdout.Bytes(), &runs); err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v in %s", len(runs), err, stdout)
	}
	for _, r := range runs {
		if r.Target != "pawl" || r.Workload != bench.Cycle || r.Conns != 2 || r.Seconds <= 0 || r.Done > r.Steps["ack"].Count {
			t.Errorf("got %+v", r)
		}
	}
	s.end(t)
}

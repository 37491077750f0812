package main

import (
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// The other servers' drivers, where these servers are installed. Debian's
// nats-server is too old to be told to sync.
func TestBenchOthers(t *testing.T) {
	for _, test := range []struct{ kind, binary, sync string }{
		{"redis", "redis-server", "always"},
		{"beanstalkd", "beanstalkd", "always"},
		{"nats", "nats-server", "never"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			if _, err := exec.LookPath(test.binary); err != nil {
				if os.Getenv("PAWL_E2E") == "1" {
					t.Fatalf("%s is not installed", test.binary)
				}
				t.Skipf("%s is not installed", test.binary)
			}
			s, err := bench.Start(t.Context(), bench.StartOptions{Kind: test.kind, Dir: t.TempDir(), Sync: test.sync})
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
				switch acks, empty := r.Steps["ack"].Count, r.Empty; workload {
				case bench.Backlog:
					// Every job, and then nothing. Once is what is seen on a machine that
					// is not starved; but NATS delivers at least once, as it says.
					again := r.Done - 200
					if again < 0 || again > 0 && test.kind != "nats" || acks != r.Done || r.Steps["fetch"].Count != r.Done+empty || empty == 0 {
						t.Errorf("%s: %d done, %d acknowledged, %d fetched, %d times nothing", workload, r.Done, acks, r.Steps["fetch"].Count, empty)
					}
				case bench.Cycle:
					if r.Done > acks || r.Done > r.Steps["enqueue"].Count {
						t.Errorf("%s: %d done, %d acknowledged, %d enqueued", workload, r.Done, acks, r.Steps["enqueue"].Count)
					}
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
	table, err := bench.ReadTable(stdout)
	if err != nil || len(table.Cells) != 1 || len(table.Cells[0].Ours) != 2 || table.Cells[0].Theirs != nil {
		t.Fatalf("got %+v, %v", table, err)
	}
	if want := "pawl bench cycle --addr " + s.sock + " --conns 2 --duration 100ms --warmup 0s --runs 2"; table.Command != want {
		t.Errorf("it says that it was made by %q, want %q", table.Command, want)
	}
	for _, r := range table.Cells[0].Ours {
		if r.Target != "pawl" || r.Workload != bench.Cycle || r.Conns != 2 || r.Seconds <= 0 || r.Done > r.Steps["ack"].Count {
			t.Errorf("got %+v", r)
		}
	}
	s.end(t)
}

// A table of several loads, and the chart of it.
func TestBenchTable(t *testing.T) {
	s := serveIn(t, t.TempDir(), "--sync", "never").ready(t)
	load := []string{"bench", "enqueue,cycle", "--addr", s.sock, "--conns", "1,3", "--pipeline", "1,8", "--duration", "30ms", "--warmup", "0s", "--runs", "2"}
	e, stdout, stderr := testEnv(nil)
	if code := run(t.Context(), e, load); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"    pawl bench enqueue,cycle ", "| enqueue ", "| 3 × 8 ", "| cycle "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	e, stdout, stderr = testEnv(nil)
	if code := run(t.Context(), e, append(load, "--json")); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "table.json")
	if err := os.WriteFile(file, stdout.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	e, stdout, stderr = testEnv(nil)
	if code := run(t.Context(), e, []string{"bench", "chart", file, file}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	// Well-formed, with a mark for each of two panels × four loads.
	marks := 0
	for d := xml.NewDecoder(stdout); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "g" {
			marks++
		}
	}
	if marks != 8 {
		t.Errorf("%d marks, want 8", marks)
	}
	e, _, stderr = testEnv(nil)
	if code := run(t.Context(), e, []string{"bench", "chart", "bench.go"}); code == exitOK || !strings.Contains(stderr.String(), "not a table") {
		t.Errorf("a chart of something else: exit code %d, %s", code, stderr)
	}
	s.end(t)
}

// What footprint says adds up, in a small one: memory grew by what jobs take,
// each start answered, the directory holds the payloads.
func TestBenchFootprint(t *testing.T) {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		t.Skip("no /proc")
	}
	binary := filepath.Join(t.TempDir(), "pawl")
	linkPawl(t, binary)
	for _, delay := range []time.Duration{0, time.Hour} {
		o := bench.FootprintOptions{
			Binary: binary, Dir: t.TempDir(), Flags: []string{"--sync", "never"}, Jobs: 20_000, Payload: 1000, Delay: delay,
			Starts: 2, Cycles: 20 * time.Millisecond, Rest: time.Millisecond,
		}
		if delay == 0 {
			o.Soak, o.SoakRate = 200*time.Millisecond, 80
		} else {
			o.Queues, o.Groups, o.Replies = 100, 70, 1000
		}
		f, err := bench.MeasureFootprint(t.Context(), o)
		if err != nil {
			t.Fatalf("delay %v: %v", delay, err)
		}
		if f.Empty <= 0 || f.Filled <= f.Empty || f.Rested <= 0 || f.Snapshot <= 0 || f.CyclesBeside.Min <= 0 || f.Restarted <= 0 || f.Restart.Min <= 0 || f.Restart.Max < f.Restart.Min ||
			f.DiskBytes < 20_000*1000 || f.Enqueued <= f.Jobs ||
			delay == 0 && (f.Soak.Cycles <= 0 || f.Soak.Cycles > 170) ||
			delay > 0 && f.Replies.Left != 1000 ||
			delay == 0 && (f.Soak.Turns.Count == 0 || f.Soak.Turns.Max < f.Soak.Turns.P50 || f.Soak.LessOwnSync.Count < 64 || f.Soak.LessAllSyncs.Max > f.Soak.LessOwnSync.Max) {
			t.Errorf("delay %v: got %+v", delay, f)
		}
		var out strings.Builder
		f.Print(&out)
		if want := map[bool]string{false: "20000 ready jobs", true: "20000 delayed jobs"}[delay > 0]; !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// Jobs spread over queues are all found again.
func TestBenchQueues(t *testing.T) {
	s := serveIn(t, t.TempDir(), "--sync", "never").ready(t)
	r, err := bench.Run(t.Context(), bench.Options{
		Workload: bench.Cycle, Target: bench.Pawl{Addr: s.sock, Queues: 1000}, Conns: 3, Pipeline: 7, Duration: 100 * time.Millisecond, Warmup: -1,
	})
	if err != nil || r.Empty > 0 || r.Done == 0 {
		t.Errorf("%d cycles, %d times nothing, %v", r.Done, r.Empty, err)
	}
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	names, err := c.Queues(t.Context(), "*bench-*")
	if err != nil || len(names) != 1000 {
		t.Errorf("%d queues, %v", len(names), err)
	}
	s.end(t)
}

package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/server/admin"
)

// brokenEngine panics in one of its methods.
type brokenEngine struct {
	admin.Engine
	in string
}

func (b brokenEngine) bug(method string) {
	if b.in == method {
		panic("a bug in the engine")
	}
}

func (b brokenEngine) Submit(cmds ...engine.Command) engine.LSN {
	b.bug("Submit")
	return b.Engine.Submit(cmds...)
}

func (b brokenEngine) LoadView(v *engine.JobView) error {
	b.bug("LoadView")
	return b.Engine.LoadView(v)
}

func (b brokenEngine) Snapshot(ctx context.Context) error {
	b.bug("Snapshot")
	return b.Engine.Snapshot(ctx)
}

func (b brokenEngine) Numbers() engine.Numbers {
	b.bug("Numbers")
	return b.Engine.Numbers()
}

// TestEnginePanicEndsTheProcess: after one the state may be half changed, so
// net/http must not catch it and go on.
func TestEnginePanicEndsTheProcess(t *testing.T) {
	const mark = "PAWL_TEST_ADMIN_PANIC"
	requests := map[string]struct{ method, path string }{
		"Submit":   {"GET", "/api/v1/queue?queue=default%2Fdefault%2Fq"},
		"LoadView": {"GET", "/api/v1/job?id="},
		"Snapshot": {"POST", "/api/v1/snapshot"},
		"Numbers":  {"GET", "/metrics"},
	}
	if in := os.Getenv(mark); in != "" {
		o := newOffice(t)
		job := &engine.Enqueue{Queue: []byte("default/default/q"), Payload: []byte("x")}
		if err := errors.Join(o.engine.Do(job), job.Err()); err != nil {
			t.Fatal(err)
		}
		o.pair.Server.SetEngine(brokenEngine{o.engine, in})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go o.pair.HTTP().Serve(l)
		path := requests[in].path
		if in == "LoadView" {
			path += job.ID.String()
		}
		r, err := http.NewRequest(requests[in].method, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		_, err = http.DefaultClient.Do(r)
		fmt.Println("answered", err)
		return
	}
	for in := range requests {
		cmd := exec.Command(os.Args[0], "-test.run=^TestEnginePanicEndsTheProcess$")
		cmd.Env = append(os.Environ(), mark+"="+in)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: a bug in the engine") || !strings.Contains(string(out), "brokenEngine") {
			t.Errorf("%s: the process goes on: %v\n%s", in, err, out)
		}
	}
}

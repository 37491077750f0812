package resp_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"pawl/engine"
	"pawl/server/resp"
)

// countingEngine counts how often the critical section would be entered.
type countingEngine struct {
	*fakeEngine
	submits atomic.Int64
}

func (e *countingEngine) Submit(cmds ...engine.Command) engine.LSN {
	e.submits.Add(1)
	return e.fakeEngine.Submit(cmds...)
}

// TestPipelineIsOneBatch: what a client has sent at once is decided and made
// durable at once, not in the portions of a small buffer.
func TestPipelineIsOneBatch(t *testing.T) {
	e := &countingEngine{fakeEngine: newFakeEngine()}
	s := resp.New(resp.Options{})
	if err := s.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	client, server := newHalfPipe()
	const commands = 4000
	var stream strings.Builder
	for i := range commands {
		stream.WriteString(command("ENQUEUE", "mail", fmt.Sprintf("%0100d", i)))
	}
	// All of it is there before the server reads: reads are as large as its
	// buffer, and end in the middle of a command.
	if _, err := client.Write([]byte(stream.String())); err != nil {
		t.Fatal(err)
	}
	client.CloseWrite()
	l := newPipeListener()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	l.conns <- server
	all, err := io.ReadAll(client)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(all), "task_id"); n != commands {
		t.Errorf("got %d answers, want %d", n, commands)
	}
	// The buffer doubles from 512 bytes to 64 KiB, then takes 400 commands a time.
	if n := e.submits.Load(); n > 30 {
		t.Errorf("%d commands came to the engine in %d batches, want at most 30", commands, n)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A FETCH whose reply is muted takes no job from one behind it in the pipeline.
func TestMutedFetchTakesNothing(t *testing.T) {
	d, f := startFake(t, resp.Options{})
	c := d.dial()
	c.do("ENQUEUE", "q", "x")
	fetch := command("FETCH", "q", "60000")
	c.send(command("CLIENT", "REPLY", "SKIP") + fetch + fetch)
	if got := c.reply(); !strings.Contains(got, `"payload" "x"`) {
		t.Errorf("got %s", got)
	}
	if f.lost() != 0 {
		t.Error("a job was taken and given back")
	}
}

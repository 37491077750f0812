package resp_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawl/internal/record"
	"pawl/internal/seeds"
	"pawl/server/resp"
)

var streams = flag.Int("streams", 20_000, "streams that TestAnyCut plays")

// script is a connection whose client has sent everything, and has its pieces
// arrive one a read: a conversation without a wait.
//
// A server may close while its watching goroutine still reads; after Close
// nothing is read any more, so that the pieces and their random numbers are the
// next conversation's.
type script struct {
	said   []byte // by the server
	closed chan struct{}

	mu    sync.Mutex
	over  bool   // guarded by mu, as all below
	rest  []byte // not read yet
	piece func(rest []byte) int
}

func (c *script) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, net.ErrClosed
	}
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest[:min(max(1, c.piece(c.rest)), len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func (c *script) Write(b []byte) (int, error) {
	c.said = append(c.said, b...)
	return len(b), nil
}

func (c *script) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.closed)
	}
	return nil
}

func (c *script) CloseWrite() error                { return nil }
func (c *script) LocalAddr() net.Addr              { return pipeAddr{} }
func (c *script) RemoteAddr() net.Addr             { return pipeAddr{} }
func (c *script) SetDeadline(time.Time) error      { return nil }
func (c *script) SetReadDeadline(time.Time) error  { return nil }
func (c *script) SetWriteDeadline(time.Time) error { return nil }

// stage is one server for many conversations, one after the other. Its engine
// forgets between them.
type stage struct {
	s      *resp.Server
	e      *fakeEngine
	l      *pipeListener
	served chan error
}

func newStage(t testing.TB, opt resp.Options) *stage {
	t.Helper()
	g := &stage{s: resp.New(opt), e: newFakeEngine(), l: newPipeListener(), served: make(chan error, 1)}
	if err := g.s.SetEngine(g.e); err != nil {
		t.Fatal(err)
	}
	go func() { g.served <- g.s.Serve(context.Background(), g.l) }()
	return g
}

// connection IDs count up, and HELLO tells them.
var connectionID = regexp.MustCompile(`\$2\r\nid\r\n:\d+\r\n`)

// play gives all that the server answers to a stream that is cut into pieces.
func (g *stage) play(stream []byte, piece func(rest []byte) int) []byte {
	g.e.forget()
	c := &script{rest: stream, piece: piece, closed: make(chan struct{})}
	g.l.conns <- c
	<-c.closed
	if bytes.Contains(c.said, []byte("$2\r\nid\r\n")) {
		return connectionID.ReplaceAllLiteral(c.said, []byte("$2\r\nid\r\n:1\r\n"))
	}
	return c.said
}

// end stops the server; nothing of the conversations may be left.
func (g *stage) end(t testing.TB) {
	t.Helper()
	if err := g.s.Shutdown(context.Background()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-g.served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if n := g.s.Numbers(); n.Panics != 0 || n.BufferBytes != 0 || n.Connected != 0 || n.Blocked != 0 {
		t.Errorf("after the end: %+v", n)
	}
}

// wellFormed says whether answers are replies to their last byte.
func wellFormed(answer []byte) error {
	for r := newReplyReader(answer); ; {
		if _, err := readReply(r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// cutStream draws a stream, and now and then one that is long.
func cutStream(random *rand.Rand) []byte {
	stream := randomStream(random)
	for len(stream) > 1500 && random.IntN(50) > 0 {
		stream = randomStream(random)
	}
	return stream
}

// The same bytes whole, one by one and cut at random give the same replies,
// which are well formed, take no time to speak of, and leave nothing behind.
//
//	go test ./server/resp -run TestAnyCut -v -timeout 0 -streams 4000000
//
// plays 10⁷ conversations.
func TestAnyCut(t *testing.T) {
	const perChunk = 1000
	total := *streams
	if testing.Short() {
		total = min(total, 2000)
	}
	var chunk, played, conversations, slowest atomic.Int64
	layer := record.Note(t, "6 fuzz")
	t.Cleanup(func() { layer.Cases = int(conversations.Load()) })
	var heapAtTenth atomic.Uint64
	began := time.Now()
	act := func(g *stage, stream []byte, random *rand.Rand) error {
		start := time.Now()
		play := func(piece func([]byte) int) []byte {
			conversations.Add(1)
			return g.play(stream, piece)
		}
		want := play(whole)
		if got := play(func([]byte) int { return 1 + random.IntN(40) }); !bytes.Equal(got, want) {
			return fmt.Errorf("%q cut at random: got %q, want %q as when sent at once", stream, clip(got), clip(want))
		}
		if len(stream) <= 400 {
			if got := play(func([]byte) int { return 1 }); !bytes.Equal(got, want) {
				return fmt.Errorf("%q one by one: got %q, want %q as when sent at once", stream, clip(got), clip(want))
			}
		}
		if err := wellFormed(want); err != nil {
			return fmt.Errorf("%q: answer %q: %w", stream, clip(want), err)
		}
		for took := int64(time.Since(start)); ; {
			if old := slowest.Load(); took <= old || slowest.CompareAndSwap(old, took) {
				break
			}
		}
		played.Add(1)
		return nil
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			known := newStage(t, resp.Options{Limits: resp.Limits{PayloadBytes: 4096}})
			defer known.end(t)
			// Where clients must log in, and these do not.
			strange := newStage(t, resp.Options{Password: "x", Limits: resp.Limits{PayloadBytes: 4096}})
			defer strange.end(t)
			for !t.Failed() {
				n := chunk.Add(1) - 1
				if n*perChunk >= int64(total) {
					return
				}
				random := seeds.New(seeds.Nth("resp cuts", int(n)))
				for range min(perChunk, int64(total)-n*perChunk) {
					g := known
					if random.IntN(8) == 0 {
						g = strange
					}
					if err := act(g, cutStream(random), random); err != nil {
						t.Errorf("%s, chunk %d: %v", seeds.Replay(), n, err)
						return
					}
				}
				if n == int64(total)/perChunk/10 {
					heapAtTenth.Store(heapInUse())
				}
			}
		})
	}
	workers.Wait()
	grown := int64(heapInUse()) - int64(heapAtTenth.Load())
	t.Logf("%d streams in %d conversations (whole, one by one, cut at random) in %v: the slowest took %v, the heap grew by %d KiB",
		played.Load(), conversations.Load(), time.Since(began).Round(time.Second/10), time.Duration(slowest.Load()).Round(time.Microsecond), grown>>10)
	if grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// heapInUse is what is alive.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package lmstfy_test

import (
	"errors"
	"strings"
	"testing"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/server/servertest"
)

// TestLimitersHaveNames: a limiter stands under a key of pool, namespace and token.
// Names that would make it another one's after a restart are refused.
func TestLimitersHaveNames(t *testing.T) {
	bubble(t, lmstfy.Options{}, func(t *testing.T, s *shop) {
		limit := lmstfy.Limit{Write: 1, Interval: 60}
		for _, c := range []struct {
			namespace, token string
			want             error
		}{
			{"a/b", "token", lmstfy.ErrNamespaceName},
			{"", "token", lmstfy.ErrNamespaceName},
			{strings.Repeat("n", 256), "token", lmstfy.ErrNamespaceLong},
			{"ns", "a/b", lmstfy.ErrTokenChars},
			{"ns", "", lmstfy.ErrTokenChars},
			{"ns", "token", nil},
		} {
			if err := s.server.Tokens().SetLimit(c.namespace, c.token, limit, false); !errors.Is(err, c.want) {
				t.Errorf("%.10q %q: got %v, want %v", c.namespace, c.token, err, c.want)
			}
		}
		if got := send(t, s.admin, "PUT", "/token/a!/token/limit", `{"write":1,"interval":60}`); got.status != 400 {
			t.Errorf("got %d %s, want 400", got.status, got.body)
		}
		servertest.Close(t, s.engine)
		s.open(lmstfy.Options{})
		if list := s.server.Tokens().Limits(); len(list) != 1 || list[0] != (lmstfy.LimitInfo{Namespace: "ns", Token: "token", Limiter: limit}) {
			t.Errorf("after a restart got %v", list)
		}
	})
}

// slowEngine says nothing of what becomes of a command.
type slowEngine struct{ *engine.Engine }

func (slowEngine) Wait(engine.LSN) error { return engine.ErrUnanswered }

// TestOpenOutcome: who made a token and heard nothing must not be told to do it
// again, for it may be there.
func TestOpenOutcome(t *testing.T) {
	bubble(t, lmstfy.Options{}, func(t *testing.T, s *shop) {
		lmstfy.BreakEngine(s.server, slowEngine{s.engine})
		got := send(t, s.admin, "POST", "/token/ns?description=x", "")
		if got.status != 500 || got.header.Get("Retry-After") != "" {
			t.Errorf("got %d with Retry-After %q, want 500 without", got.status, got.header.Get("Retry-After"))
		}
	})
}

// unreadable is an engine whose log has failed when a body is wanted.
type unreadable struct{ *engine.Engine }

func (unreadable) LoadView(*engine.JobView) error { return engine.ErrFailed }

// TestPeekOfFailedLog: both peeks say that it may work later, elsewhere.
func TestPeekOfFailedLog(t *testing.T) {
	bubble(t, lmstfy.Options{SkipTokens: true}, func(t *testing.T, s *shop) {
		got := send(t, s.public, "PUT", "/api/ns/q", "x")
		id := strings.SplitN(strings.SplitN(got.body, `"job_id":"`, 2)[1], `"`, 2)[0]
		lmstfy.BreakEngine(s.server, unreadable{s.engine})
		for _, path := range []string{"peek", "job/" + id} {
			s.want(send(t, s.public, "GET", "/api/ns/q/"+path, ""), 503, `{"error":"storage failed"}`)
		}
	})
}

package lmstfy

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestGuessesComeBack: a locked address may try again once in guessEvery, and
// many addresses neither fill memory nor escape the count.
func TestGuessesComeBack(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	a := newAccounts(map[string]string{"op": "secret"}, slog.New(slog.DiscardHandler), func() time.Time { return now })
	try := func(host, password string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = host
		r.SetBasicAuth("op", password)
		if a.Admit(w, r) {
			return http.StatusOK
		}
		return w.Code
	}
	const host = "192.0.2.1:1"
	for i := range guessBurst {
		if got := try(host, fmt.Sprint(i)); got != http.StatusUnauthorized {
			t.Fatalf("guess %d: got %d, want 401", i, got)
		}
	}
	if got := try(host, "secret"); got != http.StatusTooManyRequests {
		t.Errorf("at once: got %d, want 429", got)
	}
	now = now.Add(guessEvery - time.Millisecond)
	if got := try(host, "secret"); got != http.StatusTooManyRequests {
		t.Errorf("just before the time: got %d, want 429", got)
	}
	now = now.Add(time.Millisecond)
	if got := try(host, "x"); got != http.StatusUnauthorized {
		t.Errorf("after the time: got %d, want 401", got)
	}
	if got := try(host, "y"); got != http.StatusTooManyRequests {
		t.Errorf("and again: got %d, want 429", got)
	}
	now = now.Add(2 * guessEvery)
	if got := try(host, "secret"); got != http.StatusOK {
		t.Errorf("the right one in time: got %d, want 200", got)
	}

	for i := range 2 * maxGuessers {
		try(fmt.Sprintf("10.1.%d.%d:1", i/256, i%256), "x")
	}
	if n := len(a.guessers); n > maxGuessers+1 {
		t.Errorf("%d addresses are remembered, want at most %d", n, maxGuessers+1)
	}
	if got := try("10.9.9.9:1", "secret"); got != http.StatusTooManyRequests {
		t.Errorf("one of too many: got %d, want 429", got)
	}
	now = now.Add(time.Hour)
	if got := try("10.9.9.9:1", "secret"); got != http.StatusOK {
		t.Errorf("when all is worked off: got %d, want 200", got)
	}
	if n := len(a.guessers); n > 1 {
		t.Errorf("%d addresses are left, want only the last", n)
	}
}

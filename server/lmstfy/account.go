package lmstfy

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Guessing is slowed by address: each may be wrong guessBurst times at once and
// once more every guessEvery. Beyond that its logins are refused unseen, so that
// a right guess is not told from a wrong one.
const (
	guessBurst = 10
	guessEvery = 6 * time.Second
	// maxGuessers bounds the addresses that are remembered; beyond it all others
	// share one count.
	maxGuessers = 4096
)

// Accounts are the logins of the admin listener: user and password, sent with
// each request as HTTP's basic authentication. All methods may be called from
// any goroutine.
type Accounts struct {
	table  atomic.Pointer[map[string]string]
	log    *slog.Logger
	now    func() time.Time
	wrong  atomic.Uint64
	unseen atomic.Uint64

	mu       sync.Mutex
	guessers map[netip.Addr]*guesser // guarded by mu; the zero address is all that do not fit
}

// guesser is an address that has been wrong lately.
type guesser struct {
	wrong float64 // guesses, less one for each guessEvery that has passed
	at    time.Time
	// good is the hash of the last login of the address that was right. It stays
	// good while the address is locked: whoever guesses from behind the same proxy
	// does not lock the operators out.
	good [sha256.Size]byte
}

func newAccounts(table map[string]string, log *slog.Logger, now func() time.Time) *Accounts {
	a := &Accounts{log: log, now: now, guessers: make(map[netip.Addr]*guesser)}
	a.Set(table)
	return a
}

// Set replaces all accounts, from now on. Without any, whoever reaches the
// listener is let in.
func (a *Accounts) Set(table map[string]string) {
	table = maps.Clone(table)
	a.table.Store(&table)
}

// AccountNumbers count since the start.
type AccountNumbers struct {
	Wrong  uint64 // logins with an unknown user or a wrong password
	Unseen uint64 // logins refused without a look, because their address had guessed too often
}

// Numbers reads the counts.
func (a *Accounts) Numbers() AccountNumbers {
	return AccountNumbers{a.wrong.Load(), a.unseen.Load()}
}

// Admit says whether r comes with the login of an account, or none is needed. If
// not it has replied: 401 as lmstfy does, without a body, or 429 with Retry-After
// to an address that has guessed too often.
func (a *Accounts) Admit(w http.ResponseWriter, r *http.Request) bool {
	table := *a.table.Load()
	if len(table) == 0 {
		return true
	}
	user, password, sent := r.BasicAuth()
	if !sent { // a browser's first request is no guess
		demandLogin(w)
		return false
	}
	login := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	g, pause := a.enter(hostOf(r.RemoteAddr), login)
	if pause > 0 {
		a.unseen.Add(1)
		w.Header().Set("Retry-After", strconv.Itoa(int(pause/time.Second)+1))
		w.WriteHeader(http.StatusTooManyRequests)
		return false
	}
	ok := checkAccount(table, user, password)
	a.leave(g, login, ok)
	if !ok {
		a.wrong.Add(1)
		a.log.Warn("an operator could not log in", "remote", r.RemoteAddr)
		demandLogin(w)
	}
	return ok
}

func demandLogin(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="Authorization Required"`)
	w.WriteHeader(http.StatusUnauthorized)
}

// checkAccount compares with every account, so that the time it takes says
// nothing about which user there is or how much of a password is right.
func checkAccount(table map[string]string, user, password string) bool {
	gotUser, gotPassword := sha256.Sum256([]byte(user)), sha256.Sum256([]byte(password))
	ok := 0
	for name, want := range table {
		wantUser, wantPassword := sha256.Sum256([]byte(name)), sha256.Sum256([]byte(want))
		ok |= subtle.ConstantTimeCompare(gotUser[:], wantUser[:]) & subtle.ConstantTimeCompare(gotPassword[:], wantPassword[:])
	}
	return ok == 1
}

// hostOf is the address that is counted: of IPv6 the network, for one machine has
// all of it.
func hostOf(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// enter counts a login as wrong until leave knows better, so that many at once
// are no way around the limit. A pause above zero is how long the address must
// wait before its next login is looked at.
func (a *Accounts) enter(host netip.Addr, login [sha256.Size]byte) (g *guesser, pause time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	g = a.guesser(host, now)
	g.settle(now)
	if subtle.ConstantTimeCompare(g.good[:], login[:]) == 1 {
		return g, 0
	}
	if over := g.wrong - (guessBurst - 1); over > 0 {
		return g, time.Duration(over * float64(guessEvery))
	}
	g.wrong++
	return g, 0
}

func (a *Accounts) leave(g *guesser, login [sha256.Size]byte, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch known := g.good == login; {
	case ok && !known:
		g.wrong, g.good = max(0, g.wrong-1), login
	case !ok && known: // it was good until the accounts were changed
		g.wrong, g.good = g.wrong+1, [sha256.Size]byte{}
	}
}

// guesser is the record of host, the shared one where no more fit. It is called
// with mu held.
func (a *Accounts) guesser(host netip.Addr, now time.Time) *guesser {
	if a.guessers[host] == nil && len(a.guessers) >= maxGuessers {
		for addr, old := range a.guessers {
			if old.settle(now); old.wrong == 0 {
				delete(a.guessers, addr)
			}
		}
		if len(a.guessers) >= maxGuessers {
			host = netip.Addr{}
		}
	}
	g := a.guessers[host]
	if g == nil {
		g = &guesser{at: now}
		a.guessers[host] = g
	}
	return g
}

// settle forgets what time has worked off.
func (g *guesser) settle(now time.Time) {
	g.wrong = max(0, g.wrong-float64(now.Sub(g.at))/float64(guessEvery))
	g.at = now
}

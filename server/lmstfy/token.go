package lmstfy

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"pawl/engine"
	"pawl/state"
)

// A token's text is TOKEN or POOL:TOKEN, split at the first colon; without a
// pool it is of the pool "default". It is good for one namespace of its pool.

// SplitToken splits a token's text. The pool is never empty.
func SplitToken(text string) (pool, token string) {
	pool, token, ok := strings.Cut(text, ":")
	switch {
	case !ok:
		return state.DefaultPool, text
	case pool == "":
		return state.DefaultPool, token
	}
	return pool, token
}

// JoinToken is the text that SplitToken splits.
func JoinToken(pool, token string) string {
	if pool == state.DefaultPool {
		return token
	}
	return pool + ":" + token
}

// What Tokens refuses. The texts are lmstfy's.
var (
	ErrNoPool          = errors.New("the pool was not exists")
	ErrTokenExists     = errors.New("the token has already existed")
	ErrTokenShort      = errors.New("the user token was too short")
	ErrDescription     = errors.New("invalid description")
	ErrNamespaceLong   = errors.New("the namespace name was too long")
	ErrNamespaceName   = errors.New("namespace name contains forbidden characters")
	ErrTokenFixed      = errors.New("the token is fixed in the configuration")
	ErrLimiterExists   = errors.New("limiter has already exists")
	ErrInterval        = errors.New("interval should be > 0")
	ErrLimiterNegative = errors.New("the read and write of limiter can't be <= 0 at the same time")
	ErrTokenChars      = errors.New("the token contains forbidden characters")
	errLoading         = errors.New("loading")
)

// minTokenBytes is the least length of a token chosen by a user, pool included.
const minTokenBytes = 20

// maxTokenBytes bounds a token chosen by a user.
const maxTokenBytes = 255

// scope is where one token, or one limiter, holds.
type scope struct{ pool, namespace, token string }

// space is one namespace.
type space struct{ pool, namespace string }

func (s scope) space() space { return space{s.pool, s.namespace} }

func (s scope) tokenKey() string {
	return "token/" + s.pool + "/" + s.namespace + "/" + s.token
}

func (s scope) limitKey() string {
	return "limit/" + s.pool + "/" + s.namespace + "/" + s.token
}

// parseScope reads what follows "token/" or "limit/" in a key.
func parseScope(rest string) (s scope, ok bool) {
	part := strings.SplitN(rest, "/", 3)
	if len(part) != 3 {
		return s, false
	}
	return scope{part[0], part[1], part[2]}, true
}

// Tokens are the tokens and limiters of all pools. They live in the log as small
// values of the engine and are checked from memory. A change is durable before
// it counts. All methods may be called from any goroutine.
type Tokens struct {
	pools   []string
	engine  func() Engine
	deleted func(pool, namespace, token string) // told of every deletion; may be nil

	unlimited func(scope) // told of every limiter that goes
	emptied   func(space) // told of every namespace whose last token goes

	change sync.Mutex // held over a change: log first, then memory

	mu      sync.RWMutex
	tokens  map[scope]string  // guarded by mu; description
	spaces  map[space]int     // guarded by mu; how many tokens a namespace has, if any
	fixed   map[scope]bool    // read only; from the configuration
	windows map[scope]*window // guarded by mu
}

func newTokens(pools []string, fixed []FixedToken, current func() Engine) *Tokens {
	t := &Tokens{
		pools:   pools,
		engine:  current,
		tokens:  make(map[scope]string),
		spaces:  make(map[space]int),
		fixed:   make(map[scope]bool),
		windows: make(map[scope]*window),
	}
	for _, f := range fixed {
		pool := f.Pool
		if pool == "" {
			pool = state.DefaultPool
		}
		s := scope{pool, f.Namespace, f.Token}
		t.fixed[s] = true
		t.put(s, f.Description)
	}
	return t
}

// put has a token count, or changes its description. The caller holds mu.
func (t *Tokens) put(s scope, description string) {
	if _, known := t.tokens[s]; !known {
		t.spaces[s.space()]++
	}
	t.tokens[s] = description
}

// drop has a token that there is count no more, and says whether it was the last
// one of its namespace. The caller holds mu.
func (t *Tokens) drop(s scope) (last bool) {
	delete(t.tokens, s)
	if t.spaces[s.space()]--; t.spaces[s.space()] > 0 {
		return false
	}
	delete(t.spaces, s.space())
	return true
}

// load reads everything from the log.
func (t *Tokens) load(e Engine) error {
	tokens := &engine.MetaList{Prefix: "token/"}
	limits := &engine.MetaList{Prefix: "limit/"}
	if err := e.Wait(e.Submit(tokens, limits)); err != nil {
		return err
	}
	if err := errors.Join(tokens.Err(), limits.Err()); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range tokens.Pairs {
		if s, ok := parseScope(strings.TrimPrefix(p.Key, "token/")); ok {
			t.put(s, string(p.Value))
		}
	}
	for _, p := range limits.Pairs {
		s, ok := parseScope(strings.TrimPrefix(p.Key, "limit/"))
		if !ok {
			continue
		}
		var l Limit
		if err := json.Unmarshal(p.Value, &l); err != nil {
			return fmt.Errorf("limiter %q: %w", p.Key, err)
		}
		t.windows[s] = &window{limit: l}
	}
	return nil
}

// Pools are the names of all pools.
func (t *Tokens) Pools() []string { return slices.Clone(t.pools) }

func (t *Tokens) hasPool(pool string) bool {
	for _, p := range t.pools {
		if p == pool {
			return true
		}
	}
	return false
}

func (t *Tokens) valid(pool, namespace, token string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.tokens[scope{pool, namespace, token}]
	return ok
}

// has says whether a namespace has any token.
func (t *Tokens) has(s space) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.spaces[s] > 0
}

func (t *Tokens) window(pool, namespace, token string) *window {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.windows) == 0 {
		return nil
	}
	return t.windows[scope{pool, namespace, token}]
}

// store makes one change durable.
func (t *Tokens) store(set *engine.MetaSet) error {
	e := t.engine()
	if e == nil {
		return errLoading
	}
	if err := e.Wait(e.Submit(set)); err != nil {
		return err
	}
	return set.Err()
}

// Create makes a token. An empty token is generated; one of the form POOL:TOKEN
// wins over pool. It returns the text that clients send.
func (t *Tokens) Create(pool, namespace, token, description string) (text string, err error) {
	switch {
	case description == "":
		return "", ErrDescription
	case token != "" && len(token) < minTokenBytes:
		return "", ErrTokenShort
	}
	if err := checkNamespace(namespace); err != nil {
		return "", err
	}
	if pool == "" {
		pool = state.DefaultPool
	}
	if token == "" {
		token = newToken(time.Now())
	} else if strings.Contains(token, ":") {
		pool, token = SplitToken(token)
	}
	if !t.hasPool(pool) {
		return "", ErrNoPool
	}
	s := scope{pool, namespace, token}
	if err := s.check(); err != nil {
		return "", err
	}
	t.change.Lock()
	defer t.change.Unlock()
	if t.valid(pool, namespace, token) {
		return "", ErrTokenExists
	}
	if len(description) > 4096 {
		description = description[:4096]
	}
	if err := t.store(&engine.MetaSet{Key: s.tokenKey(), Value: []byte(description)}); err != nil {
		return "", err
	}
	t.mu.Lock()
	t.put(s, description)
	t.mu.Unlock()
	return JoinToken(pool, token), nil
}

// newToken is a ULID as well, of 80 bits that nobody can guess.
func newToken(now time.Time) string {
	var secret [10]byte
	rand.Read(secret[:])
	text := ulid(now, secret)
	return string(text[:])
}

// check says why there can be no such token, and no limiter of one: what cannot be
// told apart in a key would be another one's after a restart.
func (s scope) check() error {
	if err := checkNamespace(s.namespace); err != nil {
		return err
	}
	if !goodToken(s.token) {
		return ErrTokenChars
	}
	return nil
}

func checkNamespace(name string) error {
	switch {
	case len(name) > maxNameBytes:
		return ErrNamespaceLong
	case name == "" || !plainName(name, false):
		return ErrNamespaceName
	}
	return nil
}

// goodToken: it must fit a header and a path.
func goodToken(token string) bool {
	if token == "" || len(token) > maxTokenBytes {
		return false
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c >= 0x7f || c == '/' {
			return false
		}
	}
	return true
}

// Delete removes a token, given as clients send it, and its limiter. One that
// does not exist is no error.
func (t *Tokens) Delete(namespace, text string) error {
	s, err := t.scope(namespace, text)
	if err != nil {
		return err
	}
	if t.fixed[s] {
		return ErrTokenFixed
	}
	t.change.Lock()
	defer t.change.Unlock()
	if t.valid(s.pool, s.namespace, s.token) {
		if err := t.store(&engine.MetaSet{Key: s.tokenKey()}); err != nil {
			return err
		}
		t.mu.Lock()
		last := t.drop(s)
		t.mu.Unlock()
		if last {
			t.emptied(s.space())
		}
		if t.deleted != nil {
			t.deleted(s.pool, s.namespace, s.token)
		}
	}
	return t.deleteLimit(s)
}

func (t *Tokens) scope(namespace, text string) (s scope, err error) {
	pool, token := SplitToken(text)
	if !t.hasPool(pool) {
		return s, ErrNoPool
	}
	return scope{pool, namespace, token}, nil
}

// TokenInfo is one token as operators see it.
type TokenInfo struct {
	Pool        string `json:"pool"`
	Namespace   string `json:"namespace"`
	Token       string `json:"token"` // without the pool
	Description string `json:"description"`
	Fixed       bool   `json:"fixed"` // in the configuration
	Limit       *Limit `json:"limit"` // nil without a limiter
}

// List is all tokens, sorted by pool, namespace and token.
func (t *Tokens) List() []TokenInfo {
	t.mu.RLock()
	list := make([]TokenInfo, 0, len(t.tokens))
	for s, description := range t.tokens {
		info := TokenInfo{Pool: s.pool, Namespace: s.namespace, Token: s.token, Description: description, Fixed: t.fixed[s]}
		if w := t.windows[s]; w != nil {
			limit := w.limit
			info.Limit = &limit
		}
		list = append(list, info)
	}
	t.mu.RUnlock() // sorting takes longer, and every request checks its token
	slices.SortFunc(list, func(a, b TokenInfo) int {
		return compareScopes(scope{a.Pool, a.Namespace, a.Token}, scope{b.Pool, b.Namespace, b.Token})
	})
	return list
}

func compareScopes(a, b scope) int {
	if c := strings.Compare(a.pool, b.pool); c != 0 {
		return c
	}
	if c := strings.Compare(a.namespace, b.namespace); c != 0 {
		return c
	}
	return strings.Compare(a.token, b.token)
}

// check says why a limit cannot be set.
func (l Limit) check() error {
	switch {
	case l.Read <= 0 && l.Write <= 0:
		return ErrLimiterNegative
	case l.Interval <= 0:
		return ErrInterval
	}
	return nil
}

// SetLimit sets the limiter of a token, given as clients send it; the token
// need not exist, but could. With create it refuses to replace one.
func (t *Tokens) SetLimit(namespace, text string, l Limit, create bool) error {
	s, err := t.scope(namespace, text)
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	l.Interval = min(l.Interval, maxInterval)
	value, err := json.Marshal(l)
	if err != nil {
		return err
	}
	t.change.Lock()
	defer t.change.Unlock()
	if create && t.window(s.pool, s.namespace, s.token) != nil {
		return ErrLimiterExists
	}
	if err := t.store(&engine.MetaSet{Key: s.limitKey(), Value: value}); err != nil {
		return err
	}
	t.mu.Lock()
	t.windows[s] = &window{limit: l}
	t.mu.Unlock()
	return nil
}

// maxInterval keeps a window's end within time.Duration: a hundred years.
const maxInterval = 100 * 365 * 24 * 3600

// Limit is the limiter of a token; ok is false without one.
func (t *Tokens) Limit(namespace, text string) (l Limit, ok bool) {
	s, err := t.scope(namespace, text)
	if err != nil {
		return l, false
	}
	if w := t.window(s.pool, s.namespace, s.token); w != nil {
		return w.limit, true
	}
	return l, false
}

// DeleteLimit removes the limiter of a token. None is no error.
func (t *Tokens) DeleteLimit(namespace, text string) error {
	s, err := t.scope(namespace, text)
	if err != nil {
		return err
	}
	t.change.Lock()
	defer t.change.Unlock()
	return t.deleteLimit(s)
}

// deleteLimit is called with change held.
func (t *Tokens) deleteLimit(s scope) error {
	if t.window(s.pool, s.namespace, s.token) == nil {
		return nil
	}
	if err := t.store(&engine.MetaSet{Key: s.limitKey()}); err != nil {
		return err
	}
	t.mu.Lock()
	delete(t.windows, s)
	t.mu.Unlock()
	t.unlimited(s)
	return nil
}

// LimitInfo is one limiter in the reply of GET /limits.
type LimitInfo struct {
	Namespace string `json:"namespace"`
	Token     string `json:"token"` // with its pool unless that is the default
	Limiter   Limit  `json:"limiter"`
}

// Limits are all limiters, sorted by pool, namespace and token.
func (t *Tokens) Limits() []LimitInfo {
	t.mu.RLock()
	windows := maps.Clone(t.windows)
	t.mu.RUnlock()
	list := make([]LimitInfo, 0, len(windows))
	for _, s := range slices.SortedFunc(maps.Keys(windows), compareScopes) {
		list = append(list, LimitInfo{s.namespace, JoinToken(s.pool, s.token), windows[s].limit})
	}
	return list
}

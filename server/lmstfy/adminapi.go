package lmstfy

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"pawl/engine"
	"pawl/state"
)

// AdminRoutes are the paths of lmstfy's admin API, as patterns of
// http.ServeMux without a method. A mux that serves more beside them mounts
// Server.Admin at each. /version and /metrics are for whoever mounts it.
var AdminRoutes = []string{
	"/pools",
	"/info",
	"/limits",
	"/accesslog",
	"/token/{namespace}",
	"/token/{namespace}/{token}",
	"/token/{namespace}/{token}/limit",
}

// Admin is lmstfy's admin API.
func (s *Server) Admin() http.Handler { return http.HandlerFunc(s.serveAdmin) }

// maxAdminBody bounds the body of an admin request in bytes.
const maxAdminBody = 64 << 10

// serveAdmin routes by hand: unknown paths and methods are the same plain 404.
func (s *Server) serveAdmin(w http.ResponseWriter, r *http.Request) {
	id := requestID(s.now())
	w.Header()["X-Request-Id"] = []string{string(id[:])}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	a := &adminCall{s: s, w: w, r: r}
	part := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if slices.Contains(part, "") {
		a.notFound()
		return
	}
	handler := a.notFound
	protected := false
	on := func(h func(), behindLogin bool) { handler, protected = h, behindLogin }
	switch {
	case len(part) == 1:
		switch r.Method + " " + part[0] {
		case "GET pools":
			on(a.pools, false)
		case "GET info":
			on(a.info, false)
		case "GET version":
			on(a.version, false)
		case "GET limits":
			on(a.limits, true)
		case "GET accesslog":
			on(a.accessLog, false)
		case "POST accesslog":
			on(a.switchAccessLog, true)
		}
	case part[0] != "token":
	case len(part) == 2:
		a.namespace = part[1]
		switch r.Method {
		case http.MethodGet:
			on(a.listTokens, true)
		case http.MethodPost:
			on(a.createToken, true)
		}
	case len(part) == 3:
		a.namespace, a.token = part[1], part[2]
		if r.Method == http.MethodDelete {
			on(a.deleteToken, true)
		}
	case len(part) == 4 && part[3] == "limit":
		a.namespace, a.token = part[1], part[2]
		switch r.Method {
		case http.MethodGet:
			on(a.getLimit, true)
		case http.MethodPost:
			on(func() { a.setLimit(true) }, true)
		case http.MethodPut:
			on(func() { a.setLimit(false) }, true)
		case http.MethodDelete:
			on(a.deleteLimit, true)
		}
	}
	if protected && !s.accounts.Admit(w, r) {
		return
	}
	handler()
}

// adminCall is one request of the admin API.
type adminCall struct {
	s                *Server
	w                http.ResponseWriter
	r                *http.Request
	namespace, token string
}

func (a *adminCall) notFound() {
	a.w.Header().Set("Content-Type", "text/plain")
	a.w.WriteHeader(http.StatusNotFound)
	io.WriteString(a.w, "404 page not found")
}

func (a *adminCall) json(status int, v any) { a.send(status, v, "") }

func (a *adminCall) indented(status int, v any) { a.send(status, v, "    ") }

func (a *adminCall) send(status int, v any, indent string) {
	body, err := json.Marshal(v)
	if indent != "" {
		body, err = json.MarshalIndent(v, "", indent)
	}
	if err != nil { // cannot happen: only strings and numbers are sent
		http.Error(a.w, "internal error", http.StatusInternalServerError)
		return
	}
	a.w.Header()["Content-Type"] = jsonType
	a.w.WriteHeader(status)
	a.w.Write(body)
}

func (a *adminCall) error(status int, text string) {
	a.json(status, map[string]string{"error": text})
}

// failed replies to an error of Tokens.
func (a *adminCall) failed(err error) {
	for _, refusal := range []error{
		ErrNoPool, ErrTokenExists, ErrTokenShort, ErrDescription, ErrNamespaceLong, ErrNamespaceName, ErrTokenFixed, ErrTokenChars, ErrInterval,
	} {
		if errors.Is(err, refusal) {
			a.error(http.StatusBadRequest, refusal.Error())
			return
		}
	}
	switch {
	case errors.Is(err, ErrLimiterNegative):
		a.error(http.StatusInternalServerError, err.Error())
	case errors.Is(err, ErrLimiterExists):
		a.error(http.StatusInternalServerError, "throttler token("+a.token+") has already exists")
	case errors.Is(err, engine.ErrUnknown), errors.Is(err, engine.ErrUnanswered): // the outcome is open
		a.error(http.StatusInternalServerError, "internal error")
	default:
		a.w.Header()["Retry-After"] = []string{retryAfter}
		a.error(http.StatusServiceUnavailable, err.Error())
	}
}

func (a *adminCall) pools() { a.indented(http.StatusOK, a.s.tokens.Pools()) }

func (a *adminCall) version() {
	a.indented(http.StatusOK, struct {
		Commit  string `json:"build_commit"`
		Date    string `json:"build_date"`
		Version string `json:"version"`
	}{a.s.options.Commit, a.s.options.BuildDate, a.s.options.Version})
}

// info lists the queues of a pool by namespace. An unknown pool gives nothing.
func (a *adminCall) info() {
	pool := a.r.URL.Query().Get("pool")
	if pool == "" {
		pool = state.DefaultPool
	}
	a.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	e := a.s.currentEngine()
	if e == nil {
		a.w.Header()["Retry-After"] = []string{retryAfter}
		http.Error(a.w, "loading", http.StatusServiceUnavailable)
		return
	}
	if !a.s.tokens.hasPool(pool) {
		a.w.WriteHeader(http.StatusOK)
		return
	}
	queues := map[string][]string{}
	for _, q := range e.Census().Queues {
		if p, namespace, name := state.SplitQueueKey(q.Key); p == pool {
			queues[namespace] = append(queues[namespace], name)
		}
	}
	body, err := json.MarshalIndent(queues, "", "    ")
	if err != nil { // cannot happen
		http.Error(a.w, "internal error", http.StatusInternalServerError)
		return
	}
	a.w.Write(append(body, '\n'))
}

// limits ignores force_update: the limiters in force are those in the log.
func (a *adminCall) limits() { a.json(http.StatusOK, a.s.tokens.Limits()) }

func (a *adminCall) accessLog() {
	status := "disabled"
	if a.s.access.on.Load() {
		status = "enabled"
	}
	a.json(http.StatusOK, map[string]string{"status": status})
}

func (a *adminCall) switchAccessLog() {
	switch a.r.URL.Query().Get("status") {
	case "enable":
		a.s.access.on.Store(true)
	case "disable":
		a.s.access.on.Store(false)
	default:
		a.error(http.StatusBadRequest, "invalid status")
		return
	}
	a.accessLog()
}

func (a *adminCall) listTokens() {
	pool := a.r.URL.Query().Get("pool")
	prefix := ""
	if pool == "" {
		pool = state.DefaultPool
	} else {
		prefix = pool + ":"
	}
	if !a.s.tokens.hasPool(pool) {
		a.failed(ErrNoPool)
		return
	}
	tokens := map[string]string{}
	for _, t := range a.s.tokens.List() {
		if t.Pool == pool && t.Namespace == a.namespace {
			tokens[prefix+t.Token] = t.Description
		}
	}
	a.indented(http.StatusOK, map[string]any{"tokens": tokens})
}

// createToken takes description and token from a form body or the query, the
// pool from the query only.
func (a *adminCall) createToken() {
	a.r.Body = http.MaxBytesReader(a.w, a.r.Body, maxAdminBody)
	query := a.r.URL.Query()
	field := func(name string) string {
		if v := query.Get(name); v != "" {
			return v
		}
		return a.r.PostFormValue(name) // parses the body at its first use
	}
	text, err := a.s.tokens.Create(query.Get("pool"), a.namespace, field("token"), field("description"))
	if err != nil {
		a.failed(err)
		return
	}
	a.indented(http.StatusCreated, map[string]string{"token": text})
}

func (a *adminCall) deleteToken() {
	// The pool is part of the token, but the documents and the bundled script
	// pass it as a parameter: it counts where the token names none.
	token := a.token
	if pool := a.r.URL.Query().Get("pool"); pool != "" && !strings.Contains(token, ":") {
		token = pool + ":" + token
	}
	if err := a.s.tokens.Delete(a.namespace, token); err != nil {
		a.failed(err)
		return
	}
	a.w.WriteHeader(http.StatusNoContent)
}

func (a *adminCall) getLimit() {
	limit, ok := a.s.tokens.Limit(a.namespace, a.token)
	if !ok {
		a.json(http.StatusNotFound, nil)
		return
	}
	a.json(http.StatusOK, limit)
}

func (a *adminCall) setLimit(create bool) {
	body, err := io.ReadAll(http.MaxBytesReader(a.w, a.r.Body, maxAdminBody))
	if err != nil {
		a.error(http.StatusBadRequest, "failed to read body")
		return
	}
	var limit Limit
	if err := json.Unmarshal(body, &limit); err != nil {
		// The error is an object, of whatever fields encoding/json gives it.
		a.json(http.StatusBadRequest, map[string]error{"error": err})
		return
	}
	switch {
	case limit.Read == 0 && limit.Write == 0:
		a.json(http.StatusBadRequest, map[string]Limit{"limiter": limit})
		return
	case limit.Interval == 0:
		a.failed(ErrInterval)
		return
	}
	if err := a.s.tokens.SetLimit(a.namespace, a.token, limit, create); err != nil {
		a.failed(err)
		return
	}
	status := http.StatusOK
	if create {
		status = http.StatusCreated
	}
	a.json(status, map[string]Limit{"limiter": limit})
}

func (a *adminCall) deleteLimit() {
	if err := a.s.tokens.DeleteLimit(a.namespace, a.token); err != nil {
		a.failed(err)
		return
	}
	a.json(http.StatusOK, map[string]string{"msg": "success"})
}

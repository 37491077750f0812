package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"pawl/engine"
	"pawl/server/lmstfy"
	"pawl/state"
)

// The JSON API. Every route is one row of apiRoutes, from which the router, the
// checks of parameters and openapi.json are made. What is read comes by GET,
// what changes something by POST, with a JSON body. Queues, jobs and tokens are
// named in the query, for a name may hold any bytes.
//
// A POST takes "dry_run": the reply then says how many things it would touch and
// which RESP command does the same, and nothing is changed.

// apiRoute is one row.
type apiRoute struct {
	method, path string
	summary      string
	params       []param
	body         any    // an example of the body's type; nil is none
	reply        any    // an example of the reply's type
	command      string // the RESP command that does the same; empty is none
	limit        int64  // of the body in bytes; 0 is defaultBodyBytes
	handle       func(*apiCall) (any, error)
}

// param is one parameter of the query.
type param struct {
	name, doc string
	required  bool
	integer   bool
}

// defaultBodyBytes bounds a body: the largest payload as base 64, with room.
const defaultBodyBytes = 96 << 20

// apiCall is one request.
type apiCall struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	engine Engine
	route  *apiRoute
	query  url.Values
}

// apiError is a refusal as clients see it.
type apiError struct {
	status  int
	code    string // one word for programs
	message string // a sentence for people
}

func (e *apiError) Error() string { return e.message }

func invalid(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &apiError{http.StatusNotFound, "not_found", fmt.Sprintf(format, args...)}
}

// errorReply is the body of every refusal.
type errorReply struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // cannot happen: replies are plain structs
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"internal error"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, errorReply{errorBody{code, message}})
}

func apiNotFound(w http.ResponseWriter, _ *http.Request) {
	writeError(w, http.StatusNotFound, "not_found", "there is no such route, or not with this method; see /api/v1/openapi.json")
}

// api serves one row.
func (s *Server) api(route *apiRoute) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &apiCall{s: s, w: w, r: r, route: route, query: r.URL.Query()}
		reply, err := c.serve()
		if err != nil {
			c.refuse(err)
			return
		}
		writeJSON(w, http.StatusOK, reply)
	})
}

func (c *apiCall) serve() (any, error) {
	if c.r.Method == http.MethodHead {
		return nil, &apiError{http.StatusMethodNotAllowed, "method", "HEAD is not supported"}
	}
	if err := c.checkQuery(); err != nil {
		return nil, err
	}
	if c.r.Method == http.MethodPost {
		kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return nil, &apiError{http.StatusUnsupportedMediaType, "content_type", "POST needs Content-Type: application/json"}
		}
		limit := c.route.limit
		if limit == 0 {
			limit = defaultBodyBytes
		}
		c.r.Body = http.MaxBytesReader(c.w, c.r.Body, limit)
	}
	if c.engine = c.s.currentEngine(); c.engine == nil {
		return nil, &apiError{http.StatusServiceUnavailable, "loading", "the log is being replayed"}
	}
	return c.route.handle(c)
}

// checkQuery refuses parameters that the route does not know, so that a slip of
// the pen does not act on more than was meant.
func (c *apiCall) checkQuery() error {
	for name := range c.query {
		known := false
		for _, p := range c.route.params {
			known = known || p.name == name
		}
		if !known {
			return invalid("unknown parameter %q", name)
		}
	}
	for _, p := range c.route.params {
		value := c.query.Get(p.name)
		if value == "" {
			if p.required {
				return invalid("parameter %q is missing", p.name)
			}
			continue
		}
		if p.integer {
			if _, err := strconv.ParseInt(value, 10, 64); err != nil {
				return invalid("parameter %q is not an integer", p.name)
			}
		}
	}
	return nil
}

// refuse replies to an error of a handler.
func (c *apiCall) refuse(err error) {
	status, code, message := describe(err)
	if status == http.StatusServiceUnavailable {
		c.w.Header().Set("Retry-After", "1")
	}
	if status == http.StatusInternalServerError && c.r.Context().Err() == nil { // else nobody is there to read it
		c.s.log.Error("admin request failed", "path", c.route.path, "err", err)
	}
	writeError(c.w, status, code, message)
}

// describe gives an error its status and code.
func describe(err error) (status int, code, message string) {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.status, e.code, e.message
	}
	if abort, ok := errors.AsType[*engine.AbortError](err); ok {
		err = abort.Err
	}
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{engine.ErrNoJob, 404, "no_job"},
		{engine.ErrNoLease, 404, "no_lease"},
		{engine.ErrBusyJob, 409, "leased"},
		{engine.ErrUniqueTaken, 409, "unique_taken"},
		{engine.ErrQueueLeased, 409, "leased"},
		{engine.ErrExists, 409, "exists"},
		{engine.ErrCursor, 409, "cursor"},
		{engine.ErrEmptyName, 400, "name"},
		{engine.ErrNameTooLong, 400, "name"},
		{engine.ErrTooLarge, 413, "too_large"},
		{engine.ErrTTLShorter, 400, "ttl"},
		{engine.ErrAttrs, 400, "attributes"},
		{engine.ErrTimeout, 400, "timeout"},
		{engine.ErrQueueFull, 503, "queue_full"},
		{engine.ErrDraining, 503, "draining"},
		{engine.ErrNoMemory, 503, "no_memory"},
		{engine.ErrNoSpace, 503, "no_space"},
		{engine.ErrTooMany, 503, "too_many"},
		{engine.ErrBusy, 503, "busy"},
		{engine.ErrFailed, 503, "failed"},
		{engine.ErrHung, 503, "hung"},
		{engine.ErrClosed, 503, "stopping"},
		{engine.ErrUnknown, 500, "unknown_outcome"},
		{engine.ErrUnanswered, 500, "unknown_outcome"},
		{engine.ErrPartly, 500, "unknown_outcome"},
		{lmstfy.ErrNoPool, 404, "no_pool"},
		{lmstfy.ErrTokenExists, 409, "exists"},
		{lmstfy.ErrTokenShort, 400, "token"},
		{lmstfy.ErrTokenChars, 400, "token"},
		{lmstfy.ErrTokenFixed, 409, "fixed"},
		{lmstfy.ErrDescription, 400, "description"},
		{lmstfy.ErrNamespaceLong, 400, "namespace"},
		{lmstfy.ErrNamespaceName, 400, "namespace"},
		{lmstfy.ErrLimiterNegative, 400, "limit"},
		{lmstfy.ErrInterval, 400, "limit"},
	} {
		if errors.Is(err, known.err) {
			return known.status, known.code, known.err.Error()
		}
	}
	return http.StatusInternalServerError, "internal", "internal error"
}

// read decodes the body into v, strictly: an unknown field is an error.
func (c *apiCall) read(v any) error {
	d := json.NewDecoder(c.r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == io.EOF {
		return nil // no body: all fields have their zero values
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &apiError{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is over %d bytes", large.Limit)}
	}
	if err != nil {
		return invalid("the body is not what is expected: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("the body has something behind its object")
	}
	return nil
}

// do submits commands, waits, and gives the first refusal.
func (c *apiCall) do(cmds ...engine.Command) error {
	if err := c.engine.Wait(c.engine.Submit(cmds...)); err != nil {
		c.engine.Abandon(cmds...)
		return err
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

// logged says what an operator did.
func (c *apiCall) logged(command string, affected int64) {
	c.s.log.LogAttrs(c.r.Context(), slog.LevelInfo, "operator acted",
		slog.String("command", command), slog.Int64("affected", affected),
		slog.String("user", c.operator()), slog.String("remote", c.r.RemoteAddr))
}

// operator is who asks, empty where nobody logs in.
func (c *apiCall) operator() string {
	user, _, _ := c.r.BasicAuth()
	return user
}

// queueParam is the key of the queue that the query names.
func (c *apiCall) queueParam() ([]byte, error) { return parseKey(c.query.Get("queue")) }

// parseKey checks the form of a queue key, pool/namespace/name.
func parseKey(key string) ([]byte, error) {
	part := strings.SplitN(key, "/", 3)
	if len(part) != 3 {
		return nil, invalid("queue %.64q is not of the form pool/namespace/name", key)
	}
	for _, p := range part {
		if p == "" || len(p) > state.MaxNameBytes {
			return nil, invalid("queue %.64q: each part has 1 to %d bytes", key, state.MaxNameBytes)
		}
	}
	return []byte(key), nil
}

func (c *apiCall) integer(name string, absent int64) int64 {
	if n, err := strconv.ParseInt(c.query.Get(name), 10, 64); err == nil {
		return n
	}
	return absent
}

// acted is the reply of everything that changes something.
type acted struct {
	Command  string `json:"command" doc:"the RESP command that does the same"`
	DryRun   bool   `json:"dry_run" doc:"nothing was changed"`
	Affected int64  `json:"affected" doc:"how many jobs, queues or values were or would be changed"`
}

// act runs change unless this is a dry run; affected is what a dry run says.
func (c *apiCall) act(dryRun bool, command string, affected int64, change func() (int64, error)) (any, error) {
	if !dryRun {
		var err error
		if affected, err = change(); err != nil {
			return nil, err
		}
		c.logged(command, affected)
	}
	return acted{command, dryRun, affected}, nil
}

// commandLine writes a command as redis-cli reads it.
func commandLine(words ...string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if plainWord(w) {
			b.WriteString(w)
			continue
		}
		b.WriteByte('"')
		for i := range len(w) {
			switch c := w[i]; {
			case c == '"' || c == '\\':
				b.WriteByte('\\')
				b.WriteByte(c)
			case c < ' ' || c >= 0x7f:
				fmt.Fprintf(&b, `\x%02x`, c)
			default:
				b.WriteByte(c)
			}
		}
		b.WriteByte('"')
	}
	return b.String()
}

func plainWord(w string) bool {
	for i := range len(w) {
		if c := w[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\'' || c == '\\' {
			return false
		}
	}
	return w != ""
}

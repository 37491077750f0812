package lmstfy

import (
	"net/http"
	"strings"
)

// route is one row of the public API.
type route uint8

const (
	routeNone route = iota
	routePublish
	routeBulk
	routeRepublish
	routeConsume
	routePeek
	routePeekJob
	routeDeleteJob
	routeDestroy
	routeSize
	routeDeadLetter
	routeDeadLetterSize
	routeRespawn
	routeDeleteDead
	routeCount
)

// routeInfo says what a route is and what is checked before its handler.
type routeInfo struct {
	method string
	tail   string // what follows the queue: "", "size", "job/" and so on
	token  bool   // a token is checked
	limit  side   // the limiter's side that counts it
	label  string // metric label `api`: lmstfy's own, see docs/lmstfy.md
	handle func(*Server, *call)
}

var routes = [routeCount]routeInfo{
	routeNone:           {},
	routePublish:        {http.MethodPut, "", true, produce, "/api/:namespace/:queue", (*Server).publish},
	routeBulk:           {http.MethodPut, "bulk", true, produce, "/api/:namespace/:queue/bulk", (*Server).publishBulk},
	routeRepublish:      {http.MethodPut, "job/", true, neither, "/api/:namespace/:queue/job/:job_id", (*Server).republish},
	routeConsume:        {http.MethodGet, "", true, consume, "/api/:namespace/:queue/peek", (*Server).consume},
	routePeek:           {http.MethodGet, "peek", true, neither, "/api/:namespace/:queue/peek", (*Server).peek},
	routePeekJob:        {http.MethodGet, "job/", true, neither, "/api/:namespace/:queue/job/:job_id", (*Server).peekJob},
	routeDeleteJob:      {http.MethodDelete, "job/", true, neither, "/api/:namespace/:queue/job/:job_id", (*Server).deleteJob},
	routeDestroy:        {http.MethodDelete, "", true, neither, "/api/:namespace/:queue", (*Server).destroy},
	routeSize:           {http.MethodGet, "size", false, neither, "/api/:namespace/:queue/size", (*Server).size},
	routeDeadLetter:     {http.MethodGet, "deadletter", true, neither, "/api/:namespace/:queue/deadletter", (*Server).deadLetter},
	routeDeadLetterSize: {http.MethodGet, "deadletter/size", false, neither, "/api/:namespace/:queue/deadletter/size", (*Server).deadLetterSize},
	routeRespawn:        {http.MethodPut, "deadletter", true, neither, "/api/:namespace/:queue/deadletter", (*Server).respawn},
	routeDeleteDead:     {http.MethodDelete, "deadletter", true, neither, "/api/:namespace/:queue/deadletter", (*Server).deleteDead},
}

// match finds the route of a request. path is percent-decoded, so an escaped
// slash splits it like any other. Only exact methods match: a HEAD is no GET, for
// a consume would take a job that nobody reads.
func match(method, path string) (r route, namespace, queue, job string) {
	rest, ok := strings.CutPrefix(path, "/api/")
	if !ok {
		return routeNone, "", "", ""
	}
	namespace, rest, ok = strings.Cut(rest, "/")
	if !ok || namespace == "" {
		return routeNone, "", "", ""
	}
	queue, tail, more := strings.Cut(rest, "/")
	if queue == "" || more && tail == "" {
		return routeNone, "", "", ""
	}
	if id, ok := strings.CutPrefix(tail, "job/"); ok {
		if id == "" || strings.Contains(id, "/") {
			return routeNone, "", "", ""
		}
		tail, job = "job/", id
	}
	for r = routePublish; r < routeCount; r++ {
		if routes[r].method == method && routes[r].tail == tail {
			return r, namespace, queue, job
		}
	}
	return routeNone, "", "", ""
}

// maxNameBytes bounds namespace and queue, each.
const maxNameBytes = 255

// badName says why lmstfy refuses the names of a request, "" if it does not.
// Consume is laxer: several queues between commas, any length, and a leading
// underscore.
func badName(r route, namespace, queue string) string {
	isConsume := r == routeConsume
	if !isConsume && (len(namespace) > maxNameBytes || len(queue) > maxNameBytes) {
		return "namespace or queue name too long"
	}
	if !plainName(namespace, false) {
		return "namespace name contains forbidden characters"
	}
	if !plainName(queue, isConsume) || !isConsume && queue[0] == '_' {
		return "queue name contains forbidden characters"
	}
	return ""
}

// plainName: ASCII letters, digits, hyphen and underscore, and commas if allowed.
func plainName(name string, commas bool) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == ',' && commas:
		default:
			return false
		}
	}
	return true
}

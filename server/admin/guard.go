package admin

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// openPaths may be asked for by any name of this host: they show no jobs, and
// scrapers and probes come by whatever name a network gives.
var openPaths = []string{"/metrics", "/livez", "/readyz", "/version"}

// policy forbids everything that the dashboard does not need: no foreign origin,
// no inline script or style, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard keeps web pages of others away from the listener: names that only
// resolve to it, and requests that a foreign page makes a browser send.
func (s *Server) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusForbidden, "origin", "the request comes from another site")
	}))
	next = origin.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if !slices.Contains(openPaths, r.URL.Path) && !s.allowedHost(r.Host) {
			writeError(w, http.StatusForbidden, "host", "the Host header names no known name of this server; see --admin-host-names")
			return
		}
		next.ServeHTTP(boundedWriter{w}, r)
	})
}

// allowedHost: an address cannot be rebound, a name can.
func (s *Server) allowedHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "localhost" || net.ParseIP(host) != nil {
		return true
	}
	return slices.ContainsFunc(*s.hosts.Load(), func(h string) bool { return strings.EqualFold(h, host) })
}

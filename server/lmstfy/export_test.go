package lmstfy

import "net/http"

// Standard is what a Front hands connections to.
func (f *Front) Standard() *http.Server { return f.standard }

// ParsePlain is what a conn makes of the request at the beginning of b: whether
// it is a whole plain one, else whether more bytes could make it one.
func ParsePlain(b []byte) (r PlainRequest, whole, more bool) {
	var p plainRequest
	v := p.parse(b)
	if v != plainWhole {
		return r, false, v == plainMore
	}
	r = PlainRequest{Method: p.method, Path: string(p.target[:p.path]), Token: string(p.token), Header: p.header, Body: string(p.body), Size: p.size}
	if p.path < len(p.target) {
		r.Query = string(p.target[p.path+1:])
	}
	return r, true, false
}

// PlainRequest is a parsed plain request.
type PlainRequest struct {
	Method, Path, Query, Token string
	Header                     http.Header
	Body                       string
	Size                       int
}

// BreakEngine puts e behind s, guarded as SetEngine does.
func BreakEngine(s *Server, e Engine) {
	g := Guard(e)
	s.engine.Store(&g)
}

// RefuseLater is what a publish does that met its limiter, to be done later.
func RefuseLater(s *Server, namespace, token string) func() {
	pool, token := SplitToken(token)
	return func() { s.metrics.limited(&call{pool: pool, namespace: namespace, token: token, side: produce}) }
}

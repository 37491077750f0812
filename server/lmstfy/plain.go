package lmstfy

import (
	"bytes"
	"net/http"
	"net/textproto"
	"strings"
)

// Plain requests are those that a conn serves itself. Their form is narrow on
// purpose: a GET, PUT or DELETE of HTTP/1.1 below /api/, with a path that needs
// no decoding, headers in the strict form of RFC 9112, one Host, at most one
// Content-Length and no word about transfer codings, expectations or closing.
// What is not of this form is not judged here: net/http gets it, untouched, and
// with it the connection. So a byte that this parser takes means to it what it
// means to net/http (FuzzPlain holds that), and no refusal has two sources.

const (
	// maxPlainHead bounds request line and headers, in bytes.
	maxPlainHead = 4 << 10
	// maxPlainBody bounds the body, in bytes.
	maxPlainBody = 64 << 10
)

// plainRequest is a plain request in the bytes where it was received. Its slices
// are parts of them.
type plainRequest struct {
	method string
	target []byte      // path and query
	path   int         // length of the path in target
	token  []byte      // the first X-Token
	header http.Header // nil unless there are headers of attributes
	body   []byte
	size   int // of the whole request, in bytes; 0 while the head is not complete

	hosts, lengths, tokens int // how many of these headers there were
	length                 int // of the body
}

// plainVerdict is what parse says of the bytes received so far.
type plainVerdict uint8

const (
	plainMore  plainVerdict = iota // it may be one, but is not complete
	plainWhole                     // it is one
	plainOther                     // for net/http
)

var plainStarts = [...]struct {
	method string
	start  []byte
}{
	{http.MethodGet, []byte("GET /api/")},
	{http.MethodPut, []byte("PUT /api/")},
	{http.MethodDelete, []byte("DELETE /api/")},
}

var plainVersion = []byte(" HTTP/1.1")

// parse judges the request at the beginning of b. After plainMore it is to be
// called again with more of the same bytes; once p.size is not 0, so many.
func (p *plainRequest) parse(b []byte) plainVerdict {
	*p = plainRequest{}
	rest, v := p.requestLine(b)
	for v == plainWhole {
		var line []byte
		if line, rest, v = cutLine(rest); v != plainWhole {
			break
		}
		if len(line) == 0 {
			return p.finish(b, rest)
		}
		if !p.headerLine(line) {
			return plainOther
		}
	}
	if v == plainMore && len(b) >= maxPlainHead {
		return plainOther
	}
	return v
}

// cutLine takes one line, which must end in CR and LF.
func cutLine(b []byte) (line, rest []byte, v plainVerdict) {
	i := bytes.IndexByte(b, '\n')
	switch {
	case i < 0:
		return nil, b, plainMore
	case i == 0 || b[i-1] != '\r':
		return nil, b, plainOther
	}
	return b[:i-1], b[i+1:], plainWhole
}

func (p *plainRequest) requestLine(b []byte) (rest []byte, v plainVerdict) {
	v = plainOther
	for i := range plainStarts {
		s := &plainStarts[i]
		if bytes.HasPrefix(b, s.start) {
			p.method, v = s.method, plainWhole
			break
		}
		if bytes.HasPrefix(s.start, b) {
			v = plainMore
		}
	}
	if v != plainWhole {
		return b, v
	}
	line, rest, v := cutLine(b)
	if v != plainWhole {
		return b, v
	}
	target, ok := bytes.CutSuffix(line[len(p.method)+1:], plainVersion)
	if !ok {
		return b, plainOther
	}
	p.target, p.path = target, len(target)
	for i, c := range target {
		switch {
		case i > p.path:
			// net/url takes any other byte in a query as it is.
			if c <= ' ' || c >= 0x7f || c == '#' {
				return b, plainOther
			}
		case c == '?':
			p.path = i
		case !isPlainPath[c]:
			return b, plainOther
		}
	}
	return rest, plainWhole
}

// headerLine takes one header; false means that the request is not plain.
func (p *plainRequest) headerLine(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return false
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	for _, c := range name {
		if !isToken[c] {
			return false
		}
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	switch {
	case is(name, "Host"):
		p.hosts++
		for _, c := range value {
			if !isPlainHost[c] {
				return false
			}
		}
		return p.hosts == 1 && len(value) > 0
	case is(name, "Content-Length"):
		p.lengths++
		if p.lengths > 1 || len(value) == 0 || len(value) > len("99999") {
			return false
		}
		for _, c := range value {
			if c < '0' || c > '9' {
				return false
			}
			p.length = 10*p.length + int(c-'0')
		}
		return p.length <= maxPlainBody
	case is(name, "Connection"):
		return is(value, "keep-alive")
	case is(name, "Transfer-Encoding"), is(name, "Trailer"), is(name, "Expect"), is(name, "Upgrade"):
		return false
	case is(name, "X-Token"):
		if p.tokens++; p.tokens == 1 {
			p.token = value
		}
	case is(name, "Enable-Job-Version"), len(name) >= len(attributePrefix) && is(name[:len(attributePrefix)], attributePrefix):
		if p.header == nil {
			p.header = make(http.Header)
		}
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		p.header[key] = append(p.header[key], string(value))
	}
	return true
}

// finish takes the body from what follows the head in b.
func (p *plainRequest) finish(b, rest []byte) plainVerdict {
	head := len(b) - len(rest)
	if p.hosts == 0 || head > maxPlainHead {
		return plainOther
	}
	p.size = head + p.length
	if len(b) < p.size {
		return plainMore
	}
	p.body = b[head:p.size]
	return plainWhole
}

// is compares a name without regard to case.
func is(name []byte, want string) bool {
	return len(name) == len(want) && strings.EqualFold(string(name), want)
}

var (
	isPlainPath = bytesOf("-_.~,:/" + alphanumeric)
	isPlainHost = bytesOf("-_.:[]" + alphanumeric)
	isToken     = bytesOf("!#$%&'*+-.^_`|~" + alphanumeric)
)

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func bytesOf(s string) (set [256]bool) {
	for i := range len(s) {
		set[s[i]] = true
	}
	return set
}

package lmstfy

import (
	"net/url"
	"strconv"
	"strings"
)

// queryValue is the first value of name in a raw query. Names are
// case-sensitive and a badly escaped pair counts as absent, as in the net/url
// package, whose map is too dear for every request.
func queryValue(raw, name string) (value string, ok bool) {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if strings.IndexByte(pair, ';') >= 0 {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		if key != name {
			if strings.IndexByte(key, '%') < 0 && strings.IndexByte(key, '+') < 0 {
				continue
			}
			if key, err := url.QueryUnescape(key); err != nil || key != name {
				continue
			}
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			continue
		}
		return value, true
	}
	return "", false
}

// query reads the parameters of a request, up to the first one that is refused.
type query struct {
	raw     string
	refusal string // lmstfy's text, "" if there is none
}

// number reads an unsigned decimal of so many bits; absent is the default, an
// empty value is none. Signs and underscores are refused.
func (q *query) number(name string, bits int, absent uint64) uint64 {
	if q.refusal != "" {
		return 0
	}
	value, given := queryValue(q.raw, name)
	if !given {
		return absent
	}
	n, err := strconv.ParseUint(value, 10, bits)
	q.refuse(err != nil, "invalid "+name)
	return n
}

// refuse says why the request is refused, unless something before it is why.
func (q *query) refuse(bad bool, why string) {
	if bad && q.refusal == "" {
		q.refusal = why
	}
}

// limit is that of a dead letter command.
func (q *query) limit() int64 {
	limit := int64(q.number("limit", 63, 1))
	q.refuse(limit < 1, "invalid limit")
	return limit
}

// publishOptions are what a publish says in its query.
type publishOptions struct {
	delay, ttl uint32 // seconds
	tries      uint16
}

func publishQuery(raw string, d defaults) (o publishOptions, refusal string) {
	q := query{raw: raw}
	o.delay = uint32(q.number("delay", 32, uint64(d.delay)))
	o.ttl = uint32(q.number("ttl", 32, uint64(d.ttl)))
	q.refuse(o.ttl > 0 && o.ttl < o.delay, "ttl is shorter than delay")
	o.tries = uint16(q.number("tries", 16, uint64(d.tries)))
	q.refuse(o.tries == 0, "tries shouldn't be zero")
	return o, q.refusal
}

// maxConsumeCount bounds a batch.
const maxConsumeCount = 100

// consumeOptions are what a consume says in its query.
type consumeOptions struct {
	ttr, timeout uint32 // seconds
	count        int
}

func consumeQuery(raw string, d defaults) (o consumeOptions, refusal string) {
	q := query{raw: raw}
	o.ttr = uint32(q.number("ttr", 32, uint64(d.ttr)))
	o.timeout = uint32(q.number("timeout", 32, uint64(d.timeout)))
	o.count = int(q.number("count", 32, 1))
	q.refuse(o.count < 1 || o.count > maxConsumeCount, "invalid count")
	return o, q.refusal
}

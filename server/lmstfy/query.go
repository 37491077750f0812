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

// number reads an unsigned decimal of so many bits; absent is the default, an
// empty value is none. Signs and underscores are refused.
func number(raw, name string, bits int, absent uint64) (n uint64, ok bool) {
	value, given := queryValue(raw, name)
	if !given {
		return absent, true
	}
	n, err := strconv.ParseUint(value, 10, bits)
	return n, err == nil
}

// publishOptions are what a publish says in its query.
type publishOptions struct {
	delay, ttl uint32 // seconds
	tries      uint16
}

// publishQuery reads them. refusal is lmstfy's text, "" if there is none.
func publishQuery(raw string, d defaults) (o publishOptions, refusal string) {
	delay, ok := number(raw, "delay", 32, uint64(d.delay))
	if !ok {
		return o, "invalid delay"
	}
	ttl, ok := number(raw, "ttl", 32, uint64(d.ttl))
	if !ok {
		return o, "invalid ttl"
	}
	if ttl > 0 && ttl < delay {
		return o, "ttl is shorter than delay"
	}
	tries, ok := number(raw, "tries", 16, uint64(d.tries))
	if !ok {
		return o, "invalid tries"
	}
	if tries == 0 {
		return o, "tries shouldn't be zero"
	}
	return publishOptions{uint32(delay), uint32(ttl), uint16(tries)}, ""
}

// maxConsumeCount bounds a batch.
const maxConsumeCount = 100

// consumeOptions are what a consume says in its query.
type consumeOptions struct {
	ttr, timeout uint32 // seconds
	count        int
}

// consumeQuery reads them.
func consumeQuery(raw string, d defaults) (o consumeOptions, refusal string) {
	ttr, ok := number(raw, "ttr", 32, uint64(d.ttr))
	if !ok {
		return o, "invalid ttr"
	}
	timeout, ok := number(raw, "timeout", 32, uint64(d.timeout))
	if !ok {
		return o, "invalid timeout"
	}
	count, ok := number(raw, "count", 32, 1)
	if !ok || count < 1 || count > maxConsumeCount {
		return o, "invalid count"
	}
	return consumeOptions{uint32(ttr), uint32(timeout), int(count)}, ""
}

// limitQuery reads the limit of a dead letter command.
func limitQuery(raw string) (limit int64, refusal string) {
	n, ok := number(raw, "limit", 63, 1)
	if !ok || n < 1 {
		return 0, "invalid limit"
	}
	return int64(n), ""
}

package migrate

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"pawl/state"
)

// How lmstfy keeps its jobs in Redis. Numbers are 2 bytes, little endian.
//
//	j/NS/Q/ID       string  the body; its time to live is the job's
//	q/NS/Q          list    ready; new ones at the left: tries, length, ID
//	d/NS/Q          list    dead letter; likewise, tries is 1
//	timer_set       zset    delayed and in work; score is the second when it is due:
//	                        length, NS, length, Q, tries, length, ID
//	tk/POOL/NS      hash    token to description
//	__throttler_keys__ hash POOL/NS/TOKEN to {"read","write","interval"}
//
// An ID of 27 characters has a version in front; its body is a protocol buffer:
// field 1 the body, field 2 a map of attributes.
const (
	timerKey    = "timer_set"
	limitersKey = "__throttler_keys__"
)

// maxScore is the latest second that a timer's entry is taken for: lmstfy's
// delays end within 136 years.
const maxScore = 1 << 36

var errEntry = errors.New("entry is not of lmstfy's layout")

// entry is what lists and timer hold of a job.
type entry struct {
	namespace, queue, id string
	tries                uint16
	due                  time.Time // zero: not in the timer
}

// cutNumber takes 2 bytes off b.
func cutNumber(b string) (n int, rest string, err error) {
	if len(b) < 2 {
		return 0, "", errEntry
	}
	return int(binary.LittleEndian.Uint16([]byte(b[:2]))), b[2:], nil
}

// cutString takes a length and so many bytes off b.
func cutString(b string) (s, rest string, err error) {
	n, b, err := cutNumber(b)
	if err != nil || len(b) < n {
		return "", "", errEntry
	}
	return b[:n], b[n:], nil
}

// parseListed reads an entry of a ready list or a dead letter.
func parseListed(b string) (e entry, err error) {
	tries, b, err := cutNumber(b)
	if err != nil {
		return e, err
	}
	id, rest, err := cutString(b)
	if err != nil || rest != "" || id == "" {
		return e, errEntry
	}
	return entry{id: id, tries: uint16(tries)}, nil
}

// parseTimed reads a member of the timer.
func parseTimed(b string) (e entry, err error) {
	if e.namespace, b, err = cutString(b); err != nil {
		return e, err
	}
	if e.queue, b, err = cutString(b); err != nil {
		return e, err
	}
	listed, err := parseListed(b)
	if err != nil {
		return e, err
	}
	e.id, e.tries = listed.id, listed.tries
	return e, nil
}

// readLmstfy reads the dead letters first, then what is ready, then the timer:
// an entry that moves meanwhile is met twice rather than not at all, and its
// second copy is left out by its key.
func readLmstfy(ctx context.Context, c *redis.Client, im *importer) error {
	for _, from := range []struct {
		prefix string
		dead   bool
	}{{"d/", true}, {"q/", false}} {
		var keys []string
		if err := scan(ctx, c, from.prefix+"*", "list", func(key string) error {
			keys = append(keys, key)
			return nil
		}); err != nil {
			return err
		}
		sort.Strings(keys)
		for _, key := range keys {
			part := strings.Split(key, "/")
			if len(part) != 3 {
				im.report.Unreadable++
				continue
			}
			err := im.fromRight(ctx, c, key, func(page []string) error {
				entries := make([]entry, 0, len(page))
				for _, text := range page {
					e, err := parseListed(text)
					if err != nil {
						im.report.Unreadable++
						continue
					}
					e.namespace, e.queue = part[1], part[2]
					entries = append(entries, e)
				}
				return im.bodies(ctx, c, entries, from.dead)
			})
			if err != nil {
				return err
			}
		}
	}
	return readTimer(ctx, c, im)
}

// readTimer reads the latest page first: what comes due meanwhile leaves the timer
// at its other end, and moves nothing that is still to be read.
func readTimer(ctx context.Context, c *redis.Client, im *importer) error {
	for end := int64(-1); ; end -= batchJobs {
		page, err := c.ZRangeWithScores(ctx, timerKey, end-batchJobs+1, end).Result()
		if wrongType(err) {
			im.report.Unreadable++
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the timer: %w", err)
		}
		entries := make([]entry, 0, len(page))
		for _, z := range page {
			text, ok := z.Member.(string)
			e, err := parseTimed(text)
			if !ok || err != nil {
				im.report.Unreadable++
				continue
			}
			if !(z.Score >= 0 && z.Score <= maxScore) { // NaN too
				im.report.Unreadable++
				continue
			}
			e.due = time.Unix(int64(z.Score), 0)
			entries = append(entries, e)
		}
		if err := im.bodies(ctx, c, entries, false); err != nil {
			return err
		}
		if len(page) < batchJobs {
			return nil
		}
	}
}

// reasonLastTry is for a job that was in work without tries left: lmstfy would
// have moved it to its dead letter when its time was over.
const reasonLastTry = "was in work on its last try at the import"

// bodies fetches the bodies of a page of entries and adds the jobs.
func (im *importer) bodies(ctx context.Context, c *redis.Client, entries []entry, dead bool) error {
	if len(entries) == 0 {
		return nil
	}
	gets := make([]*redis.StringCmd, len(entries))
	ttls := make([]*redis.DurationCmd, len(entries))
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, e := range entries {
			key := "j/" + e.namespace + "/" + e.queue + "/" + e.id
			gets[i], ttls[i] = p.Get(ctx, key), p.PTTL(ctx, key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !wrongType(err) {
		return fmt.Errorf("read bodies: %w", err)
	}
	for i, e := range entries {
		body, err := gets[i].Bytes()
		if errors.Is(err, redis.Nil) {
			im.report.Gone++
			continue
		}
		if wrongType(err) {
			im.report.Unreadable++
			continue
		}
		if err != nil {
			return fmt.Errorf("read the body of %.40q: %w", e.id, err)
		}
		j := job{
			Queue: []byte(im.options.Pool + "/" + e.namespace + "/" + e.queue),
			Key:   "lmstfy/" + e.id,
			Tries: max(1, e.tries), // none is no limit here
			Dead:  dead,
		}
		if j.Dead {
			j.Reason, j.Tries = "dead in lmstfy", 1
		}
		if ttl := ttls[i].Val(); ttl > 0 {
			j.TTLMs = max(1, ttl.Milliseconds())
		}
		if !e.due.IsZero() {
			j.DelayMs = max(0, time.Until(e.due).Milliseconds())
			if e.tries == 0 {
				j.Dead, j.Reason, j.Tries, j.DelayMs = true, reasonLastTry, 1, 0
			}
		}
		j.Payload, j.Attrs = decodeBody(e.id, body)
		if err := im.add(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// decodeBody takes body and attributes of a job with a version apart. A body that
// turns out to be no protocol buffer is taken as it is.
func decodeBody(id string, body []byte) (payload []byte, attrs []attribute) {
	if len(id) != state.JobIDLen+1 {
		return body, nil
	}
	for rest := body; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 || kind != protowire.BytesType {
			return body, nil
		}
		rest = rest[n:]
		value, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			return body, nil
		}
		rest = rest[n:]
		switch field {
		case 1:
			payload = value
		case 2:
			a, ok := decodeAttribute(value)
			if !ok {
				return body, nil
			}
			attrs = append(attrs, a)
		default:
			return body, nil
		}
	}
	if len(attrs) == 0 {
		attrs = []attribute{{Name: "", Value: "1"}} // the mark of a version without attributes
	}
	sort.Slice(attrs, func(i, j int) bool { return attrs[i].Name < attrs[j].Name })
	return payload, attrs
}

func decodeAttribute(b []byte) (a attribute, ok bool) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.BytesType {
			return a, false
		}
		b = b[n:]
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return a, false
		}
		b = b[n:]
		switch field {
		case 1:
			a.Name = string(value)
		case 2:
			a.Value = string(value)
		}
	}
	return a, true
}

// readTokens reads tokens and limiters of all pools.
func readTokens(ctx context.Context, c *redis.Client, im *importer) error {
	limits := map[string]*limit{} // by POOL/NS/TOKEN
	all, err := c.HGetAll(ctx, limitersKey).Result()
	if wrongType(err) {
		im.report.Unreadable++
	} else if err != nil {
		return fmt.Errorf("read the limiters: %w", err)
	}
	for key, text := range all {
		l := new(limit)
		if strings.Count(key, "/") < 2 || json.Unmarshal([]byte(text), l) != nil {
			im.report.Unreadable++
			continue
		}
		limits[key] = l
	}
	err = scan(ctx, c, "tk/*", "hash", func(key string) error {
		part := strings.Split(key, "/")
		if len(part) != 3 {
			im.report.Unreadable++
			return nil
		}
		tokens, err := c.HGetAll(ctx, key).Result()
		if err != nil {
			return fmt.Errorf("read tokens %.100q: %w", key, err)
		}
		for text, description := range tokens {
			if description == "" {
				description = "imported"
			}
			at := part[1] + "/" + part[2] + "/" + text
			im.tokens = append(im.tokens, token{part[2], joinToken(part[1], text), description, limits[at]})
			delete(limits, at)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key, l := range limits { // a limiter needs no token
		part := strings.SplitN(key, "/", 3)
		im.tokens = append(im.tokens, token{part[1], joinToken(part[0], part[2]), "", l})
	}
	sort.Slice(im.tokens, func(i, j int) bool {
		a, b := im.tokens[i], im.tokens[j]
		return a.Namespace+"/"+a.Token < b.Namespace+"/"+b.Token
	})
	return nil
}

func joinToken(pool, token string) string {
	if pool == state.DefaultPool {
		return token
	}
	return pool + ":" + token
}

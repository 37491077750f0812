package lmstfy

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"pawl/engine"
	"pawl/state"
)

// Replies are JSON with keys in alphabetical order, <, > and & escaped, and no
// line feed at the end.

var jsonType = []string{"application/json; charset=utf-8"}

// retryAfter is what a client waits after a 503, in seconds.
const retryAfter = "1"

// send replies with status and c.reply.
func (c *call) send(status int) error {
	c.status = status
	return c.peer.reply(c)
}

// error replies {"error":text}.
func (c *call) error(status int, text string) {
	c.reply = appendString(append(c.reply[:0], `{"error":`...), text)
	c.reply = append(c.reply, '}')
	c.send(status)
}

// message replies {"msg":text}.
func (c *call) message(status int, text string) {
	c.reply = appendString(append(c.reply[:0], `{"msg":`...), text)
	c.reply = append(c.reply, '}')
	c.send(status)
}

// unavailable says that trying again later will help.
func (c *call) unavailable(text string) {
	c.retryAfter = true
	c.error(http.StatusServiceUnavailable, text)
}

// tooMany is the refusal of the rate limiter.
func (c *call) tooMany() {
	c.message(http.StatusTooManyRequests, "token("+c.token+") "+c.side.String()+" reach the limit rate, please retry later")
}

// sizeReply is the reply of the two size routes.
func (c *call) sizeReply(n int64) {
	b := append(c.reply[:0], `{"namespace":`...)
	b = appendString(b, c.namespace)
	b = append(b, `,"queue":`...)
	b = appendString(b, c.queue)
	b = append(b, `,"size":`...)
	b = strconv.AppendInt(b, n, 10)
	c.reply = append(b, '}')
	c.send(http.StatusOK)
}

// shownJob is a job as consume and peek show it.
type shownJob struct {
	id          state.JobID
	namespace   string
	queue       string
	payload     []byte
	attrs       []engine.Attr
	remainTries uint16
	ttlLeft     state.Millis // 0 is no expiry
	msg         bool         // consume has a msg, peek has not
	elapsed     int64        // ms since the publish
}

// append appends the object.
func (j *shownJob) append(b []byte) []byte {
	b = append(b, `{"attributes":`...)
	b = appendAttributes(b, j.attrs)
	b = append(b, `,"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, j.payload)
	b = append(b, `","elapsed_ms":`...)
	b = strconv.AppendInt(b, j.elapsed, 10)
	b = append(b, `,"job_id":"`...)
	b = appendJobID(b, j.id, versioned(j.attrs))
	b = append(b, '"')
	if j.msg {
		b = append(b, `,"msg":"new job"`...)
	}
	b = append(b, `,"namespace":`...)
	b = appendString(b, j.namespace)
	b = append(b, `,"queue":`...)
	b = appendString(b, j.queue)
	b = append(b, `,"remain_tries":`...)
	b = strconv.AppendUint(b, uint64(j.remainTries), 10)
	b = append(b, `,"ttl":`...)
	b = strconv.AppendInt(b, roundSeconds(j.ttlLeft), 10)
	return append(b, '}')
}

// roundSeconds rounds to nearest, halves up, as lmstfy does: a ttl of 10 reads 10
// right after the publish.
func roundSeconds(ms state.Millis) int64 { return int64((ms + 500) / 1000) }

// unlimitedTries is shown for a job without a limit, which only other protocols
// can make.
const unlimitedTries = 65535

// triesLeft is what remains of tries after so many failures and deliveries in
// hand.
func triesLeft(tries uint16, used uint32) uint16 {
	switch {
	case tries == 0:
		return unlimitedTries
	case used >= uint32(tries):
		return 0
	}
	return tries - uint16(used)
}

// elapsedMillis is the age of a job by its ID, 0 for one from the future.
func elapsedMillis(id state.JobID, now time.Time) int64 {
	return max(0, now.UnixMilli()-int64(id.Wall()))
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil { // cannot happen: every string has a JSON form
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

package resp

import (
	"strconv"

	"github.com/tidwall/redcon"
)

// writer encodes replies. What RESP2 and RESP3 say alike is redcon's; the
// shapes that only RESP3 has are chosen by the connection's protocol.
type writer struct {
	buf   []byte
	resp3 bool
	errs  int // error replies written
}

func (w *writer) ok()                 { w.buf = redcon.AppendOK(w.buf) }
func (w *writer) simple(text string)  { w.buf = redcon.AppendString(w.buf, text) }
func (w *writer) integer(n int64)     { w.buf = redcon.AppendInt(w.buf, n) }
func (w *writer) array(n int)         { w.buf = redcon.AppendArray(w.buf, n) }
func (w *writer) bulk(b []byte)       { w.buf = redcon.AppendBulk(w.buf, b) }
func (w *writer) bulkString(s string) { w.buf = redcon.AppendBulkString(w.buf, s) }

// fail is one error line; text is one line already, see errorLine.
func (w *writer) fail(text string) {
	w.errs++
	w.buf = redcon.AppendError(w.buf, text)
}

// null is nothing: a null bulk string in RESP2.
func (w *writer) null() {
	if w.resp3 {
		w.buf = append(w.buf, "_\r\n"...)
		return
	}
	w.buf = redcon.AppendNull(w.buf)
}

// mapHeader begins n pairs: a flat array in RESP2.
func (w *writer) mapHeader(n int) {
	if w.resp3 {
		w.header('%', n)
		return
	}
	w.array(2 * n)
}

// set begins n different elements: an array in RESP2.
func (w *writer) set(n int) {
	if w.resp3 {
		w.header('~', n)
		return
	}
	w.array(n)
}

func (w *writer) header(kind byte, n int) {
	w.buf = append(w.buf, kind)
	w.buf = strconv.AppendInt(w.buf, int64(n), 10)
	w.buf = append(w.buf, '\r', '\n')
}

// text is a human-readable block such as INFO's: verbatim in RESP3, so that
// redis-cli prints its lines.
func (w *writer) text(s string) {
	if !w.resp3 {
		w.bulkString(s)
		return
	}
	w.header('=', len(s)+4)
	w.buf = append(w.buf, "txt:"...)
	w.buf = append(w.buf, s...)
	w.buf = append(w.buf, '\r', '\n')
}

// pair is a name and an integer, the most frequent element of maps.
func (w *writer) pair(name string, n int64) {
	w.bulkString(name)
	w.integer(n)
}

func (w *writer) pairString(name, value string) {
	w.bulkString(name)
	w.bulkString(value)
}

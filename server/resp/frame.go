package resp

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/tidwall/redcon"
)

// Wire limits of Moxy's contract, and ours beside them.
const (
	maxElements     = 1024     // of one command
	maxHeaderBytes  = 4096     // of a header line behind its type byte, with CR LF
	maxInlineBytes  = 64 << 10 // of an inline command
	minDroppedBytes = 64 << 20 // a frame up to here is read to its end although it is refused

	// Before login (CVE-2021-32675 and the like).
	maxStrangerElements = 10
	maxStrangerBulk     = 16 << 10
	maxStrangerBytes    = 64 << 10
	// Whoever floods the server with commands that are refused takes processor
	// time from those who work.
	maxStrangerCommands = 1000
)

// verdict is what a framer says about the bytes it was shown.
type verdict uint8

const (
	needMore  verdict = iota // the command is not complete
	isCommand                // a whole array of bulk strings
	isInline                 // a whole line
	isRefused                // a whole value that is no command; answer text, go on
	isFatal                  // the stream cannot be followed any more; answer text, close
	isForeign                // another protocol; close without an answer
)

// framer finds where the next command in a stream ends, without recursion,
// without looking at a byte twice, and without believing in any length that is
// announced: it judges every header as soon as it is there, and it says when
// bytes need not be kept because the answer is known.
//
// The zero value with the limits set begins at a command.
type framer struct {
	bulkBytes    int64 // limit of one bulk string
	keepBytes    int64 // limit of a whole command
	droppedBytes int64 // limit of what is read although it is refused
	stranger     bool  // the limits before login hold

	at      int    // bytes of the shown buffer that were looked at
	size    int64  // bytes of this frame, dropped ones too
	left    int64  // values to come, nested ones too
	body    int64  // bytes to come of the present bulk string and its CR LF
	inFrame bool   // between the first and the last byte of a command
	inline  bool   // the frame is an inline command
	refusal string // not empty: the frame is only read to its end
	first   bool   // the next header is the frame's first
}

// Refusals and fatal errors, as Moxy says them.
const (
	errArguments   = "ERR invalid arguments"
	errNotArray    = "ERR expected array command"
	errElements    = "ERR command elements must be bulk strings"
	errTooLarge    = "ERR RESP value too large"
	errCRLF        = "ERR malformed RESP value: missing CRLF"
	errBulkCRLF    = "ERR malformed RESP value: missing bulk CRLF"
	errBulkEnd     = "ERR malformed RESP value: missing bulk terminator"
	errArrayLength = "ERR malformed RESP value: invalid array length"
	errBulkLength  = "ERR malformed RESP value: invalid bulk length"
	errInteger     = "ERR malformed RESP value: invalid integer"

	errPayloadTooLarge = "TOOLARGE payload is over the limit"
	errCommandTooLarge = "TOOLARGE command is over the limit"
	errInlineTooLarge  = "ERR Protocol error: too big inline request"
	errQuotes          = "ERR Protocol error: unbalanced quotes in request"
	errStrangerArray   = "ERR Protocol error: unauthenticated multibulk length"
	errStrangerMany    = "ERR Protocol error: too many commands before login"
	errStrangerBulk    = "ERR Protocol error: unauthenticated bulk length"
)

// next looks at buf, which begins at the first byte that was not taken yet, and
// says what is there. The caller takes n bytes off the front, also when more
// are needed: a frame that is refused already is not kept.
func (f *framer) next(buf []byte) (n int, v verdict, text string) {
	if !f.inFrame {
		if len(buf) == 0 {
			return 0, needMore, ""
		}
		switch c := buf[0]; {
		case isType(c):
			f.left, f.first = 1, true
		case beginsInline(c):
			f.inline = true
		default:
			return 0, isFatal, errUnknownType(c)
		}
		f.inFrame = true
	}
	if f.inline {
		return f.nextLine(buf)
	}
	for f.left > 0 {
		ok, fatal := false, ""
		if f.body > 0 {
			ok, fatal = f.skipBody(buf)
		} else {
			ok, fatal = f.readHeader(buf)
		}
		if fatal != "" {
			return 0, isFatal, fatal
		}
		if !ok {
			if f.refusal == "" {
				return 0, needMore, ""
			}
			n, f.at = f.at, 0
			return n, needMore, ""
		}
	}
	n, text = f.at, f.refusal
	f.reset()
	if text != "" {
		return n, isRefused, text
	}
	return n, isCommand, ""
}

func (f *framer) reset() {
	f.at, f.size, f.left, f.body = 0, 0, 0, 0
	f.inFrame, f.inline, f.refusal = false, false, ""
}

// nextLine is next for an inline command.
func (f *framer) nextLine(buf []byte) (n int, v verdict, text string) {
	limit := maxInlineBytes
	if f.stranger {
		limit = maxStrangerBulk
	}
	end := bytes.IndexByte(buf[f.at:min(len(buf), limit)], '\n')
	if end < 0 {
		f.at = min(len(buf), limit)
		if f.at == limit {
			return 0, isFatal, errInlineTooLarge
		}
		return 0, needMore, ""
	}
	n = f.at + end + 1
	f.reset()
	if isHTTP(buf[:n]) {
		return n, isForeign, ""
	}
	return n, isInline, ""
}

// skipBody passes the rest of a bulk string. ok is false when it is not there.
func (f *framer) skipBody(buf []byte) (ok bool, fatal string) {
	if n := min(int64(len(buf)-f.at), f.body-2); n > 0 {
		f.at += int(n)
		f.body -= n
	}
	for f.body > 0 && f.body <= 2 && f.at < len(buf) {
		if buf[f.at] != "\n\r"[f.body-1] {
			return false, errBulkCRLF
		}
		f.at++
		f.body--
	}
	if f.body > 0 {
		return false, ""
	}
	f.left--
	return true, ""
}

// readHeader judges the header line at f.at. ok is false when it is not
// complete.
func (f *framer) readHeader(buf []byte) (ok bool, fatal string) {
	line := buf[f.at:]
	if len(line) == 0 {
		return false, ""
	}
	kind := line[0]
	if !isType(kind) {
		return false, errUnknownType(kind)
	}
	line = line[1:min(len(line), 1+maxHeaderBytes)]
	end := bytes.IndexByte(line, '\n')
	if end < 0 {
		if len(line) == maxHeaderBytes {
			return false, errTooLarge
		}
		return false, ""
	}
	if end == 0 || line[end-1] != '\r' {
		return false, errCRLF
	}
	text := line[:end-1]
	f.at += end + 2
	f.size += int64(end) + 2
	if f.size > f.droppedBytes {
		return false, errTooLarge
	}
	first := f.first
	f.first = false
	if first && kind != '*' {
		f.refuse(errNotArray)
	}
	switch kind {
	case '*':
		return f.arrayHeader(text, first)
	case '$':
		return f.bulkHeader(text)
	case ':':
		if _, ok := parseInt(text); !ok {
			return false, errInteger
		}
	}
	// An integer, a simple string or an error is no element of a command.
	f.refuse(errElements)
	f.left--
	return true, ""
}

func (f *framer) arrayHeader(text []byte, first bool) (ok bool, fatal string) {
	n, ok := parseInt(text)
	switch {
	case !ok || n < 0:
		return false, errArrayLength
	case n > maxElements:
		return false, errTooLarge
	case f.stranger && f.left-1+n > maxStrangerElements:
		return false, errStrangerArray
	case !first:
		f.refuse(errElements)
	case n == 0:
		f.refuse(errArguments)
	}
	f.left += n - 1
	return true, ""
}

func (f *framer) bulkHeader(text []byte) (ok bool, fatal string) {
	n, ok := parseInt(text)
	switch {
	case !ok || n < -1:
		return false, errBulkLength
	case n == -1:
		f.refuse(errElements)
		f.left--
		return true, ""
	case n > f.droppedBytes || f.size+n+2 > f.droppedBytes:
		return false, errTooLarge
	case f.stranger && (n > maxStrangerBulk || f.size+n+2 > maxStrangerBytes):
		return false, errStrangerBulk
	case n > f.bulkBytes:
		f.refuse(errPayloadTooLarge)
	case f.size+n+2 > f.keepBytes:
		f.refuse(errCommandTooLarge)
	}
	f.size += n + 2
	f.body = n + 2
	return true, ""
}

// refuse settles the answer of the frame; the first reason stays.
func (f *framer) refuse(text string) {
	if f.refusal == "" {
		f.refusal = text
	}
}

// end is what to say when the stream ends here; empty is nothing.
func (f *framer) end(buf []byte) string {
	switch {
	case !f.inFrame || f.inline:
		return ""
	case f.body > 0:
		return errBulkEnd
	case len(buf) > f.at:
		return errCRLF // inside a header line
	}
	return ""
}

func isType(c byte) bool {
	return c == '*' || c == '$' || c == '+' || c == '-' || c == ':'
}

// beginsInline says whether c can be the first byte of a line that a person
// types. Anything else, TLS for example, is answered as Moxy does.
func beginsInline(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		c == '\r' || c == '\n' || c == ' ' || c == '\t' || c == '"' || c == '\''
}

func errUnknownType(c byte) string {
	return fmt.Sprintf("ERR malformed RESP value: unknown type byte %q", rune(c))
}

// isHTTP says whether a line comes from a browser that was tricked into sending
// here: a request line or the Host header.
func isHTTP(line []byte) bool {
	if len(line) >= 5 && equalFold(line[:5], "HOST:") {
		return true
	}
	verb, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok {
		return false
	}
	switch string(verb) {
	case "POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PRI":
		return bytes.Contains(rest, []byte("HTTP/")) || string(verb) == "POST" || bytes.HasPrefix(rest, []byte{'/'})
	}
	return false
}

var errMalformed = errors.New("malformed command")

// splitCommand gives the arguments of a whole frame, as slices of it (of a line:
// as copies); args is reused. redcon's reader can panic on lengths that are wrong, so that the
// framer has judged every length before, and a panic is an error all the same.
func splitCommand(packet []byte, args [][]byte) (out [][]byte, err error) {
	if len(packet) > 0 && packet[0] != '*' {
		return splitInline(packet, args)
	}
	defer func() {
		if recover() != nil {
			out, err = args[:0], errMalformed
		}
	}()
	complete, out, _, rest, err := redcon.ReadNextCommand(packet, args)
	if err == nil && (!complete || len(rest) != 0) {
		err = errMalformed
	}
	return out, err
}

// parseInt reads a base 10 integer as strconv.ParseInt does, without making a
// string of it: a sign is taken, white space and the empty text are not.
func parseInt(text []byte) (n int64, ok bool) {
	digits, negative := text, false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' || u > math.MaxUint64/10-1 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if negative {
		if u > 1<<63 {
			return 0, false
		}
		return -int64(u), true
	}
	if u > math.MaxInt64 {
		return 0, false
	}
	return int64(u), true
}

// equalFold says whether text is word in any case of letters; word is upper
// case.
func equalFold(text []byte, word string) bool {
	if len(text) != len(word) {
		return false
	}
	for i, c := range text {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

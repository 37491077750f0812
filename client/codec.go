package client

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// appendCommand appends one command as an array of bulk strings.
func appendCommand(dst []byte, args ...string) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(args)), 10)
	dst = append(dst, '\r', '\n')
	for _, a := range args {
		dst = append(dst, '$')
		dst = strconv.AppendInt(dst, int64(len(a)), 10)
		dst = append(dst, '\r', '\n')
		dst = append(dst, a...)
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// Kind is the type of a Value.
type Kind uint8

// The kinds of replies. The zero value is Null.
const (
	Null Kind = iota
	Status
	Failure
	Integer
	Bulk
	Array
	Map
	Bool
)

// Value is one reply. Only what its Kind says is set.
type Value struct {
	Kind  Kind
	Int   int64   // Integer; Bool: 0 or 1
	Text  string  // Status, Failure (the whole line), Bulk
	Elems []Value // Array; Map: names and values in turn
}

// Err is the *Error of a Failure, else nil.
func (v Value) Err() error {
	if v.Kind == Failure {
		return parseError(v.Text)
	}
	return nil
}

// Number is the value of an Integer, or of a Bulk or Status that holds one; 0
// otherwise.
func (v Value) Number() int64 {
	if v.Kind == Integer || v.Kind == Bool {
		return v.Int
	}
	n, _ := strconv.ParseInt(v.Text, 10, 64)
	return n
}

// Field is the value behind name in a Map, or in an Array of names and values;
// Null when it is not there.
func (v Value) Field(name string) Value {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Text == name {
			return v.Elems[i+1]
		}
	}
	return Value{}
}

// Strings are the texts of an array's elements.
func (v Value) Strings() []string {
	texts := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		texts[i] = e.Text
	}
	return texts
}

// Limits of a reply. A daemon never comes near them; something else on the port
// might.
const (
	maxLine  = 64 << 10
	maxBulk  = 512 << 20
	maxElems = 1 << 20
	maxDepth = 16
)

// reader takes replies from a stream.
type reader struct{ in *bufio.Reader }

func newReader(r io.Reader) *reader { return &reader{bufio.NewReaderSize(r, 16<<10)} }

// read gives the next reply. After any error the stream is of no use.
func (r *reader) read() (Value, error) { return r.value(0) }

func (r *reader) value(depth int) (Value, error) {
	line, err := r.line()
	if err != nil {
		return Value{}, err
	}
	if len(line) == 0 {
		return Value{}, fmt.Errorf("%w: an empty line", ErrProtocol)
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return Value{Kind: Status, Text: string(rest)}, nil
	case '-':
		return Value{Kind: Failure, Text: string(rest)}, nil
	case '_':
		return Value{}, nil
	case '#':
		v := Value{Kind: Bool}
		if string(rest) == "t" {
			v.Int = 1
		}
		return v, nil
	case ',', '(': // doubles and big numbers stay text
		return Value{Kind: Bulk, Text: string(rest)}, nil
	}
	n, err := strconv.ParseInt(string(rest), 10, 64)
	if err != nil {
		return Value{}, fmt.Errorf("%w: %.40q", ErrProtocol, line)
	}
	switch {
	case kind == ':':
		return Value{Kind: Integer, Int: n}, nil
	case (kind == '$' || kind == '*') && n == -1:
		return Value{}, nil
	case (kind == '$' || kind == '=') && n >= 0 && n <= maxBulk:
		text, err := r.bulk(int(n))
		if kind == '=' && len(text) >= 4 {
			text = text[4:] // of a verbatim string, "txt:"
		}
		return Value{Kind: Bulk, Text: text}, err
	case (kind == '*' || kind == '~' || kind == '%') && n >= 0 && n <= maxElems && depth < maxDepth:
		v := Value{Kind: Array}
		if kind == '%' {
			v.Kind, n = Map, 2*n
		}
		for range n {
			e, err := r.value(depth + 1)
			if err != nil {
				return Value{}, err
			}
			v.Elems = append(v.Elems, e)
		}
		return v, nil
	}
	return Value{}, fmt.Errorf("%w: %.40q", ErrProtocol, line)
}

// line is the next line without its end; it is good until the next read.
func (r *reader) line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := append([]byte(nil), line...)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) < maxLine {
			line, err = r.in.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("%w: a line over %d bytes", ErrProtocol, maxLine)
	}
	if err != nil {
		return nil, err
	}
	if n := len(line); n >= 2 && line[n-2] == '\r' {
		return line[:n-2], nil
	}
	return nil, fmt.Errorf("%w: a line without CR LF", ErrProtocol)
}

func (r *reader) bulk(n int) (string, error) {
	// Memory follows what arrives, not what is announced.
	body := make([]byte, 0, min(n+2, 1<<20))
	for len(body) < n+2 {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		chunk := body[len(body):min(cap(body), n+2)]
		got, err := io.ReadFull(r.in, chunk)
		body = body[:len(body)+got]
		if err != nil {
			return "", err
		}
	}
	if string(body[n:]) != "\r\n" {
		return "", fmt.Errorf("%w: a bulk string without its end", ErrProtocol)
	}
	return string(body[:n]), nil
}

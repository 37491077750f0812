package resp

import "errors"

var errUnbalanced = errors.New("unbalanced quotes")

// splitInline gives the arguments of a line as a person types it, by the rules of
// Redis (sdssplitargs): words between white space; in double quotes \n \r \t \b
// \a \xHH and any other byte behind a backslash stands for itself; in single
// quotes only \' does; a quote may open inside a word, and what closes it ends the
// word. The arguments are copies, args is reused.
func splitInline(line []byte, args [][]byte) ([][]byte, error) {
	args = args[:0]
	for at := 0; ; {
		for at < len(line) && isSpace(line[at]) {
			at++
		}
		if at == len(line) {
			return args, nil
		}
		word, n, ok := inlineWord(line[at:])
		if !ok {
			return args[:0], errUnbalanced
		}
		args = append(args, word)
		at += n
	}
}

// inlineWord reads the word at the front of line, n bytes long.
func inlineWord(line []byte) (word []byte, n int, ok bool) {
	word = []byte{}
	quote := byte(0)
	for ; n < len(line); n++ {
		c := line[n]
		switch {
		case quote == 0 && isSpace(c) && c != '\v' && c != '\f': // those end a quote, not a word
			return word, n, true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			n++
			return word, n, n == len(line) || isSpace(line[n])
		case quote == '"' && c == '\\' && n+1 < len(line):
			value, size := unescape(line[n+1:])
			word = append(word, value)
			n += size
		case quote == '\'' && c == '\\' && n+1 < len(line) && line[n+1] == '\'':
			word = append(word, '\'')
			n++
		default:
			word = append(word, c)
		}
	}
	return word, n, quote == 0
}

// unescape gives the byte that the text behind a backslash stands for, and how
// long that text is.
func unescape(text []byte) (value byte, size int) {
	switch text[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	case 'x':
		if len(text) >= 3 {
			high, isHex := hexDigit(text[1])
			low, isHexToo := hexDigit(text[2])
			if isHex && isHexToo {
				return high<<4 | low, 3
			}
		}
	}
	return text[0], 1
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// isSpace is C's.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

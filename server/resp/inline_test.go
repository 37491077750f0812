package resp_test

import (
	"fmt"
	"testing"

	"pawl/server/resp"
)

// Lines are split as Redis splits them: 200,000 random lines of such pieces gave the
// same words in redis-server 7.0.15, or the same refusal.
func TestInlineWords(t *testing.T) {
	for _, tc := range []struct{ name, line, want string }{
		{"words", "a  b\tc", `["a" "b" "c"]`},
		{"nothing", " \t\v\f ", `[]`},
		{"a line end", "a b\r", `["a" "b"]`},
		{"empty words", `a "" ''`, `["a" "" ""]`},
		{"letters behind a backslash", `"\n\r\t\b\a"`, `["\n\r\t\b\a"]`},
		{"hexadecimal bytes", `"\x00\xfF\x41z"`, `["\x00\xffAz"]`},
		{"half of one", `"\x4" "\x" "\x4g"`, `["x4" "x" "x4g"]`},
		{"anything else stands for itself", `"\q\\\"\'"`, `["q\\\"'"]`},
		{"single quotes", `'\n\x41\'"'`, `["\\n\\x41'\""]`},
		{"no quotes, no meaning", `\n\x41`, `["\\n\\x41"]`},
		{"a quote inside a word", `foo"b ar"`, `["foob ar"]`},
		{"and one that does not end it", `foo"bar"baz`, ""},
		{"nor at the end of another", `"a""b"`, ""},
		{"white space in quotes", "\"a\vb\"\f'c d'", `["a\vb" "c d"]`},
		{"what white space does not end a word", "a\vb\f \vc", `["a\vb\f" "c"]`},
		{"bytes", "\"\xff\xfe\" \xc3\xa9", `["\xff\xfe" "é"]`},
		{"an open quote", `"a`, ""},
		{"an open single quote", `'a\'`, ""},
		{"a backslash at the end", `"a\`, ""},
		{"a quote at the end", `a "`, ""},
	} {
		args, err := resp.SplitCommand([]byte(tc.line + "\n"))
		if got := fmt.Sprintf("%q", args); err == nil && got != tc.want || err != nil && tc.want != "" {
			t.Errorf("%s: %s\ngot  %s, %v\nwant %s", tc.name, tc.line, got, err, tc.want)
		}
	}
}

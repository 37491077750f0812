package resp

import (
	"fmt"
	"strings"
)

// argument is one argument of a command as COMMAND DOCS describes it.
type argument struct {
	name     string
	kind     string // string, integer, pattern, pure-token, oneof, block
	token    string
	optional bool
	multiple bool
	parts    []argument // of oneof and block
}

// parseSyntax reads the syntax of a row of the table:
//
//	sequence = { item }
//	item     = ( word | "[" sequence { "|" sequence } "]" ) [ "…" ]
//	word     = UPPER, a token, or lower, a value; or several with "|" between
func parseSyntax(syntax string) ([]argument, error) {
	p := syntaxParser{rest: syntax}
	args, err := p.sequence()
	if err == nil && p.rest != "" {
		err = fmt.Errorf("unexpected %q", p.rest)
	}
	return args, err
}

type syntaxParser struct{ rest string }

func (p *syntaxParser) skip() { p.rest = strings.TrimLeft(p.rest, " ") }

func (p *syntaxParser) sequence() (args []argument, err error) {
	for p.skip(); p.rest != "" && p.rest[0] != ']' && p.rest[0] != '|'; p.skip() {
		a, err := p.item()
		if err != nil {
			return nil, err
		}
		// A token belongs to the value behind it.
		if n := len(args); n > 0 && args[n-1].kind == "pure-token" && a.token == "" && !a.optional && a.kind != "pure-token" {
			a.token = args[n-1].token
			if a.kind != "oneof" {
				a.name = args[n-1].name
			}
			args[n-1] = a
			continue
		}
		args = append(args, a)
	}
	return args, nil
}

func (p *syntaxParser) item() (a argument, err error) {
	if p.rest[0] != '[' {
		end := strings.IndexAny(p.rest, " []…")
		if end < 0 {
			end = len(p.rest)
		}
		a = wordArgument(p.rest[:end])
		p.rest = p.rest[end:]
	} else {
		p.rest = p.rest[1:]
		var choices []argument
		for {
			args, err := p.sequence()
			if err != nil {
				return a, err
			}
			if len(args) == 0 {
				return a, fmt.Errorf("nothing before %q", p.rest)
			}
			choices = append(choices, group("block", args))
			if p.rest == "" {
				return a, fmt.Errorf("a bracket is open")
			}
			closed := p.rest[0] == ']'
			p.rest = p.rest[1:]
			if closed {
				break
			}
		}
		a = group("oneof", choices)
		a.optional = true
	}
	if rest, ok := strings.CutPrefix(p.rest, "…"); ok {
		a.multiple, p.rest = true, rest
	}
	return a, nil
}

// group makes one argument of several.
func group(kind string, args []argument) argument {
	if len(args) == 1 {
		return args[0]
	}
	return argument{name: args[0].name, kind: kind, parts: args}
}

func wordArgument(word string) argument {
	if choices := strings.Split(word, "|"); len(choices) > 1 {
		a := argument{name: lower(choices[0]), kind: "oneof"}
		for _, choice := range choices {
			a.parts = append(a.parts, argument{name: lower(choice), kind: "pure-token", token: choice})
		}
		return a
	}
	if word == strings.ToUpper(word) {
		return argument{name: lower(word), kind: "pure-token", token: word}
	}
	a := argument{name: word, kind: "string"}
	switch word {
	case "ms", "n", "unix-ms", "timeout_ms", "count", "bits", "index":
		a.kind = "integer"
	case "glob", "pattern":
		a.kind = "pattern"
	}
	return a
}

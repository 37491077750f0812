package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"pawl/client"
)

// printJSON prints one value on one line.
func printJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// addJSON adds --json to a subcommand that needs no daemon.
func addJSON(fs *pflag.FlagSet) *bool { return fs.Bool("json", false, jsonUsage) }

const jsonUsage = "print as JSON, for scripts"

// valueJSON is a reply for printJSON: maps become objects in the daemon's
// order, bytes that are no text become {"base64": …}.
func valueJSON(v client.Value) any {
	switch v.Kind {
	case client.Integer:
		return v.Int
	case client.Bool:
		return v.Int != 0
	case client.Null:
		return nil
	case client.Array:
		list := make([]any, len(v.Elems))
		for i, e := range v.Elems {
			list[i] = valueJSON(e)
		}
		return list
	case client.Map:
		return object(v.Elems)
	}
	return textJSON(v.Text)
}

func textJSON(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(s))}
}

// object is names and values in turn, in order.
type object []client.Value

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i := 0; i+1 < len(o); i += 2 {
		if i > 0 {
			buf.WriteByte(',')
		}
		if err := printJSON(&buf, o[i].Text); err != nil {
			return nil, err
		}
		buf.Truncate(buf.Len() - 1) // the encoder's line end
		buf.WriteByte(':')
		value := valueJSON(o[i+1])
		if o[i].Text == "attrs" { // names and values in an array, as Moxy's replies are
			value = object(o[i+1].Elems)
		}
		if err := printJSON(&buf, value); err != nil {
			return nil, err
		}
		buf.Truncate(buf.Len() - 1)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// printValue prints a reply for people: a map as two columns, maps in it
// indented.
func printValue(w io.Writer, v client.Value) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	printFields(table, v, "")
	table.Flush()
}

func printFields(w io.Writer, v client.Value, indent string) {
	if v.Kind != client.Map {
		fmt.Fprintf(w, "%s%s\n", indent, inline(v))
		return
	}
	for i := 0; i+1 < len(v.Elems); i += 2 {
		name, value := v.Elems[i].Text, v.Elems[i+1]
		if value.Kind == client.Map && len(value.Elems) > 0 {
			fmt.Fprintf(w, "%s%s\t\n", indent, name)
			printFields(w, value, indent+"  ")
			continue
		}
		text := inline(value)
		if isTime(name) && value.Kind == client.Integer {
			text = timeText(value.Int)
		}
		fmt.Fprintf(w, "%s%s\t%s\n", indent, name, text)
	}
}

// isTime says whether a field's number is Unix milliseconds.
func isTime(name string) bool {
	return strings.HasSuffix(name, "_at") || name == "deadline" || strings.HasSuffix(name, "_until") || name == "next" || name == "last"
}

// timeText is Unix milliseconds for people; 0 is none.
func timeText(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04:05.000")
}

// inline is a value on one line.
func inline(v client.Value) string {
	switch v.Kind {
	case client.Null:
		return "-"
	case client.Integer:
		return strconv.FormatInt(v.Int, 10)
	case client.Bool:
		return strconv.FormatBool(v.Int != 0)
	case client.Array, client.Map:
		parts := make([]string, len(v.Elems))
		for i, e := range v.Elems {
			parts[i] = inline(e)
		}
		return strings.Join(parts, " ")
	}
	return printable(v.Text, 0)
}

// printable makes bytes safe for a terminal, and cuts them to limit characters
// when limit is above 0.
func printable(s string, limit int) string {
	clean := utf8.ValidString(s)
	n := 0
	for _, r := range s {
		n++
		clean = clean && (unicode.IsPrint(r) || r == ' ')
	}
	if !clean {
		s = strconv.Quote(s)
		n = utf8.RuneCountInString(s)
	}
	if limit > 0 && n > limit {
		return string([]rune(s)[:limit-1]) + "…"
	}
	return s
}

// newTable starts a table with a heading.
func newTable(w io.Writer, heading ...string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row(t, heading...)
	return t
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }

// age is a span of milliseconds for people.
func age(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case ms == 0:
		return "-"
	case d < time.Second:
		return d.String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

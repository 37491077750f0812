package lmstfy

import (
	"net/http"
	"slices"
	"strings"

	"pawl/engine"
	"pawl/state"
)

// Job versions. A publish with the header Enable-Job-Version: YES makes a job of
// version 1: its headers Job-Attr-* become attributes, and its ID is shown with
// the version in front, in 27 characters. A job is of version 1 when it has any
// attribute; one that was published so without attributes of its own has the
// marker, an attribute with an empty name, which is never shown.

const (
	maxAttributes     = 16
	maxAttributeName  = 32  // bytes; the rest is cut
	maxAttributeValue = 128 // bytes; the rest is cut
	attributePrefix   = "Job-Attr-"
	tooManyAttributes = "too many attributes, cannot exceed 16"
)

// versionMarker is the attribute of a version 1 job without attributes.
var versionMarker = engine.Attr{Name: []byte{}, Value: []byte("1")}

// attributes reads the attributes of a publish. Without the version header they
// are dropped. ok is false when there are too many.
func attributes(to []engine.Attr, h http.Header) (attrs []engine.Attr, ok bool) {
	attrs = to[:0]
	v := h["Enable-Job-Version"]
	if len(v) == 0 || !strings.EqualFold(v[0], "YES") {
		return attrs, true
	}
	var merged map[string]string // two long names may be one once cut
	for name, values := range h {
		if !strings.HasPrefix(name, attributePrefix) || len(values) == 0 || values[0] == "" {
			continue
		}
		if merged == nil {
			merged = make(map[string]string)
		}
		short := strings.ToLower(cut(name[len(attributePrefix):], maxAttributeName))
		if before, taken := merged[short]; !taken || name < before {
			merged[short] = name
		}
	}
	if len(merged) > maxAttributes {
		return attrs, false
	}
	for short, name := range merged {
		attrs = append(attrs, engine.Attr{Name: []byte(short), Value: []byte(cut(h[name][0], maxAttributeValue))})
	}
	if len(attrs) == 0 {
		attrs = append(attrs, versionMarker)
	}
	slices.SortFunc(attrs, func(a, b engine.Attr) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return attrs, true
}

func cut(s string, n int) string { return s[:min(n, len(s))] }

// versioned: the job's ID is shown with its version in front.
func versioned(attrs []engine.Attr) bool { return len(attrs) > 0 }

// appendAttributes appends a JSON object sorted by name, or null.
func appendAttributes(b []byte, attrs []engine.Attr) []byte {
	if len(attrs) == 0 || len(attrs) == 1 && len(attrs[0].Name) == 0 {
		return append(b, "null"...)
	}
	byName := func(a, b engine.Attr) int { return strings.Compare(string(a.Name), string(b.Name)) }
	if !slices.IsSortedFunc(attrs, byName) { // other protocols keep their order
		attrs = slices.Clone(attrs)
		slices.SortStableFunc(attrs, byName)
	}
	open := byte('{')
	for i, a := range attrs {
		if len(a.Name) == 0 || i+1 < len(attrs) && string(attrs[i+1].Name) == string(a.Name) {
			continue // the marker; a name that comes again, whose last value counts
		}
		b = append(b, open)
		b = appendString(b, string(a.Name))
		b = append(b, ':')
		b = appendString(b, string(a.Value))
		open = ','
	}
	if open == '{' {
		return append(b, "{}"...)
	}
	return append(b, '}')
}

// jobVersion is what stands in front of the ID of a job with attributes.
const jobVersion = '1'

// appendJobID appends the text of an ID: 26 characters, 27 with a version.
func appendJobID(b []byte, id state.JobID, versioned bool) []byte {
	if versioned {
		b = append(b, jobVersion)
	}
	return id.AppendText(b)
}

// parseJobID reads an ID with or without a version in front, whatever it is.
func parseJobID(text string) (id state.JobID, ok bool) {
	if len(text) == state.JobIDLen+1 {
		text = text[1:]
	}
	id, err := state.ParseJobID([]byte(text))
	return id, err == nil
}

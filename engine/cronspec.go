package engine

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// ErrCronSpec is for a spec or zone that cannot be read, or that never comes.
var ErrCronSpec = errors.New("cron spec or zone is not valid")

// Schedule says when a recurring enqueue is due.
type Schedule struct {
	fields string         // five fields, or empty for every
	zone   *time.Location // of fields
	every  time.Duration
}

// ParseCron reads a spec of five fields (minute, hour, day of month, month, day
// of week; names, lists, ranges and steps allowed), one of @hourly, @daily,
// @weekly, @monthly, @yearly, or @every with a duration of whole seconds such
// as 90s or 1h30m. zone is an IANA name; empty is UTC. The error wraps
// ErrCronSpec.
func ParseCron(spec, zone string) (Schedule, error) {
	loc := time.UTC
	if zone != "" {
		if zone == "Local" {
			return Schedule{}, fmt.Errorf("zone %q depends on the machine: %w", zone, ErrCronSpec)
		}
		var err error
		if loc, err = time.LoadLocation(zone); err != nil {
			return Schedule{}, fmt.Errorf("zone %.64q: %w", zone, ErrCronSpec)
		}
	}
	if len(spec) > maxSpecBytes {
		return Schedule{}, fmt.Errorf("spec of %d bytes: %w", len(spec), ErrCronSpec)
	}
	trimmed := strings.TrimSpace(spec)
	if every, ok := strings.CutPrefix(strings.ToLower(trimmed), "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(every))
		if err != nil || d < time.Second || d%time.Second != 0 || d > maxEvery {
			return Schedule{}, fmt.Errorf("spec %q: %w", spec, ErrCronSpec)
		}
		return Schedule{every: d}, nil
	}
	if fields, ok := named[strings.ToLower(trimmed)]; ok {
		trimmed = fields
	}
	parts := strings.Fields(trimmed)
	if len(parts) != 5 || !gronx.IsValid(trimmed) {
		return Schedule{}, fmt.Errorf("spec %q: %w", spec, ErrCronSpec)
	}
	for _, part := range parts {
		// The library knows dialects (L, W, #) that we do not promise.
		if !fieldForm.MatchString(part) {
			return Schedule{}, fmt.Errorf("spec %q: %w", spec, ErrCronSpec)
		}
	}
	s := Schedule{fields: strings.Join(parts, " "), zone: loc}
	if s.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("spec %q never comes: %w", spec, ErrCronSpec)
	}
	return s, nil
}

const (
	maxSpecBytes = 255
	maxEvery     = 10 * 366 * 24 * time.Hour
)

var named = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
	"@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// fieldForm is a list of values, ranges and stars, each with an optional step.
var fieldForm = regexp.MustCompile(`^` + fieldItem + `(?:,` + fieldItem + `)*$`)

const fieldItem = `(?:\*|(?:\d+|[A-Za-z]{3})(?:-(?:\d+|[A-Za-z]{3}))?)(?:/\d+)?`

// Next is the first slot after t, the zero time when there is none within
// some years. It never gives the same slot twice for ascending t: a local time
// that does not exist is due at the next valid minute, one that comes twice the
// first time only.
func (s Schedule) Next(t time.Time) time.Time {
	if s.every > 0 {
		// Slots of @every are the multiples since 1970, so that they do not
		// depend on when somebody asked.
		e := int64(s.every / time.Second)
		return time.Unix((t.Unix()/e+1)*e, 0).UTC()
	}
	// The search runs on the local calendar written as if it were UTC, where
	// no hour is missing and none comes twice.
	local := t.In(s.zone)
	calendar := time.Date(local.Year(), local.Month(), local.Day(),
		local.Hour(), local.Minute(), local.Second(), 0, time.UTC)
	for range 2000 {
		next, err := gronx.NextTickAfter(s.fields, calendar, false)
		if err != nil || !next.After(calendar) {
			return time.Time{}
		}
		calendar = next
		if at := onClock(next, s.zone); at.After(t) {
			return at.UTC()
		}
	}
	return time.Time{}
}

// onClock is the moment at which a calendar time comes in zone: the first of
// two, or the end of the gap that swallows it.
func onClock(calendar time.Time, zone *time.Location) time.Time {
	at := time.Date(calendar.Year(), calendar.Month(), calendar.Day(),
		calendar.Hour(), calendar.Minute(), calendar.Second(), 0, zone)
	same := func(t time.Time) bool {
		return t.Hour() == calendar.Hour() && t.Minute() == calendar.Minute() && t.Day() == calendar.Day()
	}
	start, end := at.ZoneBounds()
	if !same(at) {
		// In a gap time.Date may land on either side of it; the gap is the
		// nearer bound.
		if !end.IsZero() && (start.IsZero() || end.Sub(at) < at.Sub(start)) {
			return end
		}
		return start
	}
	if !start.IsZero() {
		// The same reading just before the last change came first.
		_, after := at.Zone()
		_, before := start.Add(-time.Second).Zone()
		if earlier := at.Add(time.Duration(after-before) * time.Second); earlier.Before(start) && same(earlier.In(zone)) {
			return earlier
		}
	}
	return at
}

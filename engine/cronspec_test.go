package engine_test

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata"

	"pawl/engine"
)

func TestScheduleNext(t *testing.T) {
	tests := []struct {
		rule, spec, zone, from string
		want                   []string
	}{
		{"every minute", "* * * * *", "", "2026-11-28T14:50:30Z", []string{"2026-11-28T14:51:00Z", "2026-11-28T14:52:00Z"}},
		{"a slot is after, never at", "0 * * * *", "", "2026-11-28T14:00:00Z", []string{"2026-11-28T15:00:00Z"}},
		{"hourly", "@hourly", "", "2026-11-28T14:50:30Z", []string{"2026-11-28T15:00:00Z"}},
		{"weekday names", "30 9 * * MON-FRI", "", "2026-11-27T09:30:00Z", []string{"2026-11-30T09:30:00Z"}},
		{"day of month or week", "0 0 13 * 5", "", "2026-11-28T00:00:00Z", []string{"2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z"}},
		{"leap day", "0 0 29 2 *", "", "2025-03-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		{"the 31st", "0 0 31 * *", "", "2026-08-31T00:00:00Z", []string{"2026-10-31T00:00:00Z", "2026-12-31T00:00:00Z"}},
		{"interval", "@every 90s", "", "1970-01-01T00:02:00Z", []string{"1970-01-01T00:03:00Z", "1970-01-01T00:04:30Z"}},
		{"zone", "0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", []string{"2026-01-01T03:30:00Z"}},
		// Berlin skips 02:00 to 03:00 on 29 March 2026 (01:00Z).
		{"missing hour fires at its end", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"missing slots fire once", "*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"missing joins the valid minute", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		// Berlin has 02:00 to 03:00 twice on 25 October 2026 (00:00Z, 01:00Z).
		{"double hour fires the first time", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"asked within the second pass", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"hourly over the double hour", "0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"}},
		// Lord Howe moves by half an hour: 02:00 to 02:30 is missing on 4 October 2026 (15:30Z the day before).
		{"half an hour missing", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		// Samoa had no 30 December 2011.
		{"a missing day", "0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", []string{"2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
	}
	for _, test := range tests {
		s, err := engine.ParseCron(test.spec, test.zone)
		if err != nil {
			t.Errorf("%s: %v", test.rule, err)
			continue
		}
		at, err := time.Parse(time.RFC3339, test.from)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			at = s.Next(at)
			if got := at.Format(time.RFC3339); got != want {
				t.Errorf("%s: got %s, want %s", test.rule, got, want)
				break
			}
		}
	}
}

// Slots rise strictly whatever moment is asked about, around every change.
func TestScheduleNeverRepeats(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"} {
		s, err := engine.ParseCron("*/7 * * * *", zone)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2017, 10, 1, 0, 0, 0, 0, time.UTC)
		for range 400 {
			next := s.Next(at)
			if !next.After(at) || next.Sub(at) > 70*time.Minute {
				t.Fatalf("%s: after %v comes %v", zone, at, next)
			}
			if between := s.Next(next.Add(-time.Second)); !between.Equal(next) {
				t.Fatalf("%s: a second before %v the next is %v", zone, next, between)
			}
			at = next.Add(13 * time.Minute)
		}
	}
}

func TestParseCronRefuses(t *testing.T) {
	tests := []struct{ rule, spec, zone string }{
		{"empty", "", ""},
		{"four fields", "* * * *", ""},
		{"six fields", "0 * * * * *", ""},
		{"unknown name", "@sometimes", ""},
		{"minute out of range", "60 * * * *", ""},
		{"nothing after the step", "*/ * * * *", ""},
		{"a day that never comes", "0 0 31 2 *", ""},
		{"last-day dialect", "0 0 L * *", ""},
		{"interval too short", "@every 10ms", ""},
		{"interval of part seconds", "@every 1500ms", ""},
		{"interval backwards", "@every -1h", ""},
		{"unknown zone", "* * * * *", "Mars/Olympus"},
		{"the machine's zone", "* * * * *", "Local"},
		{"a path for a zone", "* * * * *", "../../etc/passwd"},
		{"long spec", "0" + string(make([]byte, 300)), ""},
	}
	for _, test := range tests {
		if _, err := engine.ParseCron(test.spec, test.zone); !errors.Is(err, engine.ErrCronSpec) {
			t.Errorf("%s: got %v, want ErrCronSpec", test.rule, err)
		}
	}
}

package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size. Its text is a number with an optional unit: B, KiB, MiB,
// GiB, TiB, or KB, MB, GB, TB for the powers of ten; K, M, G, T are powers of
// two. Upper and lower case mean the same.
type Bytes int64

var units = []struct {
	name string
	size int64
}{
	{"TIB", 1 << 40}, {"GIB", 1 << 30}, {"MIB", 1 << 20}, {"KIB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1},
}

// ParseBytes reads the text of a size. Negative and fractional ones are
// errors, and so is what does not fit 63 bits.
func ParseBytes(s string) (Bytes, error) {
	number, factor := strings.ToUpper(strings.TrimSpace(s)), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is no size such as 64MiB", s)
	}
	if int64(n) > math.MaxInt64/factor {
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return Bytes(int64(n) * factor), nil
}

// String is the shortest exact text: 64MiB, 1500B, 0.
func (b Bytes) String() string {
	if b == 0 {
		return "0"
	}
	for _, u := range units[:4] {
		if int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name[:1] + "iB"
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Set implements pflag.Value.
func (b *Bytes) Set(s string) (err error) {
	*b, err = ParseBytes(s)
	return err
}

// Type implements pflag.Value.
func (b *Bytes) Type() string { return "size" }

// Sync says when the log is synced. Zero is always: an OK means on disk. Above
// zero is the longest time that acknowledged work stays unsynced. SyncNever
// leaves it to the operating system.
type Sync time.Duration

// SyncNever never syncs.
const SyncNever Sync = -1

// String is always, never or a duration.
func (s Sync) String() string {
	switch {
	case s == 0:
		return "always"
	case s < 0:
		return "never"
	}
	return time.Duration(s).String()
}

// Set implements pflag.Value.
func (s *Sync) Set(text string) error {
	switch text {
	case "always":
		*s = 0
		return nil
	case "never":
		*s = SyncNever
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > time.Minute {
		return errors.New("want always, never, or a time from 1ms to 1m such as 100ms")
	}
	*s = Sync(d)
	return nil
}

// Type implements pflag.Value.
func (s *Sync) Type() string { return "when" }

// level adapts slog.Level to a flag.
type level struct{ *slog.Level }

func (l level) String() string { return strings.ToLower(l.Level.String()) }

func (l level) Set(s string) error {
	switch strings.ToLower(s) {
	case "debug", "info", "warn", "error":
		return l.UnmarshalText([]byte(s))
	}
	return errors.New("want debug, info, warn or error")
}

func (l level) Type() string { return "level" }

// choice is a string out of a few.
type choice struct {
	value *string
	among []string
}

func (c choice) String() string { return *c.value }

func (c choice) Set(s string) error {
	for _, one := range c.among {
		if s == one {
			*c.value = s
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.among, " or "))
}

func (c choice) Type() string { return strings.Join(c.among, "|") }

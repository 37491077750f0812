package lmstfy

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

// accessLog writes a line a request while it is on.
type accessLog struct {
	on  atomic.Bool
	log *slog.Logger // nil without a writer
}

func newAccessLog(w io.Writer, asJSON, on bool) *accessLog {
	a := &accessLog{}
	a.on.Store(on)
	switch {
	case w == nil:
	case asJSON:
		a.log = slog.New(slog.NewJSONHandler(w, nil))
	default:
		a.log = slog.New(slog.NewTextHandler(w, nil))
	}
	return a
}

// write logs a finished call. Of the query only the parameters that say nothing
// secret are left, for a token may stand there.
func (a *accessLog) write(c *call, elapsed time.Duration) {
	if a.log == nil || !a.on.Load() {
		return
	}
	attrs := []slog.Attr{
		slog.String("id", string(c.id[:])),
		slog.String("method", c.method),
		slog.String("path", clip(c.path)),
		slog.Int("status", c.status),
		slog.Float64("ms", float64(elapsed)/float64(time.Millisecond)),
		slog.String("remote", c.remote),
		slog.String("pool", c.pool),
		slog.Int("reply_bytes", len(c.reply)),
	}
	for _, name := range loggedParameters {
		if v, ok := queryValue(c.query, name); ok {
			attrs = append(attrs, slog.String(name, clip(v)))
		}
	}
	a.log.LogAttrs(context.Background(), slog.LevelInfo, "access", attrs...)
}

var loggedParameters = []string{"delay", "ttl", "tries", "ttr", "timeout", "count", "limit"}

// clip bounds what a client can put into one line.
func clip(s string) string { return s[:min(len(s), 512)] }

package main

import (
	"io"
	"log/slog"
	"os"

	"pawl/config"
)

// newLogger makes the daemon's log. Its level can be changed while it runs.
// Under a service manager that stamps lines itself, text lines have no time.
func newLogger(w io.Writer, c *config.Config, level *slog.LevelVar) *slog.Logger {
	level.Set(c.LogLevel)
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	if os.Getenv("JOURNAL_STREAM") != "" {
		o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		}
	}
	return slog.New(slog.NewTextHandler(w, o))
}

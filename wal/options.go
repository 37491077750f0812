package wal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"pawl/internal/vfs"
)

// SyncPolicy is when Commit waits for the disk.
type SyncPolicy uint8

const (
	// SyncAlways: every group is durable when Commit returns.
	SyncAlways SyncPolicy = iota
	// SyncInterval: at most Options.Interval of groups may be lost with the power.
	SyncInterval
	// SyncNever: the system decides; only a full generation is synced.
	SyncNever
)

const (
	// DefaultGenerationBytes is 4 MiB: the log library keeps a segment in memory
	// and grows it by append, which stalls one write by about 4 ms a MiB.
	DefaultGenerationBytes = 4 << 20
	// MinGenerationBytes is for tests.
	MinGenerationBytes = 16 << 10
	// MaxGenerationBytes keeps offsets in 32 bits with room to spare.
	MaxGenerationBytes = 1 << 30
)

// Options are passed by value; the zero value of a field is its default.
type Options struct {
	FS  vfs.FS // vfs.OS{}
	Dir string // holds the generations and nothing else; must exist and be locked by the caller

	// GenerationBytes is the size of a generation's segment file. A command that
	// does not fit into one gets a larger generation made for it.
	GenerationBytes int // DefaultGenerationBytes
	// Ahead is how many generations are kept prepared.
	Ahead int // 2
	// CacheBytes of written groups, beside the generation being written, are
	// kept in memory for Read, in whole generations.
	CacheBytes int // 4 MiB; negative is none

	Sync     SyncPolicy    // SyncAlways
	Interval time.Duration // for SyncInterval: 1 s
	// IdleAfter is how long after the last group the idle marker is written. It
	// is synced when ten times that and more, at least 1 s, stay quiet.
	IdleAfter time.Duration // 50 ms
	// RetryEvery is how often a failed preparation is tried again.
	RetryEvery time.Duration // 500 ms

	// Foreground does without goroutines: generations are prepared by the calls
	// that need them, and idle markers are written by Idle only. With it a run is
	// a function of its calls. For tests and tools.
	Foreground bool
	// Random is where salts come from. Foreign eyes must not be able to guess it.
	Random io.Reader // crypto/rand
	// Notify is told when a preparation fails for the first time, with the cause,
	// and with nil when one succeeds again. It must not call the Log.
	Notify func(error)
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.GenerationBytes == 0 {
		o.GenerationBytes = DefaultGenerationBytes
	}
	if o.Ahead == 0 {
		o.Ahead = 2
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 4 << 20
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.IdleAfter == 0 {
		o.IdleAfter = 50 * time.Millisecond
	}
	if o.RetryEvery == 0 {
		o.RetryEvery = 500 * time.Millisecond
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Notify == nil {
		o.Notify = func(error) {}
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Dir == "":
		return errors.New("wal: no directory")
	case o.GenerationBytes < MinGenerationBytes || o.GenerationBytes > MaxGenerationBytes:
		return fmt.Errorf("wal: generation size %d is not within %d and %d", o.GenerationBytes, MinGenerationBytes, MaxGenerationBytes)
	case o.Ahead < 1:
		return fmt.Errorf("wal: %d generations ahead, want at least 1", o.Ahead)
	case o.Sync > SyncNever:
		return fmt.Errorf("wal: sync policy %d is unknown", o.Sync)
	case o.Interval < 0, o.IdleAfter < 0, o.RetryEvery < 0:
		return errors.New("wal: a duration is negative")
	}
	return nil
}

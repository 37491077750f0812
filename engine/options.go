package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options of an engine. The zero value of each field is its default.
type Options struct {
	// MaxPayload bounds a job's payload in bytes. Default 1 MiB, at most 64 MiB.
	MaxPayload int
	// MaxQueues, MaxGroups, MaxCrons and MaxMeta bound how many there may be.
	// Defaults 1,000,000, 1,000,000, 10,000 and 100,000.
	MaxQueues, MaxGroups, MaxCrons, MaxMeta int
	// MaxWaiters bounds the fetchers that wait at the same time. Default 10,000.
	MaxWaiters int
	// MaxPending and MaxPendingBytes bound what waits for the disk: commands,
	// and bytes of groups that are not durable. Beyond them commands are held
	// back; once the disk has not answered for a second they are refused with
	// ErrBusy. Defaults 100,000 and 64 MiB.
	MaxPending      int
	MaxPendingBytes int64
	// MaxMemory refuses new jobs with ErrNoMemory once the state takes that many
	// bytes. 0 is no limit.
	MaxMemory int64
	// MaxDisk refuses new jobs with ErrNoSpace once log and snapshots take that
	// many bytes. 0 is no limit.
	MaxDisk int64

	// SnapshotBytes is how many bytes of log are written between snapshots, or an
	// eighth of the last snapshot where that is more. Default 256 MiB.
	// SnapshotInterval, when not 0, makes one that often if anything was written at
	// all.
	SnapshotBytes    int64
	SnapshotInterval time.Duration
	// SnapshotRate is how many bytes a second of a snapshot, a backup's too, are
	// written, and then read back, as long as the log does not grow by SnapshotBytes
	// meanwhile. 0 is as fast as the disk takes them.
	SnapshotRate int64
	// Keep is how long a generation of the log stays after nothing needs it any
	// more. Default 0.
	Keep time.Duration

	// MeasureCPU keeps the processor time of stays in the critical section too,
	// which costs two system calls a stay.
	MeasureCPU bool

	// Logger gets one line per event an operator can act on. Default: none.
	Logger *slog.Logger
}

const (
	defaultPayload       = 1 << 20
	maxPayload           = 64 << 20
	defaultSnapshotBytes = 256 << 20
	defaultWaiters       = 10_000
)

func (o Options) withDefaults() Options {
	setDefault(&o.MaxPayload, defaultPayload)
	setDefault(&o.MaxQueues, 1_000_000)
	setDefault(&o.MaxGroups, 1_000_000)
	setDefault(&o.MaxCrons, 10_000)
	setDefault(&o.MaxMeta, 100_000)
	setDefault(&o.MaxWaiters, defaultWaiters)
	setDefault(&o.MaxPending, 100_000)
	setDefault(&o.MaxPendingBytes, 64<<20)
	setDefault(&o.SnapshotBytes, defaultSnapshotBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate is for options with defaults.
func (o Options) validate() error {
	switch {
	case o.MaxPayload < 1 || o.MaxPayload > maxPayload:
		return fmt.Errorf("max payload is not within 1 to %d bytes", maxPayload)
	case o.MaxQueues < 1, o.MaxGroups < 1, o.MaxCrons < 1, o.MaxMeta < 1, o.MaxWaiters < 1, o.MaxPending < 1, o.MaxPendingBytes < 1:
		return errors.New("a limit is not positive")
	case o.MaxMemory < 0, o.MaxDisk < 0, o.SnapshotBytes < 0, o.SnapshotRate < 0, o.SnapshotInterval < 0, o.Keep < 0:
		return errors.New("a limit is negative")
	}
	return nil
}

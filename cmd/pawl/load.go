package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"pawl/client"
)

func loadCommand() subcommand {
	return subcommand{
		name: "load", args: "[FILE]", summary: "enqueue jobs from JSON lines; safe to repeat and to resume", group: groupJobs,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("load")
			l := &loading{e: e}
			fs.StringVar(&l.queue, "queue", "", "queue of the jobs that name none")
			fs.StringVar(&l.key, "key", "", "field of a JSON payload that identifies it; else each line has its own \"unique\", or none")
			fs.BoolVar(&l.keyByContent, "key-by-content", false, "a line's own bytes are its key: equal lines are one job")
			fs.DurationVar(&l.keyFor, "key-for", 24*time.Hour, "how long a key holds at least: repeat within this time")
			fs.IntVar(&l.batch, "batch", 500, "jobs in one round trip")
			fs.StringVar(&l.resume, "resume", "", "keep the place in this file, and go on from there")
			fs.BoolVar(&l.dryRun, "dry-run", false, "read and check all lines, enqueue nothing")
			fs.BoolVar(&l.quiet, "quiet", false, "no progress")
			l.remote = addRemote(e, fs)
			l.remote.addJSON()
			return fs, l.run
		},
	}
}

// loading is pawl load.
type loading struct {
	e             *env
	remote        *remote
	queue         string
	key           string
	keyByContent  bool
	keyFor        time.Duration
	batch         int
	resume        string
	dryRun, quiet bool

	size int64 // of the file, 0 when it is not known

	Lines      int64 `json:"lines"`
	Enqueued   int64 `json:"enqueued"`
	Duplicates int64 `json:"duplicates"`
	Skipped    int64 `json:"skipped"` // by --resume
}

// maxLine bounds a line: a payload of 1 MiB as base64, with room to spare.
const maxLine = 16 << 20

func (l *loading) run(ctx context.Context, args []string) error {
	if err := wantArgs(args, 0, 1); err != nil {
		return err
	}
	if l.batch < 1 || l.batch > 10000 {
		return usagef("--batch: want 1 to 10000")
	}
	if l.key != "" && l.keyByContent {
		return usagef("--key and --key-by-content at once")
	}
	in := l.e.stdin
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return withExit(exitIO, err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			l.size = info.Size()
		}
		in = f
	} else if l.resume != "" {
		return usagef("--resume needs a file, standard input cannot be read twice")
	}
	c, err := l.remote.client()
	if err != nil {
		return err
	}
	defer c.Close()
	err = l.load(ctx, c, in)
	if !l.quiet {
		clearLine(l.e)
	}
	if err != nil {
		if l.Enqueued > 0 {
			fmt.Fprintf(l.e.stderr, "enqueued %d jobs before that\n", l.Enqueued)
		}
		return remoteExit(err)
	}
	if l.remote.asJSON {
		return printJSON(l.e.stdout, l)
	}
	verb := "enqueued"
	if l.dryRun {
		verb = "would enqueue"
	}
	fmt.Fprintf(l.e.stdout, "%s %d jobs, %d were there already, %d lines skipped\n", verb, l.Enqueued, l.Duplicates, l.Skipped)
	return nil
}

func (l *loading) load(ctx context.Context, c *client.Client, in io.Reader) error {
	skip, err := l.place()
	if err != nil {
		return err
	}
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), maxLine)
	jobs := make([]client.Job, 0, l.batch)
	var bytesRead int64
	begun, shown := time.Now(), time.Time{}
	flush := func() error {
		if err := l.send(ctx, c, jobs); err != nil {
			return err
		}
		jobs = jobs[:0]
		if !l.quiet && isTerminal(l.e.stderr) && time.Since(shown) > 200*time.Millisecond {
			shown = time.Now()
			l.progress(bytesRead, time.Since(begun))
		}
		return l.keepPlace()
	}
	batchBytes := 0
	for scan.Scan() {
		l.Lines++
		line := scan.Bytes()
		bytesRead += int64(len(line)) + 1
		if l.Lines <= skip {
			l.Skipped++
			continue
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		job, err := l.parse(line)
		if err != nil {
			// What came before the bad line is sent: the place is kept behind it.
			l.Lines--
			if sendErr := flush(); sendErr != nil {
				return sendErr
			}
			return withExit(exitDamaged, fmt.Errorf("line %d: %w", l.Lines+1, err))
		}
		jobs = append(jobs, job)
		batchBytes += len(job.Payload)
		if len(jobs) == l.batch || batchBytes > 4<<20 {
			batchBytes = 0
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := scan.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line %d is longer than %d bytes", l.Lines+1, maxLine)
		}
		return withExit(exitIO, err)
	}
	return flush()
}

// line is one line of the input. A line that is an object with "payload" or
// "payload_base64" has these fields; any other line is the payload itself.
type line struct {
	Queue         string            `json:"queue"`
	Payload       json.RawMessage   `json:"payload"`
	PayloadBase64 *string           `json:"payload_base64"`
	DelayMs       int64             `json:"delay_ms"`
	At            int64             `json:"at"` // Unix milliseconds
	TTLMs         int64             `json:"ttl_ms"`
	Priority      int               `json:"priority"`
	Tries         int               `json:"tries"`
	BackoffMs     int64             `json:"backoff_ms"`
	MaxBackoffMs  int64             `json:"max_backoff_ms"`
	Unique        string            `json:"unique"`
	Group         string            `json:"group"`
	Attrs         map[string]string `json:"attrs"`
}

func (l *loading) parse(text []byte) (client.Job, error) {
	var in line
	job := client.Job{Queue: l.queue}
	var probe map[string]json.RawMessage
	if err := json.Unmarshal(text, &probe); err != nil && !json.Valid(text) {
		return job, fmt.Errorf("no JSON: %w", err)
	}
	_, plain := probe["payload"]
	_, encoded := probe["payload_base64"]
	if !plain && !encoded {
		job.Payload = bytes.Clone(text)
	} else {
		decode := json.NewDecoder(bytes.NewReader(text))
		decode.DisallowUnknownFields()
		if err := decode.Decode(&in); err != nil {
			return job, err
		}
		if in.Queue != "" {
			job.Queue = in.Queue
		}
		var err error
		if job.Payload, err = in.payload(); err != nil {
			return job, err
		}
	}
	if job.Queue == "" {
		return job, errors.New("no queue, here or by --queue")
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	job.Delay, job.TTL, job.Priority, job.Tries = ms(in.DelayMs), ms(in.TTLMs), in.Priority, in.Tries
	job.Backoff, job.MaxBackoff, job.Group, job.Attrs = ms(in.BackoffMs), ms(in.MaxBackoffMs), in.Group, in.Attrs
	if in.At != 0 {
		job.At = time.UnixMilli(in.At)
	}
	return job, l.identify(&job, &in, text)
}

// payload is the text of a JSON string, the bytes of base64, or any other JSON
// value as it stands.
func (in *line) payload() ([]byte, error) {
	if in.PayloadBase64 != nil {
		if in.Payload != nil {
			return nil, errors.New("payload and payload_base64 at once")
		}
		return base64.StdEncoding.DecodeString(*in.PayloadBase64)
	}
	var text string
	if json.Unmarshal(in.Payload, &text) == nil {
		return []byte(text), nil
	}
	return in.Payload, nil
}

// identify gives the job its key, which makes repeating safe.
func (l *loading) identify(job *client.Job, in *line, text []byte) error {
	job.Unique = in.Unique
	switch {
	case l.keyByContent:
		sum := sha256.Sum256(append([]byte(job.Queue+"\x00"), text...))
		job.Unique = hex.EncodeToString(sum[:16])
	case l.key != "":
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(job.Payload, &fields); err != nil {
			return fmt.Errorf("the payload is no object with a field %q", l.key)
		}
		value, ok := fields[l.key]
		if !ok {
			return fmt.Errorf("the payload has no field %q", l.key)
		}
		job.Unique = strings.Trim(string(value), `"`)
	}
	if job.Unique != "" {
		job.UniqueFor = l.keyFor
	}
	return nil
}

// send enqueues one batch, again and again while the daemon is away for a
// moment and all jobs have keys.
func (l *loading) send(ctx context.Context, c *client.Client, jobs []client.Job) error {
	if l.dryRun || len(jobs) == 0 {
		l.Enqueued += int64(len(jobs))
		return nil
	}
	for attempt := 0; ; attempt++ {
		results, err := c.EnqueueAll(ctx, jobs)
		left := jobs[:0:0]
		for i, r := range results {
			var refused *client.Error
			switch {
			case r.Err == nil && r.Duplicate:
				l.Duplicates++
			case r.Err == nil:
				l.Enqueued++
			case errors.As(r.Err, &refused) && refused.Temporary():
				err = r.Err
				left = append(left, jobs[i])
			default:
				return fmt.Errorf("job for %s: %w", printable(jobs[i].Queue, 40), r.Err)
			}
		}
		if err == nil {
			return nil
		}
		if len(left) > 0 {
			jobs = left
		} else if !repeatable(jobs) && errors.Is(err, client.ErrUnknown) {
			return fmt.Errorf("%w; without keys (--key, --key-by-content) repeating could enqueue jobs twice, so it ends here", err)
		}
		// A daemon that was never there is a wrong address; one that went away
		// may come back.
		var connect *client.ConnectError
		if attempt == 20 || ctx.Err() != nil || (errors.As(err, &connect) && l.Enqueued+l.Duplicates == 0) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Duration(attempt+1)*200*time.Millisecond, 3*time.Second)):
		}
	}
}

func repeatable(jobs []client.Job) bool {
	for i := range jobs {
		if jobs[i].Unique == "" {
			return false
		}
	}
	return true
}

// place reads how many lines an earlier run has done.
func (l *loading) place() (int64, error) {
	if l.resume == "" {
		return 0, nil
	}
	data, err := os.ReadFile(l.resume)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, withExit(exitIO, err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil || n < 0 {
		return 0, withExit(exitDamaged, fmt.Errorf("%s holds no place of an earlier run", l.resume))
	}
	return n, nil
}

// keepPlace notes that all lines so far are enqueued. The file is replaced as a
// whole, so that a crash leaves the old place or the new one.
func (l *loading) keepPlace() error {
	if l.resume == "" || l.dryRun {
		return nil
	}
	next := l.resume + ".next"
	if err := writeSynced(next, strconv.FormatInt(l.Lines, 10)+"\n"); err != nil {
		return withExit(exitIO, err)
	}
	return withExit(exitIO, os.Rename(next, l.resume))
}

// writeSynced writes a file that a rename may put in the place of another: what is
// not on the disk before may be empty there after a power loss.
func writeSynced(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Sync()
}

// progress rewrites one line on the terminal.
func (l *loading) progress(done int64, elapsed time.Duration) {
	bar := ""
	if l.size > 0 {
		const width = 30
		part := min(float64(done)/float64(l.size), 1)
		full := int(part * width)
		bar = fmt.Sprintf("[%s%s] %3.0f %%  ", strings.Repeat("=", full), strings.Repeat(" ", width-full), 100*part)
	}
	fmt.Fprintf(l.e.stderr, "\r\x1b[K%s%d lines, %d enqueued, %.0f/s", bar, l.Lines, l.Enqueued, float64(l.Enqueued)/elapsed.Seconds())
}

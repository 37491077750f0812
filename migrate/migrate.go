// Package migrate takes over the jobs that another queue keeps in Redis: those of
// an lmstfy, or of Moxy's Redis backend. It only reads from Redis, and hands the
// jobs in batches to the import route of a running daemon's admin address. Every
// job keeps its old ID as a unique key, so that running it again, after a stop
// half way or to fetch what came later, doubles nothing.
//
//	report, err := migrate.Run(ctx, migrate.Options{Layout: "lmstfy", From: "redis://127.0.0.1:6379"})
package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/state"
)

// Options of a run. From and Layout are required.
type Options struct {
	// Layout is how the source keeps its jobs: "lmstfy" or "moxy".
	Layout string
	// From is the source, as redis://[user:password@]host:port/db.
	From string
	// TokensFrom is the Redis that keeps lmstfy's tokens ([AdminRedis]) when that
	// is another one.
	TokensFrom string
	// Pool is the pool that the jobs go to; empty is default. lmstfy has one
	// Redis a pool. Tokens name their pools themselves.
	Pool string
	// Admin is the daemon's admin address; empty is http://127.0.0.1:7778.
	Admin string
	// User and Password are its login, if it has one.
	User, Password string
	// DryRun reads and checks everything and adds nothing.
	DryRun bool
	// Progress takes a line after each batch; nil is none.
	Progress func(Report)
	// HTTP is for the admin address; nil is http.DefaultClient.
	HTTP *http.Client
}

// Report counts what was found and what became of it.
type Report struct {
	Ready, Delayed, Dead int // jobs found with their bodies, by where they go
	Gone                 int // entries whose body has expired or was deleted
	Unreadable           int // entries that are not of the layout
	Added, Duplicates    int // jobs new here, jobs and tokens that were here
	Tokens, Limits       int // made
	Refused              int // by the daemon
	// Refusals are the first of them, with why.
	Refusals []string
}

// maxRefusals bounds Report.Refusals.
const maxRefusals = 20

// job is one job on its way, in the form of the import route.
type job struct {
	Queue   []byte      `json:"queue"`
	Key     string      `json:"key"`
	Payload []byte      `json:"payload"`
	Dead    bool        `json:"dead,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	DelayMs int64       `json:"delay_ms,omitempty"`
	TTLMs   int64       `json:"ttl_ms,omitempty"`
	Tries   uint16      `json:"tries,omitempty"`
	Attrs   []attribute `json:"attrs,omitempty"`
}

type attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type token struct {
	Namespace   string `json:"namespace"`
	Token       string `json:"token"`
	Description string `json:"description,omitempty"`
	Limit       *limit `json:"limit,omitempty"`
}

type limit struct {
	Read     int64 `json:"read"`
	Write    int64 `json:"write"`
	Interval int64 `json:"interval"`
}

// What Run refuses before it reads anything.
var (
	ErrLayout = errors.New("layout is neither lmstfy nor moxy")
	ErrSource = errors.New("source is not redis://host:port")
)

// Run copies everything and reports it, also what was done before an error.
func Run(ctx context.Context, o Options) (Report, error) {
	read := map[string]func(context.Context, *redis.Client, *importer) error{"lmstfy": readLmstfy, "moxy": readMoxy}[o.Layout]
	if read == nil {
		return Report{}, ErrLayout
	}
	source, err := connect(o.From)
	if err != nil {
		return Report{}, err
	}
	defer source.Close()
	if o.Pool == "" {
		o.Pool = state.DefaultPool
	}
	if o.Admin == "" {
		o.Admin = "http://127.0.0.1:7778"
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	im := &importer{options: o}
	if o.Layout == "lmstfy" {
		admin := source
		if o.TokensFrom != "" {
			if admin, err = connect(o.TokensFrom); err != nil {
				return Report{}, err
			}
			defer admin.Close()
		}
		if err := readTokens(ctx, admin, im); err != nil {
			return im.report, err
		}
	}
	if err := read(ctx, source, im); err != nil {
		return im.report, err
	}
	return im.report, im.flush(ctx)
}

func connect(url string) (*redis.Client, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	o.Protocol = 2 // also for a Redis of before 6
	o.DisableIdentity = true
	return redis.NewClient(o), nil
}

// importer gathers batches and sends them.
type importer struct {
	options Options
	report  Report
	jobs    []job
	tokens  []token
	bytes   int
}

const (
	batchJobs  = 500
	batchBytes = 4 << 20
)

// add takes one job; full batches are sent.
func (im *importer) add(ctx context.Context, j job) error {
	switch {
	case j.Dead:
		im.report.Dead++
	case j.DelayMs > 0:
		im.report.Delayed++
	default:
		im.report.Ready++
	}
	if len(im.jobs)+len(im.tokens) > 0 && len(j.Payload) > batchBytes { // goes alone, for it may be refused
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	im.jobs = append(im.jobs, j)
	im.bytes += len(j.Payload)
	if len(im.jobs) < batchJobs && im.bytes < batchBytes {
		return nil
	}
	return im.flush(ctx)
}

// flush sends what has gathered.
func (im *importer) flush(ctx context.Context) error {
	for len(im.jobs)+len(im.tokens) > 0 {
		tokens := im.tokens[:min(len(im.tokens), batchJobs)]
		if err := im.send(ctx, im.jobs, tokens); err != nil {
			return err
		}
		im.jobs, im.tokens, im.bytes = im.jobs[:0], im.tokens[len(tokens):], 0
		if im.options.Progress != nil {
			im.options.Progress(im.report)
		}
	}
	return nil
}

// patience is how often a batch is sent again while the daemon has no time for
// it. A batch may be repeated: it adds nothing twice.
const patience = 30

func (im *importer) send(ctx context.Context, jobs []job, tokens []token) error {
	body, err := json.Marshal(map[string]any{"jobs": jobs, "tokens": tokens, "dry_run": im.options.DryRun})
	if err != nil {
		return fmt.Errorf("encode a batch: %w", err)
	}
	for try := 1; ; try++ {
		again, err := im.post(ctx, body)
		if err == nil {
			return nil
		}
		if errors.Is(err, errTooLarge) && len(jobs) == 1 {
			im.refused(jobs[0].Key, "its body has %d bytes", len(jobs[0].Payload))
			return nil
		}
		if !again || try == patience {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// post sends one batch once. again: it may work later.
func (im *importer) post(ctx context.Context, body []byte) (again bool, err error) {
	url := strings.TrimSuffix(im.options.Admin, "/") + "/api/v1/import"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("admin address: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if im.options.User != "" {
		r.SetBasicAuth(im.options.User, im.options.Password)
	}
	reply, err := im.options.HTTP.Do(r)
	if err != nil {
		return ctx.Err() == nil, fmt.Errorf("admin address: %w", err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 16<<20))
	if err != nil {
		return true, fmt.Errorf("admin address: %w", err)
	}
	if reply.StatusCode == http.StatusRequestEntityTooLarge {
		return false, fmt.Errorf("admin address: %w: %.300q", errTooLarge, text)
	}
	if reply.StatusCode != http.StatusOK {
		return reply.StatusCode == http.StatusServiceUnavailable, fmt.Errorf("admin address: %s: %.300q", reply.Status, text)
	}
	var got struct {
		Added, Duplicates, Tokens, Limits int
		Refused                           []struct{ Key, Message string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return false, fmt.Errorf("admin address: %w in %.300q", err, text)
	}
	im.report.Added += got.Added
	im.report.Duplicates += got.Duplicates
	im.report.Tokens += got.Tokens
	im.report.Limits += got.Limits
	for _, f := range got.Refused {
		im.refused(f.Key, "%s", f.Message)
	}
	return false, nil
}

// errTooLarge says that the daemon takes no batch so large.
var errTooLarge = errors.New("the batch is too large")

// refused reports a job or token that was refused.
func (im *importer) refused(key, format string, args ...any) {
	im.report.Refused++
	if len(im.report.Refusals) < maxRefusals {
		im.report.Refusals = append(im.report.Refusals, fmt.Sprintf("%q: %s", key, fmt.Sprintf(format, args...)))
	}
}

// scan visits the keys that match, of one type.
func scan(ctx context.Context, c *redis.Client, match, kind string, visit func(key string) error) error {
	seen := map[string]bool{} // SCAN may give a key twice
	it := c.ScanType(ctx, 0, match, 1000, kind).Iterator()
	for it.Next(ctx) {
		if key := it.Val(); !seen[key] {
			seen[key] = true
			if err := visit(key); err != nil {
				return err
			}
		}
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("scan %s: %w", match, err)
	}
	return nil
}

// wrongType says that a key is not of the type that the layout has there.
func wrongType(err error) bool { return redis.HasErrorPrefix(err, "WRONGTYPE") }

// fromRight visits the entries of a list from its right end, the oldest first
// where entries are pushed on the left, a page at a time.
func (im *importer) fromRight(ctx context.Context, c *redis.Client, key string, visit func(page []string) error) error {
	for end := int64(-1); ; end -= batchJobs {
		page, err := c.LRange(ctx, key, end-batchJobs+1, end).Result()
		if wrongType(err) {
			im.report.Unreadable++
			return nil
		}
		if err != nil {
			return fmt.Errorf("read list %.100q: %w", key, err)
		}
		for i, j := 0, len(page)-1; i < j; i, j = i+1, j-1 {
			page[i], page[j] = page[j], page[i]
		}
		if len(page) > 0 {
			if err := visit(page); err != nil {
				return err
			}
		}
		if len(page) < batchJobs {
			return nil
		}
	}
}

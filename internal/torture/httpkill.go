//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pawl/client"
	"pawl/internal/record"
	"pawl/internal/seeds"
	"pawl/internal/torture/daemon"
	"pawl/internal/torture/ledger"
)

// runHTTP: clients of lmstfy's HTTP API publish one by one and in bulk, consume,
// delete, republish, let jobs die and respawn them, while the daemon is killed
// again and again. At the end the sums must be right (package ledger).
func runHTTP(ctx context.Context, args []string) error {
	l := newLab("http", args)
	kills := l.flags.Int("kills", 20, "how often the daemon is killed")
	clients := l.flags.Int("clients", 12, "clients that work meanwhile")
	shortest := l.flags.Duration("shortest", 20*time.Millisecond, "shortest life of the daemon, once ready")
	longest := l.flags.Duration("longest", 400*time.Millisecond, "longest life")
	sup, leave, err := l.openDaemon(ctx, small...)
	if err != nil {
		return err
	}
	defer leave()
	public, err := l.port()
	if err != nil {
		return err
	}
	admin, err := l.port()
	if err != nil {
		return err
	}
	sup.SetOptions(func(o *daemon.Options) {
		o.Args = append([]string{"--http-addr", public, "--admin-addr", admin}, small...)
	})
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	shop := &shop{url: "http://" + public + "/api/torture/", ledger: ledger.New()}
	if shop.token, err = makeToken(ctx, admin); err != nil {
		return err
	}

	work, stop := context.WithCancel(ctx)
	defer stop()
	var crew sync.WaitGroup
	for i := range *clients {
		c := shop.customer(seeds.New(l.seed + uint64(i)))
		crew.Go(func() { c.work(work) })
	}
	kill := func() error {
		if err := sup.Kill(); err != nil {
			return err
		}
		for range *kills {
			l.fired.Add(1)
			if err := l.lifeAndDeath(ctx, sup, *shortest, *longest); err != nil {
				return err
			}
		}
		return l.start(ctx, sup)
	}
	err = kill()
	stop()
	crew.Wait()
	if err != nil {
		return err
	}

	drain := func() error {
		return shop.customer(l.rng).drain(ctx, sup.Addr())
	}
	if err := drain(); err != nil {
		return l.broken("drain: %v\n%s", err, sup.Stderr())
	}
	// What was finished must not come back with the next start.
	if code, err := sup.Terminate(ctx); err != nil || code != 0 {
		return l.broken("SIGTERM: exit %d, %v: %s", code, err, sup.Stderr())
	}
	if err := l.start(ctx, sup); err != nil {
		return err
	}
	if err := drain(); err != nil {
		return l.broken("drain after a restart: %v\n%s", err, sup.Stderr())
	}
	if wrong := shop.ledger.Check(); len(wrong) > 0 {
		return l.broken("%d of the sums:\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
	if err, ok := shop.strange.Load().(string); ok {
		return l.broken("a client's request was answered in a way that the contract does not have: %s", err)
	}
	return l.account(record.Run{Cases: shop.ledger.Count(), Faults: int(l.fired.Load())}, shop.String())
}

// makeToken makes one through the admin API. It must survive all kills.
func makeToken(ctx context.Context, admin string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+admin+"/token/torture?description=torture", nil)
	if err != nil {
		return "", err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	defer reply.Body.Close()
	var made struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&made); err != nil || made.Token == "" {
		return "", fmt.Errorf("make a token: %s, %v", reply.Status, err)
	}
	return made.Token, nil
}

// shop is what all clients of the HTTP API share.
type shop struct {
	url, token string
	ledger     *ledger.Ledger
	bodies     atomic.Int64 // made so far
	strange    atomic.Value // string: the first answer outside of the contract

	published, republished, deleted, respawned, handed, waited, open atomic.Int64
}

// String says how much was done.
func (s *shop) String() string {
	return fmt.Sprintf("%d jobs published, %d republished, %d handed out, %d deleted, %d respawned, %d waits, %d requests without an answer",
		s.published.Load(), s.republished.Load(), s.handed.Load(), s.deleted.Load(), s.respawned.Load(), s.waited.Load(), s.open.Load())
}

// shopQueues are the queues that the clients use.
var shopQueues = []string{"a", "b", "c"}

// customer is one client. One goroutine uses it.
type customer struct {
	*shop
	rng  *rand.Rand
	http *http.Client
}

func (s *shop) customer(rng *rand.Rand) *customer {
	return &customer{shop: s, rng: rng, http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 2, DisableCompression: true},
		Timeout:   2 * daemon.Patience,
	}}
}

// ask sends one request. Without an answer the outcome is open, unless the
// request cannot have left; 503 says that nothing was done.
func (c *customer) ask(ctx context.Context, method, path string, body []byte, want int) (text []byte, o ledger.Outcome) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		c.odd("%s %s: %v", method, path, err)
		return nil, ledger.Refused
	}
	r.Header.Set("X-Token", c.token)
	reply, err := c.http.Do(r)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			time.Sleep(5 * time.Millisecond) // it is down: no need to try at once
			return nil, ledger.Refused
		}
		c.open.Add(1)
		return nil, ledger.Unknown
	}
	defer reply.Body.Close()
	text, err = io.ReadAll(reply.Body)
	switch {
	case err != nil:
		c.open.Add(1)
		return nil, ledger.Unknown
	case reply.StatusCode == want:
		return text, ledger.OK
	case reply.StatusCode == http.StatusServiceUnavailable, method == "GET" && reply.StatusCode == http.StatusNotFound:
		return nil, ledger.Refused
	case reply.StatusCode == http.StatusInternalServerError:
		c.open.Add(1)
		return nil, ledger.Unknown
	}
	c.odd("%s %s: %s %s", method, path, reply.Status, text)
	return nil, ledger.Refused
}

func (c *customer) odd(format string, args ...any) {
	c.strange.CompareAndSwap(nil, fmt.Sprintf(format, args...))
}

// work does one thing after the other until ctx ends. What is under way then is
// finished: the daemon lives on.
func (c *customer) work(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	done := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		switch n := c.rng.IntN(20); {
		case n < 7:
			c.publish(done)
		case n < 9:
			c.bulk(done)
		case n < 19:
			c.consume(done)
		default:
			c.respawn(done, 10)
		}
	}
}

func (c *customer) queue() string { return shopQueues[c.rng.IntN(len(shopQueues))] }

// newBody makes a body that nobody else has, of a length that varies: JSON, for
// bulks take nothing else.
func (c *customer) newBody() string {
	return fmt.Sprintf(`"%d-%s"`, c.bodies.Add(1), strings.Repeat("x", c.rng.IntN(200)))
}

// jobOptions: no time to live, for a job may only go when somebody says so.
func (c *customer) jobOptions() string {
	tries := []int{1, 1, 2, 65535}[c.rng.IntN(4)]
	return fmt.Sprintf("?ttl=0&tries=%d&delay=%d", tries, max(0, c.rng.IntN(6)-4))
}

func (c *customer) publish(ctx context.Context) {
	body := c.newBody()
	text, o := c.ask(ctx, "PUT", c.queue()+c.jobOptions(), []byte(body), http.StatusCreated)
	c.ledger.Published(o, []string{c.jobID(text, o)}, body)
	if o == ledger.OK {
		c.published.Add(1)
	}
}

func (c *customer) jobID(text []byte, o ledger.Outcome) string {
	var made struct {
		ID string `json:"job_id"`
	}
	if err := json.Unmarshal(text, &made); o == ledger.OK && (err != nil || made.ID == "") {
		c.odd("no job_id in %s", text)
	}
	return made.ID
}

func (c *customer) bulk(ctx context.Context) {
	bodies := make([]string, 2+c.rng.IntN(20))
	for i := range bodies {
		bodies[i] = c.newBody()
	}
	text, o := c.ask(ctx, "PUT", c.queue()+"/bulk"+c.jobOptions(), []byte("["+strings.Join(bodies, ",")+"]"), http.StatusCreated)
	var made struct {
		IDs []string `json:"job_ids"`
	}
	if err := json.Unmarshal(text, &made); o == ledger.OK && (err != nil || len(made.IDs) != len(bodies)) {
		c.odd("want %d job_ids in %s", len(bodies), text)
		return
	}
	c.ledger.Published(o, made.IDs, bodies...)
	if o == ledger.OK {
		c.published.Add(int64(len(bodies)))
	}
}

// delivery is a job as a consume shows it.
type delivery struct {
	ID    string `json:"job_id"`
	Queue string `json:"queue"`
	Data  []byte `json:"data"` // base 64 in the reply
}

// take consumes up to count jobs of all queues.
func (c *customer) take(ctx context.Context, ttr, timeout, count int) (start ledger.Stamp, jobs []delivery, o ledger.Outcome) {
	start = c.ledger.Begin()
	began := time.Now()
	path := fmt.Sprintf("%s?ttr=%d&timeout=%d&count=%d", strings.Join(shopQueues, ","), ttr, timeout, count)
	text, o := c.ask(ctx, "GET", path, nil, http.StatusOK)
	if timeout > 0 && time.Since(began) > 50*time.Millisecond {
		c.waited.Add(1)
	}
	if o != ledger.OK {
		return start, nil, o
	}
	if count == 1 {
		text = append(append([]byte{'['}, text...), ']')
	}
	if err := json.Unmarshal(text, &jobs); err != nil || len(jobs) == 0 {
		c.odd("no jobs in %s: %v", text, err)
	}
	return start, jobs, o
}

// consume takes jobs and deletes most of them; the others are republished, or
// left until their time is over.
func (c *customer) consume(ctx context.Context) {
	start, jobs, _ := c.take(ctx, 1+c.rng.IntN(2), c.rng.IntN(2), 1+c.rng.IntN(4))
	for _, d := range jobs {
		c.ledger.Saw(start, d.ID, string(d.Data))
		c.handed.Add(1)
	}
	for _, d := range jobs {
		switch n := c.rng.IntN(10); {
		case n < 5:
			_, o := c.ask(ctx, "DELETE", d.Queue+"/job/"+d.ID, nil, http.StatusNoContent)
			c.ledger.Deleted(o, string(d.Data))
			if o == ledger.OK {
				c.deleted.Add(1)
			}
		case n < 8:
			body := c.newBody()
			text, o := c.ask(ctx, "PUT", d.Queue+"/job/"+d.ID+c.jobOptions(), []byte(body), http.StatusCreated)
			c.ledger.Republished(o, string(d.Data), body, c.jobID(text, o))
			if o == ledger.OK {
				c.republished.Add(1)
			}
		}
	}
}

// respawn brings dead jobs back. How many that were is nobody's to know without
// an answer; the jobs must be there either way.
func (c *customer) respawn(ctx context.Context, limit int) {
	text, o := c.ask(ctx, "PUT", c.queue()+"/deadletter?ttl=0&limit="+strconv.Itoa(limit), nil, http.StatusOK)
	var made struct {
		Count int64 `json:"count"`
	}
	if err := json.Unmarshal(text, &made); o == ledger.OK && err != nil {
		c.odd("respawn: %s", text)
	}
	c.respawned.Add(made.Count)
}

// drain consumes and deletes all there is, dead jobs and those in work too,
// until the daemon says over RESP that no queue has a job in any place.
func (c *customer) drain(ctx context.Context, resp string) error {
	defer c.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 2*daemon.Patience)
	defer cancel()
	redis := client.New(client.Options{Addr: resp})
	defer redis.Close()
	for {
		for _, q := range shopQueues {
			if _, o := c.ask(ctx, "PUT", q+"/deadletter?ttl=0&limit=100000", nil, http.StatusOK); o != ledger.OK {
				return fmt.Errorf("respawn of %s: no answer, %w", q, ctxError(ctx))
			}
		}
		_, jobs, o := c.take(ctx, 3600, 1, 100)
		if o == ledger.Unknown {
			return fmt.Errorf("consume: no answer, %w", ctxError(ctx))
		}
		for _, d := range jobs {
			c.ledger.Drained(d.ID, string(d.Data))
			if _, o := c.ask(ctx, "DELETE", d.Queue+"/job/"+d.ID, nil, http.StatusNoContent); o != ledger.OK {
				return fmt.Errorf("delete %s: no answer, %w", d.ID, ctxError(ctx))
			}
		}
		if len(jobs) > 0 {
			continue
		}
		left := int64(0)
		for _, q := range shopQueues {
			info, err := redis.QueueInfo(ctx, "torture/"+q)
			if err != nil {
				return fmt.Errorf("QUEUE INFO: %w", err)
			}
			for _, place := range []string{"ready", "delayed", "leased", "dead"} {
				left += info.Field(place).Number()
			}
		}
		if left == 0 {
			return nil
		}
	}
}

// ctxError says why a request had no answer: the time is over, or else the daemon
// is at fault.
func ctxError(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.New("from a daemon that nobody kills")
}

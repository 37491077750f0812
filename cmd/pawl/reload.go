package main

import (
	"context"
	"maps"
	"os"

	"pawl/acl"
	"pawl/config"
	"pawl/engine"
	"pawl/server/resp"
)

// What a running daemon can change: by SIGHUP, which reads environment and file
// again, and by CONFIG SET, which holds until then.

// settings are all options for CONFIG GET, and those that can change for CONFIG
// SET.
func (d *daemon) settings() []resp.Setting {
	list := make([]resp.Setting, 0, len(d.set.Options))
	for _, o := range d.set.Options {
		s := resp.Setting{Name: o.Key(), Get: func() string {
			d.setMu.Lock()
			defer d.setMu.Unlock()
			return d.set.Option(o.Name).Value
		}}
		if o.Reload && o.Name != "password-file" {
			s.Set = func(value string) error { return d.change(o.Name, value) }
		}
		list = append(list, s)
	}
	return list
}

// change is CONFIG SET.
func (d *daemon) change(name, value string) error {
	d.setMu.Lock()
	defer d.setMu.Unlock()
	next, err := d.set.With(name, value, "CONFIG SET")
	if err != nil {
		return err
	}
	return d.take(next, nil)
}

// reloads waits for SIGHUP.
func (d *daemon) reloads(ctx context.Context, hup <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		d.reload()
	}
}

// reload takes what file and environment say now, and says in the log what has
// changed and what needs a restart. With an error nothing has changed.
func (d *daemon) reload() {
	d.setMu.Lock()
	defer d.setMu.Unlock()
	d.secure.reload()
	failed := func(err error) {
		d.log.Error("cannot reload the configuration, nothing has changed", "error", err)
	}
	fresh, err := d.set.Again(d.env.lookup)
	if err != nil {
		failed(err)
		return
	}
	users, err := parseUsers(fresh.Config.Users)
	if err != nil {
		failed(err)
		return
	}
	next, err := d.set.Taking(fresh)
	if err != nil {
		failed(err)
		return
	}
	changes := fresh.Changes(d.set)
	if err := d.take(next, users); err != nil {
		failed(err)
		return
	}
	for _, c := range changes {
		if c.Reload {
			d.log.Info("changed", "option", c.Name, "from", c.Old, "to", c.New)
		} else {
			d.log.Warn("changed in the configuration, but needs a restart", "option", c.Name, "now", c.Old, "then", c.New)
		}
	}
	if len(changes) == 0 {
		d.log.Info("reloaded the configuration, nothing has changed")
	}
}

// take makes next hold. users are those of its table; nil is as before, when
// users and password are. It is called with setMu held.
func (d *daemon) take(next *config.Set, users []acl.User) error {
	c, old := &next.Config, &d.set.Config
	if d.eng != nil {
		if err := d.eng.SetLimits(engineLimits(c)); err != nil {
			return err
		}
	}
	d.level.Set(c.LogLevel)
	d.resp.SetLimits(respLimits(c))
	d.admin.SetHosts(c.AdminHostNames)
	d.admin.SetMaxQueueSeries(c.MetricsQueues)
	d.public.SetMaxQueueSeries(c.MetricsQueues)
	d.public.SetMaxClients(httpClients(c))
	d.public.SetMaxBuffers(int64(c.MaxHTTPBuffers))
	d.setScrubRate(c)
	d.public.Accounts().Set(d.accounts(c))
	// Users are replaced only when they have changed: who is logged in by an old
	// password stays so, but need not be looked up again for nothing.
	if !maps.Equal(c.Users, old.Users) || c.Password != old.Password {
		d.resp.SetUsers(users, c.Password)
	}
	d.set = next
	return nil
}

// setScrubRate is for the scrubber of a daemon that has one.
func (d *daemon) setScrubRate(c *config.Config) {
	if s := d.scrubber.Load(); s != nil {
		s.SetRate(int64(c.ScrubRate))
	}
}

// limitEngine gives the engine and the scrubber, which are new, the limits that
// hold now.
func (d *daemon) limitEngine(e *engine.Engine) error {
	d.setMu.Lock()
	defer d.setMu.Unlock()
	d.eng = e
	d.setScrubRate(&d.set.Config)
	return e.SetLimits(engineLimits(&d.set.Config))
}

func engineLimits(c *config.Config) engine.Limits {
	return engine.Limits{
		MaxWaiters: c.MaxWaiters, MaxMemory: int64(c.MaxMemory), MaxDisk: int64(c.MaxDisk),
		SnapshotBytes: int64(c.SnapshotBytes), SnapshotRate: int64(c.SnapshotRate), SnapshotInterval: c.SnapshotInterval, Keep: c.Keep,
	}
}

func respLimits(c *config.Config) resp.Limits {
	return resp.Limits{
		PayloadBytes: int(c.MaxPayload),
		Clients:      redisClients(c),
		BufferBytes:  int64(c.MaxBuffers),
		IdleTime:     c.IdleTimeout,
	}
}

// accounts are those of the lmstfy file and of c, which wins.
func (d *daemon) accounts(c *config.Config) map[string]string {
	all := maps.Clone(d.fixed)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, c.Accounts)
	return all
}

// reload reads the files again, whatever their times say. The daemon goes on with
// the old ones when they are bad. It does nothing without TLS.
func (t *tlsFiles) reload() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh, err := t.read()
	if err != nil {
		t.log.Error("cannot read the new TLS certificate, going on with the old one", "error", err)
		return
	}
	t.config = fresh
	t.log.Info("read the TLS certificate again", "file", t.cert)
}

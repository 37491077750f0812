package resp

import (
	"net"
	"sync"
	"time"
)

// failureLimiter slows addresses that try passwords. Ten wrong ones in a second
// make an address suspect, for half a minute after the last that was too many.
// From there ten attempts are looked at in a second, however many connections
// make them; the others wait, for at most as long as a login may take. A right
// password counts for nothing, so that whoever comes back in crowds is not
// slowed.
type failureLimiter struct {
	mu       sync.Mutex
	since    time.Time            // guarded by mu; when counting began
	count    map[string]int       // guarded by mu; wrong passwords and slots of this second, by host
	suspects map[string]time.Time // guarded by mu; until when, by host
}

const (
	maxFailureHosts = 4096             // hosts in one of the tables; beyond it all others share a count
	suspectFor      = 30 * time.Second // without another wrong password too many
)

// host is what a connection is counted under: its address without the port, of
// IPv6 the /64 that one customer has.
func (f *failureLimiter) host(c *conn) string {
	host, _, err := net.SplitHostPort(c.addr)
	if err != nil {
		return c.addr
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}

// turn begins a new second. The caller holds mu, as in all below it.
func (f *failureLimiter) turn(now time.Time) {
	if f.count != nil && now.Sub(f.since) < time.Second {
		return
	}
	f.since, f.count = now, make(map[string]int)
	for host, until := range f.suspects {
		if now.After(until) {
			delete(f.suspects, host)
		}
	}
}

// place is host, or what all hosts share when the table is full.
func place[V any](table map[string]V, host string) string {
	if _, ok := table[host]; !ok && len(table) >= maxFailureHosts {
		return ""
	}
	return host
}

// admit says whether an attempt may be looked at now. slot says that it has one
// of the places of a suspect, which a right password gives back; pause is how
// long the second lasts when it may not.
func (f *failureLimiter) admit(host string, now time.Time) (ok, slot bool, pause time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn(now)
	_, suspect := f.suspects[place(f.suspects, host)]
	if !suspect {
		return true, false, 0
	}
	at := place(f.count, host)
	if f.count[at] >= failuresPerSec {
		return false, false, time.Second - now.Sub(f.since)
	}
	f.count[at]++
	return true, true, 0
}

// wrong counts a wrong password.
func (f *failureLimiter) wrong(c *conn, slot bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, host := time.Now(), f.host(c)
	f.turn(now)
	at := place(f.count, host)
	if !slot {
		f.count[at]++
	}
	if f.count[at] >= failuresPerSec {
		if f.suspects == nil {
			f.suspects = make(map[string]time.Time)
		}
		f.suspects[place(f.suspects, host)] = now.Add(suspectFor)
	}
}

// right gives back the slot of an attempt that was none to guess.
func (f *failureLimiter) right(c *conn, slot bool) {
	if !slot {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := place(f.count, f.host(c)); f.count[at] > 0 {
		f.count[at]--
	}
}

// wait returns when an attempt of c may be looked at. Not ok: it has waited for
// as long as a login may take, or the connection is to end for another reason.
func (f *failureLimiter) wait(c *conn) (slot, ok bool) {
	host, began := f.host(c), time.Now()
	for {
		ok, slot, pause := f.admit(host, time.Now())
		if ok {
			return slot, true
		}
		if time.Since(began) > c.srv.limits.LoginTime {
			c.condemn(closedLogin)
		}
		if c.condemned.Load() != nil {
			return false, false
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-c.srv.stop:
			timer.Stop()
			return false, false
		}
	}
}

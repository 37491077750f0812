package resp

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"pawl/acl"
)

// ownSettings are the values of the server itself, by Redis's names where
// Redis has them: clients and tools ask for these.
func (s *Server) ownSettings() []Setting {
	fixed := func(value string) func() string { return func() string { return value } }
	number := func(n int64) func() string { return fixed(decimal(n)) }
	return []Setting{
		{Name: "appendonly", Get: func() string {
			if s.opt.Ephemeral {
				return "no"
			}
			return "yes"
		}},
		{Name: "appendfsync", Get: func() string {
			switch {
			case s.opt.SyncMode == "always":
				return "always"
			case s.opt.Ephemeral || s.opt.SyncMode == "never":
				return "no"
			}
			return s.opt.SyncMode
		}},
		{Name: "databases", Get: number(1)},
		{Name: "maxclients", Get: func() string { return decimal(s.clientLimit.Load()) }},
		{Name: "maxmemory-policy", Get: fixed("noeviction")},
		{Name: "proto-max-bulk-len", Get: number(int64(s.limits.PayloadBytes))},
		{Name: "save", Get: fixed("")}, // snapshots follow the size of the log
		{Name: "slowlog-log-slower-than", Get: func() string { return decimal(s.slow.micros.Load()) },
			Set: numberSetter(-1, 1<<40, s.slow.micros.Store)},
		{Name: "slowlog-max-len", Get: func() string { return decimal(s.slow.most.Load()) },
			Set: numberSetter(0, 10_000, s.slow.most.Store)},
		{Name: "tcp-keepalive", Get: number(10)},
		{Name: "timeout", Get: func() string { return decimal(int64(time.Duration(s.idleTime.Load()).Seconds())) }},
	}
}

var errSettingNumber = errors.New("argument couldn't be parsed into an integer, or is out of range")

func numberSetter(low, high int64, set func(int64)) func(string) error {
	return func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < low || n > high {
			return errSettingNumber
		}
		set(n)
		return nil
	}
}

// maxGlobBytes bounds patterns, with which names are matched in time that
// grows with both.
const maxGlobBytes = 1024

// CONFIG GET pattern….
func cmdConfigGet(c *conn, args [][]byte) {
	var found []Setting
	for _, setting := range c.srv.settings {
		for _, arg := range args[2:] {
			if len(arg) <= maxGlobBytes && acl.Match(lower(string(arg)), []byte(setting.Name)) {
				found = append(found, setting)
				break
			}
		}
	}
	slices.SortFunc(found, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	c.b.out.mapHeader(len(found))
	for _, setting := range found {
		c.b.out.pairString(setting.Name, setting.Get())
	}
}

// CONFIG SET name value [name value…]: until the next start, all of them or none.
func cmdConfigSet(c *conn, args [][]byte) {
	pairs := args[2:]
	if len(pairs)%2 != 0 {
		c.failNow("ERR wrong number of arguments for 'config|set' command")
		return
	}
	var chosen []Setting
	for i := 0; i < len(pairs); i += 2 {
		name := lower(string(pairs[i]))
		at := slices.IndexFunc(c.srv.settings, func(s Setting) bool { return s.Name == name })
		if at < 0 {
			c.failNow("ERR Unknown option or number of arguments for CONFIG SET - '" + clip(pairs[i]) + "'")
			return
		}
		if c.srv.settings[at].Set == nil {
			c.failNow("ERR CONFIG SET failed (possibly related to argument '" + name + "') - can't set immutable config")
			return
		}
		if slices.ContainsFunc(chosen, func(s Setting) bool { return s.Name == name }) {
			c.failNow("ERR CONFIG SET failed (possibly related to argument '" + name + "') - duplicate parameter")
			return
		}
		chosen = append(chosen, c.srv.settings[at])
	}
	var before []string
	for i, setting := range chosen {
		before = append(before, setting.Get())
		if err := setting.Set(string(pairs[2*i+1])); err != nil {
			for j, was := range before[:i] {
				_ = chosen[j].Set(was) // it was good before
			}
			c.failNow("ERR CONFIG SET failed (possibly related to argument '" + setting.Name + "') - " + err.Error())
			return
		}
	}
	for _, setting := range chosen {
		c.srv.log.Info("a setting was changed", "name", setting.Name, "by", c.user.Name)
	}
	c.b.out.ok()
}

// CONFIG RESETSTAT.
func cmdConfigResetStat(c *conn, _ [][]byte) {
	c.srv.resetStats()
	c.b.out.ok()
}

// portOf is the port of a TCP address, 0 for any other.
func portOf(a net.Addr) int {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

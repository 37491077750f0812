package resp

import (
	"cmp"
	"slices"
	"strings"
)

// CLIENT ID.
func cmdClientID(c *conn, _ [][]byte) { c.b.out.integer(c.id) }

// CLIENT GETNAME.
func cmdClientGetName(c *conn, _ [][]byte) {
	if c.name == "" { // written by this goroutine alone
		c.b.out.null()
		return
	}
	c.b.out.bulkString(c.name)
}

// CLIENT SETNAME name.
func cmdClientSetName(c *conn, args [][]byte) {
	if !isName(args[2]) {
		c.failNow(errClientName)
		return
	}
	c.setName(args[2])
	c.b.out.ok()
}

// CLIENT SETINFO LIB-NAME|LIB-VER text.
func cmdClientSetInfo(c *conn, args [][]byte) {
	attr := lower(string(args[2]))
	if attr != "lib-name" && attr != "lib-ver" {
		c.failNow("ERR Unrecognized option '" + clip(args[2]) + "'")
		return
	}
	if !isName(args[3]) {
		c.failNow("ERR " + attr + " cannot contain spaces, newlines or special characters.")
		return
	}
	c.mu.Lock()
	if attr == "lib-name" {
		c.libName = string(args[3])
	} else {
		c.libVer = string(args[3])
	}
	c.mu.Unlock()
	c.b.out.ok()
}

// CLIENT INFO.
func cmdClientInfo(c *conn, _ [][]byte) { c.b.out.text(c.describe() + "\n") }

func (c *conn) isMonitor() bool {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	return c.srv.monitors[c] != nil
}

// clients are all connections by ID.
func (s *Server) clients() []*conn {
	s.mu.Lock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return list
}

// CLIENT LIST [TYPE normal] [ID id…].
func cmdClientList(c *conn, args [][]byte) {
	list := c.srv.clients()
	switch {
	case len(args) == 2:
	case len(args) == 4 && equalFold(args[2], "TYPE"):
		if !isClientType(string(args[3])) {
			c.failNow("ERR Unknown client type '" + clip(args[3]) + "'")
			return
		}
		if !equalFold(args[3], "NORMAL") {
			list = nil
		}
	case len(args) > 3 && equalFold(args[2], "ID"):
		wanted := make(map[int64]bool)
		for _, arg := range args[3:] {
			id, ok := parseInt(arg)
			if !ok {
				c.failNow("ERR Invalid client ID")
				return
			}
			wanted[id] = true
		}
		list = slices.DeleteFunc(list, func(o *conn) bool { return !wanted[o.id] })
	default:
		c.failNow(errSyntax)
		return
	}
	var b strings.Builder
	for _, o := range list {
		b.WriteString(o.describe())
		b.WriteByte('\n')
	}
	c.b.out.text(b.String())
}

// isClientType says whether Redis knows the type; here all clients are normal.
func isClientType(text string) bool {
	return slices.Contains([]string{"normal", "master", "replica", "slave", "pubsub"}, strings.ToLower(text))
}

// CLIENT KILL addr, or CLIENT KILL with ID, ADDR, LADDR, USER, TYPE, SKIPME.
func cmdClientKill(c *conn, args [][]byte) {
	if len(args) == 3 {
		for _, o := range c.srv.clients() {
			if o.addr == string(args[2]) {
				c.kill(o)
				c.b.out.ok()
				return
			}
		}
		c.failNow("ERR No such client")
		return
	}
	matches, refusal := c.killFilter(args[2:])
	if refusal != "" {
		c.failNow(refusal)
		return
	}
	killed := int64(0)
	for _, o := range c.srv.clients() {
		if matches(o) {
			c.kill(o)
			killed++
		}
	}
	c.b.out.integer(killed)
}

// kill closes a connection; the client's own is closed behind the reply.
func (c *conn) kill(o *conn) {
	if o == c {
		c.closing = true
		return
	}
	o.condemn(closedKilled)
}

func (c *conn) killFilter(args [][]byte) (matches func(*conn) bool, refusal string) {
	skipMe := true
	var filters []func(*conn) bool
	for o := (options{rest: args}); len(o.rest) > 0; {
		word, value := o.value(), o.value()
		if o.refusal != "" {
			return nil, o.refusal
		}
		text := string(value)
		switch {
		case equalFold(word, "ID"):
			id, ok := parseInt(value)
			if !ok || id < 1 {
				return nil, "ERR client-id should be greater than 0"
			}
			filters = append(filters, func(o *conn) bool { return o.id == id })
		case equalFold(word, "ADDR"):
			filters = append(filters, func(o *conn) bool { return o.addr == text })
		case equalFold(word, "LADDR"):
			filters = append(filters, func(o *conn) bool { return o.local == text })
		case equalFold(word, "USER"):
			// Who is logged in with a token is no user of the table.
			if c.srv.users.Load().named(text) == nil && !strings.HasPrefix(text, tokenKey) {
				return nil, "ERR No such user '" + clip(value) + "'"
			}
			filters = append(filters, func(o *conn) bool {
				o.mu.Lock()
				defer o.mu.Unlock()
				return o.login == text
			})
		case equalFold(word, "TYPE"):
			if !isClientType(text) {
				return nil, "ERR Unknown client type '" + clip(value) + "'"
			}
			filters = append(filters, func(*conn) bool { return strings.EqualFold(text, "normal") })
		case equalFold(word, "SKIPME") && (equalFold(value, "YES") || equalFold(value, "NO")):
			skipMe = equalFold(value, "YES")
		default:
			return nil, errSyntax
		}
	}
	return func(o *conn) bool {
		if o == c && skipMe {
			return false
		}
		for _, f := range filters {
			if !f(o) {
				return false
			}
		}
		return true
	}, ""
}

// CLIENT UNBLOCK id [TIMEOUT|ERROR].
func cmdClientUnblock(c *conn, args [][]byte) {
	id, ok := parseInt(args[2])
	if !ok {
		c.failNow(errNumber)
		return
	}
	withError := false
	if len(args) == 4 {
		withError = equalFold(args[3], "ERROR")
		if !withError && !equalFold(args[3], "TIMEOUT") {
			c.failNow("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	c.srv.mu.Lock()
	var target *conn
	for o := range c.srv.conns {
		if o.id == id && o.blocked.Load() {
			target = o
		}
	}
	c.srv.mu.Unlock()
	if target == nil {
		c.b.out.integer(0)
		return
	}
	select {
	case target.unblock <- withError:
		c.b.out.integer(1)
	default:
		c.b.out.integer(0) // somebody was first
	}
}

// CLIENT NO-EVICT on|off, CLIENT NO-TOUCH on|off: nothing is evicted here, and
// nothing is touched by reading.
func cmdClientOnOff(c *conn, args [][]byte) {
	if !equalFold(args[2], "ON") && !equalFold(args[2], "OFF") {
		c.failNow(errSyntax)
		return
	}
	c.b.out.ok()
}

// CLIENT REPLY ON|OFF|SKIP.
func cmdClientReply(c *conn, args [][]byte) {
	switch {
	case equalFold(args[2], "ON"):
		c.reply = replyOn
		c.b.out.ok()
	case equalFold(args[2], "OFF"):
		c.reply = replyOff
	case equalFold(args[2], "SKIP"):
		if c.reply != replyOff {
			c.reply = replySkipNext
		}
	default:
		c.failNow(errSyntax)
	}
}

// CLIENT GETREDIR.
func cmdClientGetRedir(c *conn, _ [][]byte) { c.b.out.integer(-1) }

// CLIENT TRACKING, CACHING, MAINT_NOTIFICATIONS: a client that is told OK would
// wait for messages that never come.
func cmdClientRefused(c *conn, args [][]byte) {
	c.failNow("ERR CLIENT " + strings.ToUpper(clip(args[1])) + " is not supported")
}

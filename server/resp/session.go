package resp

import (
	"bytes"
	"time"
)

// PING [message].
func cmdPing(c *conn, args [][]byte) {
	if len(args) > 1 {
		c.echo(args[1])
		return
	}
	c.begin().simple("PONG")
	c.end()
}

// ECHO message.
func cmdEcho(c *conn, args [][]byte) {
	c.echo(args[1])
}

// echo answers with what the client sent; a long text goes out from where it
// came in, without a copy that no limit counts.
func (c *conn) echo(text []byte) {
	if len(text) >= directBytes && !c.polled && !c.muted() {
		c.settle()
		c.bulk(text)
		return
	}
	c.begin().bulk(text)
	c.end()
}

// QUIT.
func cmdQuit(c *conn, _ [][]byte) {
	c.b.out.ok()
	c.closing = true
}

// RESET makes the connection what it was when it was new.
func cmdReset(c *conn, _ [][]byte) {
	c.dropTransaction()
	if c.monitor != nil {
		c.push() // whole replies, before the last lines
		c.srv.removeMonitor(c)
	}
	c.reply = replyOn
	c.setProtocol(2)
	c.mu.Lock()
	c.name = ""
	c.mu.Unlock()
	c.becomeDefault(c.srv.users.Load())
	c.b.out.simple("RESET")
}

// SELECT 0: there is one database.
func cmdSelect(c *conn, args [][]byte) {
	n, ok := parseInt(args[1])
	switch {
	case !ok:
		c.failNow(errNumber)
	case n != 0:
		c.failNow("ERR DB index is out of range")
	default:
		c.b.out.ok()
	}
}

// READONLY, READWRITE: of a cluster's client; everything can be read here.
func cmdOK(c *conn, _ [][]byte) { c.b.out.ok() }

// TIME.
func cmdTime(c *conn, _ [][]byte) {
	now := time.Now()
	c.b.out.array(2)
	c.b.out.bulkString(decimal(now.Unix()))
	c.b.out.bulkString(decimal(int64(now.Nanosecond() / 1000)))
}

func (c *conn) setProtocol(version int) {
	c.resp3 = version == 3
	c.b.out.resp3, c.b.side.resp3 = c.resp3, c.resp3
	c.mu.Lock()
	c.proto = version
	c.mu.Unlock()
}

// HELLO [version [AUTH user password] [SETNAME name]].
func cmdHello(c *conn, args [][]byte) {
	version := 2
	if c.resp3 {
		version = 3
	}
	o := options{rest: args[1:]}
	if len(o.rest) > 0 {
		n, ok := parseInt(o.value())
		if !ok {
			c.failNow("ERR Protocol version is not an integer or out of range")
			return
		}
		if n != 2 && n != 3 {
			c.failNow("NOPROTO unsupported protocol version")
			return
		}
		version = int(n)
	}
	var user, password, name []byte
	auth := false
	for word, ok := o.next(); ok; word, ok = o.next() {
		switch {
		case equalFold(word, "AUTH") && len(o.rest) > 1:
			user, password, auth = o.value(), o.value(), true
		case equalFold(word, "SETNAME") && len(o.rest) > 0:
			name = o.value()
			if !isName(name) {
				o.fail(errClientName)
			}
		default:
			o.fail("ERR Syntax error in HELLO option '" + clip(word) + "'")
		}
	}
	if o.refusal != "" {
		c.failNow(o.refusal)
		return
	}
	if auth && !c.logIn(user, password) {
		return
	}
	if c.user == nil {
		c.failNow("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	if name != nil {
		c.setName(name)
	}
	c.setProtocol(version)
	w := &c.b.out
	w.mapHeader(7)
	w.pairString("server", "redis")
	w.pairString("version", redisVersion)
	w.pair("proto", int64(version))
	w.pair("id", c.id)
	w.pairString("mode", "standalone")
	w.pairString("role", "master")
	w.bulkString("modules")
	w.array(0)
}

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// isName says whether clients may call themselves so: printable ASCII without
// blanks.
func isName(name []byte) bool {
	return len(name) <= 255 && bytes.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

func (c *conn) setName(name []byte) {
	c.mu.Lock()
	c.name = string(name)
	c.mu.Unlock()
}

// AUTH [user] password.
func cmdAuth(c *conn, args [][]byte) {
	if len(args) == 2 {
		if u := c.srv.users.Load().named(defaultName); u != nil && u.NoPass {
			c.failNow("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
			return
		}
		if !c.logIn([]byte(defaultName), args[1]) {
			return
		}
	} else if !c.logIn(args[1], args[2]) {
		return
	}
	c.b.out.ok()
}

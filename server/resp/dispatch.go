package resp

import (
	"pawl/acl"
)

// command is one row of the table: everything that is known of a command, for
// dispatch, COMMAND, the documents and the rights.
type command struct {
	name    string // upper case; a subcommand's without its container
	index   int    // in the counters
	parent  *command
	sub     []*command
	syntax  string // arguments, as documented; see parseSyntax
	arity   int    // with the name; negative is at least
	most    int    // arguments at most, with the name; 0 is no limit
	flags   flag
	class   acl.Class
	group   string
	summary string
	since   string

	run func(c *conn, args [][]byte)
}

type flag uint16

const (
	flagWrite    flag = 1 << iota // changes jobs or settings
	flagRead                      // reads jobs
	flagFast                      // takes a time that does not grow
	flagBlocking                  // may wait
	flagEarly                     // answers while the log is replayed
	flagStranger                  // answers before login
	flagPipeline                  // joins the pipeline; others wait for it to be settled
	flagMulti                     // may stand in a transaction
	flagNoMulti                   // controls transactions, or is refused in one by itself
	flagSecret                    // its arguments are shown nowhere
)

func (cmd *command) is(f flag) bool { return cmd.flags&f != 0 }

// fullName is the name as messages and statistics say it: lower case, with a
// bar before the subcommand.
func (cmd *command) fullName() string {
	if cmd.parent != nil {
		return lower(cmd.parent.name) + "|" + lower(cmd.name)
	}
	return lower(cmd.name)
}

// maxNameBytes bounds the names of commands, so that they are upper-cased on
// the stack.
const maxNameBytes = 32

// find gives the command of args, and the subcommand if it has them. The
// prefix MOXY. is optional.
func find(args [][]byte) (cmd *command, unknownSub bool) {
	var space [maxNameBytes]byte
	name := upper(space[:0], args[0])
	if len(name) > 5 && string(name[:5]) == "MOXY." {
		name = name[5:]
	}
	cmd = byName[string(name)]
	if cmd == nil || cmd.sub == nil || len(args) < 2 {
		return cmd, false
	}
	sub := upper(space[:0], args[1])
	for _, s := range cmd.sub {
		if s.name == string(sub) {
			return s, false
		}
	}
	return cmd, cmd.run == nil || cmd.most > 0 && len(args) > cmd.most
}

// upper appends name in upper case; nothing when it is longer than any command.
func upper(dst, name []byte) []byte {
	if len(name) > maxNameBytes {
		return dst
	}
	for _, c := range name {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// dispatch does one command, or puts it into the batch.
func (c *conn) dispatch(cmd *command, unknownSub bool, args [][]byte, inline bool) {
	switch c.reply {
	case replySkipNext:
		c.reply = replySkip
	case replySkip:
		c.reply = replyOn
	}
	if t := c.srv.users.Load(); t != c.users && !c.usersChanged(t) {
		return
	}
	if c.user == nil && (cmd == nil || !cmd.is(flagStranger)) {
		if c.refusals++; c.refusals > maxStrangerCommands {
			c.protocolError(errStrangerMany)
			return
		}
		c.fail("NOAUTH Authentication required.")
		if cmd == nil && inline {
			c.closing = true // a browser, or somebody who guesses
		}
		return
	}
	if !c.allowed(cmd, unknownSub, args) {
		c.refuseQueued()
		return
	}
	c.srv.counts[cmd.index].Add(1)
	c.srv.stats.commands.Add(1)
	c.lastCmd.Store(cmd)
	if c.srv.watched.Load() > 0 {
		c.srv.feedMonitors(c, cmd, args)
	}
	switch {
	case c.tx != nil && !cmd.is(flagNoMulti):
		c.queue(cmd, args)
	case cmd.is(flagPipeline):
		cmd.run(c, args)
	default:
		c.odd = true
		c.settle()
		began := c.srv.slow.begin()
		errs := c.b.out.errs
		mark := len(c.b.out.buf)
		cmd.run(c, args)
		if c.muted() && len(c.b.out.buf) > mark && c.b.out.errs >= errs {
			c.b.out.buf = c.b.out.buf[:mark]
		}
		c.spill()
		c.srv.slow.end(began, c, cmd, args, 1)
	}
}

// allowed says whether the command may run; if not, it is answered.
func (c *conn) allowed(cmd *command, unknownSub bool, args [][]byte) bool {
	switch {
	case cmd == nil:
		c.fail(unknownCommand(args))
	case unknownSub:
		c.fail("ERR unknown subcommand '" + clip(args[1]) + "'. Try " + cmd.name + " HELP.")
	case cmd.arity > 0 && len(args) != cmd.arity, len(args) < -cmd.arity, cmd.most > 0 && len(args) > cmd.most,
		cmd.run == nil:
		c.fail("ERR wrong number of arguments for '" + cmd.fullName() + "' command")
	case c.user != nil && !c.user.May(cmd.class):
		c.srv.stats.denied.Add(1)
		c.fail("NOPERM User " + c.user.Name + " has no permissions to run the '" + cmd.fullName() + "' command")
	case c.engine() == nil && !cmd.is(flagEarly):
		c.fail("LOADING Pawl is replaying its log")
	default:
		return true
	}
	return false
}

// unknownCommand says so as Redis does; clients look for the beginning.
func unknownCommand(args [][]byte) string {
	told := "" // up to 128 bytes of arguments, with their quotes
	for _, arg := range args[1:] {
		if len(told) >= 128 {
			break
		}
		told += "'" + string(arg[:min(len(arg), 128-len(told))]) + "' "
	}
	return "ERR unknown command '" + clip(args[0]) + "', with args beginning with: " + told
}

// clip is arg, as long as it is worth repeating.
func clip(arg []byte) string { return string(arg[:min(len(arg), 128)]) }

func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

const (
	errSyntax  = "ERR syntax error"
	errNumber  = "ERR value is not an integer or out of range"
	errName    = "ERR queue name must not be empty"
	errLong    = "ERR queue name is too long"
	errLease   = "ERR lease does not exist"
	errJob     = "ERR job does not exist"
	errTimeout = "ERR invalid timeout"
	errNoPerm  = "NOPERM No permissions to access a queue"
)

package resp

import (
	"strings"

	"pawl/acl"
)

// COMMAND.
func cmdCommand(c *conn, _ [][]byte) {
	top := topCommands()
	c.b.out.array(len(top))
	for _, cmd := range top {
		c.b.out.commandInfo(cmd)
	}
}

// topCommands are the commands that are no subcommands.
func topCommands() []*command {
	top := make([]*command, 0, len(byName))
	for _, cmd := range commands {
		if cmd.parent == nil {
			top = append(top, cmd)
		}
	}
	return top
}

// COMMAND COUNT.
func cmdCommandCount(c *conn, _ [][]byte) { c.b.out.integer(int64(len(byName))) }

// COMMAND LIST [FILTERBY MODULE|ACLCAT|PATTERN text].
func cmdCommandList(c *conn, args [][]byte) {
	keep := func(*command) bool { return true }
	if len(args) > 2 {
		if len(args) != 5 || !equalFold(args[2], "FILTERBY") {
			c.failNow(errSyntax)
			return
		}
		text := lower(string(args[4]))
		switch {
		case equalFold(args[3], "MODULE"):
			keep = func(*command) bool { return false }
		case equalFold(args[3], "ACLCAT"):
			class, _ := acl.ParseClass(text)
			keep = func(cmd *command) bool { return cmd.class&class != 0 }
		case equalFold(args[3], "PATTERN") && len(text) <= maxGlobBytes:
			keep = func(cmd *command) bool { return acl.Match(text, []byte(cmd.fullName())) }
		default:
			c.failNow(errSyntax)
			return
		}
	}
	var names []string
	for _, cmd := range topCommands() {
		if keep(cmd) {
			names = append(names, cmd.fullName())
		}
	}
	c.b.out.array(len(names))
	for _, name := range names {
		c.b.out.bulkString(name)
	}
}

// chosen are the commands that a client names, nil for unknown ones, or all of
// them; a subcommand is named with a bar.
func chosen(names [][]byte) []*command {
	if len(names) == 0 {
		return topCommands()
	}
	list := make([]*command, 0, len(names))
	for _, name := range names {
		parent, sub, isSub := strings.Cut(string(name), "|")
		args := [][]byte{[]byte(parent)}
		if isSub {
			args = append(args, []byte(sub))
		}
		cmd, unknown := find(args)
		if unknown && isSub || cmd != nil && isSub && cmd.parent == nil {
			cmd = nil
		}
		list = append(list, cmd)
	}
	return list
}

// COMMAND INFO [name…].
func cmdCommandInfo(c *conn, args [][]byte) {
	list := chosen(args[2:])
	w := &c.b.out
	w.array(len(list))
	for _, cmd := range list {
		if cmd == nil {
			w.null()
			continue
		}
		w.commandInfo(cmd)
	}
}

// flagNames are what Redis calls the flags.
var flagNames = []struct {
	flag flag
	name string
}{
	{flagWrite, "write"}, {flagRead, "readonly"}, {flagFast, "fast"}, {flagBlocking, "blocking"},
	{flagEarly, "loading"}, {flagStranger, "no_auth"}, {flagNoMulti, "no_multi"},
}

// commandInfo is one element of COMMAND: Redis's ten.
func (w *writer) commandInfo(cmd *command) {
	w.array(10)
	w.bulkString(cmd.fullName())
	w.integer(int64(cmd.arity))
	var flags []string
	for _, f := range flagNames {
		if cmd.is(f.flag) {
			flags = append(flags, f.name)
		}
	}
	if cmd.class&acl.Admin != 0 {
		flags = append(flags, "admin")
	}
	w.set(len(flags))
	for _, f := range flags {
		w.simple(f)
	}
	// Queues are no keys: there is nothing to route.
	w.integer(0)
	w.integer(0)
	w.integer(0)
	var classes []string
	for _, name := range acl.ClassNames() {
		if class, _ := acl.ParseClass(name); cmd.class&class != 0 {
			classes = append(classes, name)
		}
	}
	w.set(len(classes))
	for _, name := range classes {
		w.simple("@" + name)
	}
	w.array(0) // tips
	w.array(0) // key specifications
	w.array(len(cmd.sub))
	for _, sub := range cmd.sub {
		w.commandInfo(sub)
	}
}

// COMMAND DOCS [name…]: redis-cli takes its hints from here.
func cmdCommandDocs(c *conn, args [][]byte) {
	known := chosen(args[2:])
	list := known[:0]
	for _, cmd := range known {
		if cmd != nil {
			list = append(list, cmd)
		}
	}
	w := &c.b.out
	w.mapHeader(len(list))
	for _, cmd := range list {
		w.bulkString(cmd.fullName())
		w.commandDocs(cmd)
	}
}

func (w *writer) commandDocs(cmd *command) {
	args, _ := parseSyntax(cmd.syntax) // a test parses all of them
	fields := 3
	if len(args) > 0 {
		fields++
	}
	if len(cmd.sub) > 0 {
		fields++
	}
	w.mapHeader(fields)
	w.pairString("summary", cmd.summary)
	w.pairString("since", cmd.since)
	w.pairString("group", cmd.group)
	if len(args) > 0 {
		w.bulkString("arguments")
		w.arguments(args)
	}
	if len(cmd.sub) > 0 {
		w.bulkString("subcommands")
		w.mapHeader(len(cmd.sub))
		for _, sub := range cmd.sub {
			w.bulkString(sub.fullName())
			w.commandDocs(sub)
		}
	}
}

func (w *writer) arguments(args []argument) {
	w.array(len(args))
	for _, a := range args {
		fields := 2
		for _, more := range []bool{a.token != "", a.optional || a.multiple, len(a.parts) > 0} {
			if more {
				fields++
			}
		}
		w.mapHeader(fields)
		w.pairString("name", a.name)
		w.pairString("type", a.kind)
		if a.token != "" {
			w.pairString("token", a.token)
		}
		if a.optional || a.multiple {
			var flags []string
			if a.optional {
				flags = append(flags, "optional")
			}
			if a.multiple {
				flags = append(flags, "multiple")
			}
			w.bulkString("flags")
			w.set(len(flags))
			for _, f := range flags {
				w.simple(f)
			}
		}
		if len(a.parts) > 0 {
			w.bulkString("arguments")
			w.arguments(a.parts)
		}
	}
}

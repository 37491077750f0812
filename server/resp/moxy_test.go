package resp_test

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"pawl/server/resp"
)

// The reasons why an answer is another one than Moxy's. Each is a heading of
// docs/moxy.md.
const (
	whyID      = "IDs have our own form"
	whyArity   = "Wrong arity is told as Redis tells it"
	whyUnknown = "Unknown commands are told as Redis tells it"
	whyMore    = "There are more commands"
	whyEcho    = "PING answers its argument"
	whyInline  = "Inline commands are taken"
	whyLong    = "Leases that cannot be represented are refused"
	whyLate    = "A lease ends at its deadline"
	whyQuit    = "QUIT closes"
	whyMany    = "ACK takes several leases"
	whyDropped = "A payload over the limit is read and refused"
)

// moxyRow is one input of the probe that was run against the real Moxy, what
// that answered, and what we do if it is something else.
type moxyRow struct {
	name  string
	conn  string // empty is the one most rows share; "new" is one for itself
	send  string
	eof   bool // finish sending
	moxy  string
	want  string // empty is the same
	close bool   // the connection is closed afterwards; by both unless why says otherwise
	why   string // why want differs
}

const (
	noStats  = "*10\r\n$5\r\nready\r\n:0\r\n$10\r\nprocessing\r\n:0\r\n$4\r\ndead\r\n:0\r\n$13\r\nactive_leases\r\n:0\r\n$4\r\nheap\r\n:0\r\n"
	enqueued = "*2\r\n$7\r\ntask_id\r\n$36\r\n<ID>\r\n"
	pawlTask = "*2\r\n$7\r\ntask_id\r\n$26\r\n<ID>\r\n"
)

func statsLine(ready, leased string) string {
	return "*10\r\n$5\r\nready\r\n:" + ready + "\r\n$10\r\nprocessing\r\n:" + leased + "\r\n$4\r\ndead\r\n:0\r\n$13\r\nactive_leases\r\n:" + leased +
		"\r\n$4\r\nheap\r\n:" + leased + "\r\n"
}

func moxyTask(payload string) string { return fetched("36", "36", payload) }
func ourTask(payload string) string  { return fetched("23", "26", payload) }

func fetched(lease, task, payload string) string {
	return "*6\r\n$8\r\nlease_id\r\n$" + lease + "\r\n<ID>\r\n$7\r\ntask_id\r\n$" + task + "\r\n<ID>\r\n$7\r\npayload\r\n" + payload
}

func wrongArity(name string) string {
	return "-ERR wrong number of arguments for '" + name + "' command\r\n"
}

func unknown(text string) string {
	return "-ERR unknown command " + text + "\r\n"
}

const (
	invalid    = "-ERR invalid arguments\r\n"
	emptyName  = "-ERR queue name must not be empty\r\n"
	badTimeout = "-ERR invalid timeout\r\n"
	positive   = "-ERR lease timeout must be positive\r\n"
	tooLong    = "-ERR lease timeout cannot be represented\r\n"
	noLease    = "-ERR lease does not exist\r\n"
	noCommand  = "-ERR unknown command\r\n"
	notArray   = "-ERR expected array command\r\n"
	elements   = "-ERR command elements must be bulk strings\r\n"
	malformed  = "-ERR malformed RESP value: "
	tooLarge   = "-ERR RESP value too large\r\n"
)

var moxyRows = []moxyRow{
	{name: "PING", send: command("PING"), moxy: "+PONG\r\n"},
	{name: "ping lower", send: command("ping"), moxy: "+PONG\r\n"},
	{name: "PING arg", send: command("PING", "hi"), moxy: "+PONG\r\n", want: "$2\r\nhi\r\n", why: whyEcho},
	{name: "STATS unknown", send: command("MOXY.STATS", "nope"), moxy: noStats},
	{name: "STATS empty name", send: command("MOXY.STATS", ""), moxy: noStats},
	{name: "STATS arity0", send: command("MOXY.STATS"), moxy: invalid, want: wrongArity("stats"), why: whyArity},
	{name: "ENQ", send: command("MOXY.ENQUEUE", "jobs", "hello"), moxy: enqueued, want: pawlTask, why: whyID},
	{name: "ENQ empty payload", send: command("MOXY.ENQUEUE", "jobs", ""), moxy: enqueued, want: pawlTask, why: whyID},
	{name: "ENQ binary", send: command("MOXY.ENQUEUE", "jobs", "\x00\r\n\xff$5"), moxy: enqueued, want: pawlTask, why: whyID},
	{name: "ENQ arity1", send: command("MOXY.ENQUEUE", "jobs"), moxy: invalid, want: wrongArity("enqueue"), why: whyArity},
	{name: "ENQ arity3", send: command("MOXY.ENQUEUE", "jobs", "a", "b"), moxy: invalid, want: "-ERR syntax error\r\n", why: whyArity},
	{name: "ENQ empty queue", send: command("MOXY.ENQUEUE", "", "a"), moxy: emptyName},
	{name: "ENQ blank queue", send: command("MOXY.ENQUEUE", " \t", "a"), moxy: emptyName},
	{name: "enqueue lower", send: command("moxy.enqueue", "lower", "a"), moxy: enqueued, want: pawlTask, why: whyID},
	{name: "STATS jobs", send: command("MOXY.STATS", "jobs"), moxy: statsLine("3", "0")},
	{name: "FETCH unknown queue", send: command("MOXY.FETCH", "nothere", "1000"), moxy: "$-1\r\n"},
	{name: "FETCH 0", send: command("MOXY.FETCH", "jobs", "0"), moxy: positive},
	{name: "FETCH -1", send: command("MOXY.FETCH", "jobs", "-1"), moxy: positive},
	{name: "FETCH abc", send: command("MOXY.FETCH", "jobs", "abc"), moxy: badTimeout},
	{name: "FETCH 1.5", send: command("MOXY.FETCH", "jobs", "1.5"), moxy: badTimeout},
	{name: "FETCH empty", send: command("MOXY.FETCH", "jobs", ""), moxy: badTimeout},
	{name: "FETCH 9223372036854775808", send: command("MOXY.FETCH", "jobs", "9223372036854775808"), moxy: badTimeout},
	{name: "FETCH 9223372036854775807", send: command("MOXY.FETCH", "jobs", "9223372036854775807"), moxy: positive, want: tooLong, why: whyLong},
	{name: "FETCH 9223372036855", send: command("MOXY.FETCH", "jobs", "9223372036855"), moxy: positive, want: tooLong, why: whyLong},
	{name: `FETCH "" abc`, send: command("MOXY.FETCH", "", "abc"), moxy: badTimeout},
	{name: `FETCH "" 0`, send: command("MOXY.FETCH", "", "0"), moxy: emptyName},
	{name: "FETCH 0 on empty queue", send: command("MOXY.FETCH", "nothere", "0"), moxy: positive},
	{name: "FETCH arity", send: command("MOXY.FETCH", "jobs"), moxy: invalid, want: wrongArity("fetch"), why: whyArity},
	{name: "FETCH +500", send: command("MOXY.FETCH", "jobs", "+60000"), moxy: moxyTask("$5\r\nhello\r\n"), want: ourTask("$5\r\nhello\r\n"), why: whyID},
	{name: "STATS jobs (1 leased)", send: command("MOXY.STATS", "jobs"), moxy: statsLine("2", "1")},
	{name: "ACK from another conn", conn: "other", send: command("MOXY.ACK", "<LEASE>"), moxy: "+OK\r\n"},
	{name: "ACK again", send: command("MOXY.ACK", "<LEASE>"), moxy: noLease},
	{name: "STATS jobs after ack", send: command("MOXY.STATS", "jobs"), moxy: statsLine("2", "0")},
	{name: "ACK empty", send: command("MOXY.ACK", ""), moxy: noLease},
	{name: "ACK arity", send: command("MOXY.ACK"), moxy: invalid, want: wrongArity("ack"), why: whyArity},
	{name: "ACK 2 args", send: command("MOXY.ACK", "a", "b"), moxy: invalid, want: "*2\r\n:0\r\n:0\r\n", why: whyMany},
	{name: "FETCH empty payload item", send: command("MOXY.FETCH", "jobs", "1"), moxy: moxyTask("$0\r\n\r\n"), want: ourTask("$0\r\n\r\n"), why: whyID},
	{name: "late ACK before reaper", send: command("MOXY.ACK", "<LEASE>"), moxy: "+OK\r\n", want: noLease, why: whyLate},
	{name: "FETCH binary item", send: command("MOXY.FETCH", "jobs", "60000"), moxy: moxyTask("$6\r\n\x00\r\n\xff$5\r\n"), want: ourTask("$6\r\n\x00\r\n\xff$5\r\n"), why: whyID},
	{name: "FETCH order 1", send: command("MOXY.FETCH", "jobs", "60000"), moxy: moxyTask("$0\r\n\r\n"), want: ourTask("$0\r\n\r\n"), why: whyID},
	{name: "STATS right after", send: command("MOXY.STATS", "jobs"), moxy: statsLine("0", "2")},

	{name: "NOPE", send: command("NOPE", "x"), moxy: noCommand, want: unknown("'NOPE', with args beginning with: 'x' "), why: whyUnknown},
	{name: "GET", send: command("GET", "x"), moxy: noCommand, want: unknown("'GET', with args beginning with: 'x' "), why: whyUnknown},
	{name: "HELLO", send: command("HELLO", "x"), moxy: noCommand, want: "-ERR Protocol version is not an integer or out of range\r\n", why: whyMore},
	{name: "CLIENT", send: command("CLIENT", "x"), moxy: noCommand, want: "-ERR unknown subcommand 'x'. Try CLIENT HELP.\r\n", why: whyMore},
	{name: "COMMAND", send: command("COMMAND", "x"), moxy: noCommand, want: "-ERR unknown subcommand 'x'. Try COMMAND HELP.\r\n", why: whyMore},
	{name: "QUIT", conn: "new", send: command("QUIT", "x"), moxy: noCommand, want: "+OK\r\n", close: true, why: whyQuit},
	{name: "AUTH", send: command("AUTH", "x"), moxy: noCommand, want: "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\r\n", why: whyMore},
	{name: "SELECT", send: command("SELECT", "x"), moxy: noCommand, want: "-ERR value is not an integer or out of range\r\n", why: whyMore},
	{name: "MOXY.", send: command("MOXY.", "x"), moxy: noCommand, want: unknown("'MOXY.', with args beginning with: 'x' "), why: whyUnknown},
	{name: "MOXY.NACK", send: command("MOXY.NACK", "x"), moxy: noCommand, want: noLease, why: whyMore},
	{name: "empty cmd name", send: command(""), moxy: noCommand, want: unknown("'', with args beginning with: "), why: whyUnknown},

	{name: "*0", send: "*0\r\n", moxy: invalid},
	{name: "+PING (non array)", send: "+PING\r\n", moxy: notArray},
	{name: ":1", send: ":1\r\n", moxy: notArray},
	{name: "-ERR x", send: "-ERR x\r\n", moxy: notArray},
	{name: "$4 PING", send: "$4\r\nPING\r\n", moxy: notArray},
	{name: "int elem", send: "*2\r\n$4\r\nPING\r\n:1\r\n", moxy: elements},
	{name: "null elem", send: "*2\r\n$4\r\nPING\r\n$-1\r\n", moxy: elements},
	{name: "nested arr", send: "*2\r\n$4\r\nPING\r\n*1\r\n$1\r\na\r\n", moxy: elements},
	{name: "pipelined 3", send: command("PING") + command("NOPE") + command("PING"), moxy: "+PONG\r\n" + noCommand + "+PONG\r\n",
		want: "+PONG\r\n" + unknown("'NOPE', with args beginning with: ") + "+PONG\r\n", why: whyUnknown},

	{name: "inline PING", conn: "new", send: "PING\r\n", moxy: malformed + "unknown type byte 'P'\r\n", want: "+PONG\r\n", why: whyInline},
	{name: "*-1", conn: "new", send: "*-1\r\n", moxy: malformed + "invalid array length\r\n", close: true},
	{name: "*x", conn: "new", send: "*x\r\n", moxy: malformed + "invalid array length\r\n", close: true},
	{name: "*1025", conn: "new", send: "*1025\r\n", moxy: tooLarge, close: true},
	{name: "$-2", conn: "new", send: "*1\r\n$-2\r\n", moxy: malformed + "invalid bulk length\r\n", close: true},
	{name: "$x", conn: "new", send: "*1\r\n$x\r\n", moxy: malformed + "invalid bulk length\r\n", close: true},
	{name: ":x", conn: "new", send: ":x\r\n", moxy: malformed + "invalid integer\r\n", close: true},
	{name: "LF only", conn: "new", send: "*1\n", moxy: malformed + "missing CRLF\r\n", close: true},
	{name: "bad bulk term", conn: "new", send: "*1\r\n$4\r\nPINGxx", moxy: malformed + "missing bulk CRLF\r\n", close: true},
	{name: "bulk 1048577", conn: "new", send: "*1\r\n$1048577\r\n" + strings.Repeat("z", 1048577) + "\r\n", moxy: tooLarge,
		want: "-TOOLARGE payload is over the limit\r\n", why: whyDropped},
	{name: "bulk over 64 MiB", conn: "new", send: "*1\r\n$67108864\r\n", moxy: tooLarge, close: true},
	{name: "long line", conn: "new", send: "+" + strings.Repeat("a", 4200) + "\r\n", moxy: tooLarge, close: true},
	{name: `\r\n only`, conn: "new", send: "\r\n" + command("PING"), moxy: malformed + `unknown type byte '\r'` + "\r\n", want: "+PONG\r\n", why: whyInline},
	{name: "NUL", conn: "new", send: "\x00", moxy: malformed + `unknown type byte '\x00'` + "\r\n", close: true},
	{name: "half close in bulk", conn: "new", send: "*1\r\n$4\r\nPI", eof: true, moxy: malformed + "missing bulk terminator\r\n", close: true},
	{name: "half close between elems", conn: "new", send: "*1\r\n", eof: true, close: true},
	{name: "half close in line", conn: "new", send: "*1", eof: true, moxy: malformed + "missing CRLF\r\n", close: true},
	{name: "payload 1048576", conn: "new", send: command("MOXY.ENQUEUE", "big", strings.Repeat("z", 1048576)), moxy: enqueued, want: pawlTask, why: whyID},
	{name: "payload 1048577", conn: "new", send: command("MOXY.ENQUEUE", "big", strings.Repeat("z", 1048577)), moxy: tooLarge,
		want: "-TOOLARGE payload is over the limit\r\n", why: whyDropped},
	{name: "1024 args", conn: "new", send: command(append([]string{"PING"}, make([]string, 1023)...)...), moxy: "+PONG\r\n", want: wrongArity("ping"), why: whyArity},
	{name: "1025 args", conn: "new", send: command(append([]string{"PING"}, make([]string, 1024)...)...), moxy: tooLarge, close: true},
}

// TestMoxyProbe runs the inputs that were once run against the real Moxy. Every
// answer that is not Moxy's must have its reason, and every reason its section
// in docs/moxy.md.
func TestMoxyProbe(t *testing.T) {
	doc, err := os.ReadFile("../../docs/moxy.md")
	if err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, resp.Options{})
	conns := make(map[string]*peer)
	lease := ""
	ids := regexp.MustCompile(`\r\n(?:[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-hjkmnp-tv-z]{23})\r\n`)
	for _, row := range moxyRows {
		want := row.want
		if row.why == "" {
			want = row.moxy
		}
		switch {
		case row.why == "" && row.want != "", row.why != "" && row.want == row.moxy:
			t.Fatalf("%s: the row does not say what it means", row.name)
		case row.why != "" && !strings.Contains(string(doc), "## "+row.why+"\n"):
			t.Errorf("%s: docs/moxy.md has no section %q", row.name, row.why)
		}
		c := conns[row.conn]
		if c == nil || row.conn == "new" {
			c = d.dial()
			conns[row.conn] = c
		}
		if row.name == "late ACK before reaper" {
			time.Sleep(5 * time.Millisecond) // longer than its lease
		}
		if row.name == "FETCH order 1" {
			d.until("the ended lease's job is ready again", func() bool {
				return strings.HasPrefix(d.dial().do("STATS", "jobs"), `["ready" 1 `)
			})
		}
		send := row.send
		if strings.Contains(send, "<LEASE>") {
			send = command("MOXY.ACK", lease)
		}
		// Behind an open connection's answer stands that of a second command, so
		// that what was read is known to be all.
		mark := ""
		if !row.close {
			send += command("ECHO", "mark")
			mark = "$4\r\nmark\r\n"
		}
		c.send(send)
		if row.eof {
			c.closeWrite()
		}
		var got string
		if row.close {
			got = c.closed()
		} else {
			got = c.readTo(mark)
		}
		if id := regexp.MustCompile(`\r\n([0-9a-hjkmnp-tv-z]{23})\r\n`).FindStringSubmatch(got); id != nil {
			lease = id[1]
		}
		if got = ids.ReplaceAllString(got, "\r\n<ID>\r\n"); got != want {
			t.Errorf("%s: got %q, want %q", row.name, got, want)
		}
	}
}

// readTo reads up to mark, which it takes off.
func (p *peer) readTo(mark string) string {
	p.t.Helper()
	var b strings.Builder
	for !strings.HasSuffix(b.String(), mark) {
		c, err := p.r.ReadByte()
		if err != nil {
			if err == io.EOF {
				p.t.Errorf("closed after %q", b.String())
				return b.String()
			}
			p.t.Fatal(err)
		}
		b.WriteByte(c)
	}
	return strings.TrimSuffix(b.String(), mark)
}

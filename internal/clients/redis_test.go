//go:build linux

package clients_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/child"
)

var update = flag.Bool("update", false, "write what Redis and Pawl answer differently into testdata/redis.txt")

// conversation is a case of testdata/redis.txt: what is sent over one connection,
// and how the answers differ if they may.
type conversation struct {
	line     string // as in the file
	password bool   // the server wants one
	send     string
	why      []string // comments behind it
	differ   []string // lines of the two answers
}

// readConversations reads the file: a case is a line that begins with open or
// auth, for a server without or with a password, and commands with semicolons
// between them; a word in quotes is Go's, and raw is followed by bytes that are
// sent as they are. Below it stand, indented, the reason of a difference and both
// answers.
func readConversations(t *testing.T, name string) (head []string, list []*conversation) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "\t#"):
			c := list[len(list)-1]
			c.why = append(c.why, line)
		case strings.HasPrefix(line, "\t"):
			c := list[len(list)-1]
			c.differ = append(c.differ, line)
		case line == "" || strings.HasPrefix(line, "#"):
			if len(list) == 0 {
				head = append(head, line)
			}
		default:
			c := &conversation{line: line}
			kind, rest, _ := strings.Cut(line, " ")
			if kind != "open" && kind != "auth" {
				t.Fatalf("neither open nor auth: %s", line)
			}
			c.password = kind == "auth"
			for _, words := range splitWords(t, rest) {
				c.send += encode(words)
			}
			list = append(list, c)
		}
	}
	return head, list
}

// splitWords gives the words of each command of a line.
func splitWords(t *testing.T, line string) (commands [][]string) {
	t.Helper()
	var words []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		switch {
		case line[0] == '"':
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			word, _ := strconv.Unquote(quoted)
			words, line = append(words, word), line[len(quoted):]
		case line[0] == ';':
			commands, words, line = append(commands, words), nil, line[1:]
		default:
			word, rest, _ := strings.Cut(line, " ")
			words, line = append(words, word), rest
		}
	}
	return append(commands, words)
}

func encode(words []string) string {
	if words[0] == "raw" {
		return strings.Join(words[1:], "")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// last is sent behind every conversation, so that its end is seen.
const last = "the end of the case"

// ids are what differs from one connection to the next.
var ids = regexp.MustCompile(`(\$2\r\nid\r\n):\d+`)

// converse says all of it and gives the bytes of the answer; a close is told.
func converse(t *testing.T, addr, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	end := fmt.Sprintf("$%d\r\n%s\r\n", len(last), last)
	go io.WriteString(conn, text+encode([]string{"ECHO", last}))
	var got []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buf)
		got = append(got, buf[:n]...)
		switch {
		case bytes.HasSuffix(got, []byte(end)):
			return ids.ReplaceAllString(strings.TrimSuffix(string(got), end), "$1:ID")
		// Behind a login that is missing the end is refused like all else.
		case bytes.HasSuffix(got, []byte("-NOAUTH Authentication required.\r\n")) && endsUnknown(conn, &got):
			return ids.ReplaceAllString(string(got), "$1:ID") + "(not logged in)"
		case errors.Is(err, os.ErrDeadlineExceeded):
			t.Errorf("%q: %s does not end it: %q", text, addr, got)
			return string(got) + "(open)"
		case err != nil:
			return string(got) + "(closed)"
		}
	}
}

// endsUnknown says whether nothing follows for a while.
func endsUnknown(conn net.Conn, got *[]byte) bool {
	conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	defer conn.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 64<<10)
	n, err := conn.Read(buf)
	*got = append(*got, buf[:n]...)
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

// startRedis starts Redis itself.
func startRedis(t *testing.T, args ...string) (addr string) {
	t.Helper()
	program := need(t, "redis-server", "redis-server")
	if version, err := exec.Command(program, "--version").Output(); err != nil || !strings.Contains(string(version), " v=7.0.") {
		t.Skipf("the answers on file are those of Redis 7.0, this is %s%v", version, err)
	}
	addr = daemonPort(uint64(3 + len(args)))
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(program, append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, args...)...)
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.End(syscall.SIGTERM) })
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			return addr
		}
		if time.Now().After(end) {
			t.Fatal("Redis does not answer")
		}
	}
}

// What Pawl takes over from Redis it answers byte by byte as Redis does; where it
// does not, testdata/redis.txt says why.
func TestAsRedis(t *testing.T) {
	const name = "testdata/redis.txt"
	head, list := readConversations(t, name)
	redis, guarded := startRedis(t), startRedis(t, "--requirepass", "s3cret")
	file := filepath.Join(t.TempDir(), "pawl.toml") // the worker is the harness's
	if err := os.WriteFile(file, []byte("[users]\nworker = \"on >s3cret +@all ~*\"\ndefault = \"on >s3cret +@all ~*\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, ourGuarded := startWith(t, daemonPort(10)), startWith(t, daemonPort(11), "--config", file)
	var text strings.Builder
	text.WriteString(strings.Join(head, "\n") + "\n")
	differ := 0
	for _, c := range list {
		theirAddr, ourAddr := redis, ours.addr
		if c.password {
			theirAddr, ourAddr = guarded, ourGuarded.addr
		}
		want, got := converse(t, theirAddr, c.send), converse(t, ourAddr, c.send)
		var lines []string
		if want != got {
			differ++
			lines = []string{fmt.Sprintf("\tredis %q", want), fmt.Sprintf("\tpawl  %q", got)}
		}
		fmt.Fprintln(&text, c.line)
		for _, line := range append(append([]string(nil), c.why...), lines...) {
			fmt.Fprintln(&text, line)
		}
		if *update {
			continue
		}
		if strings.Join(lines, "\n") != strings.Join(c.differ, "\n") {
			t.Errorf("%s\n%s\nwant\n%s", c.line, strings.Join(lines, "\n"), strings.Join(c.differ, "\n"))
		}
		if len(lines) > 0 && len(c.why) == 0 {
			t.Errorf("%s: there is no reason for the difference", c.line)
		}
		if len(lines) == 0 && len(c.why) > 0 {
			t.Errorf("%s: there is no difference any more", c.line)
		}
	}
	t.Logf("%d conversations, %d differ as they may", len(list), differ)
	if *update {
		if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

//go:build linux

package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// redis-cli in each of its ways to run: what it prints, and what it says where
// there is nothing of the kind here, which is a refusal and no crash.
func TestRedisCLIModes(t *testing.T) {
	path := need(t, "redis-cli", "redis-tools")
	startWith(t, port)
	const id = `[0-9A-HJKMNP-TV-Z]{26}`
	for _, c := range []struct {
		name, in string
		args     string // a space between any two
		want     string // a regular expression for all it prints
		code     int
	}{
		{"argument", "", "ENQUEUE args hello", `task_id\n` + id + `\n`, 0},
		{"last argument from input", "a\x00b", "-x ENQUEUE input", `task_id\n` + id + `\n`, 0},
		{"it came whole", "", "--no-raw FETCH input 60000", `1\) "lease_id"\n2\) ".{23}"\n3\) "task_id"\n4\) "` + id + `"\n5\) "payload"\n6\) "a\\x00b"\n`, 0},
		{"tagged argument from input", "body", "-X tag ENQUEUE tag tag", `task_id\n` + id + `\n`, 0},
		{"json of a map, an array in RESP2", "", "--json QUEUE INFO args", `(\["queue","args",.*"settings",\[.*\]\]|\{"queue":"args",.*"settings":\{.*\}\})\n`, 0},
		{"json of an array", "", "--json ENQUEUE args x", `\["task_id","` + id + `"\]\n`, 0},
		{"json of null", "", "--json FETCH none 60000", "null\n", 0},
		{"csv", "", "--csv QUEUE INFO args", `"queue","args","ready",\d+,.*\n`, 0},
		{"delimiter", "", "-d | ENQUEUE args x", `task_id\|` + id + `\n`, 0},
		{"repeat and wait", "", "-r 3 -i 0.01 PING", "PONG\nPONG\nPONG\n", 0},
		{"repeat a command", "", "-r 2 ENQUEUE twice x", `(task_id\n` + id + `\n){2}`, 0},
		{"error as an exit code", "", "-e NONSENSE", "ERR unknown command 'NONSENSE', with args beginning with: \n", 1},
		{"url", "", "-u redis://127.0.0.1:" + number(port) + "/0 PING", "PONG\n", 0},
		{"cluster", "", "-c ENQUEUE args x", `task_id\n` + id + `\n`, 0},
		{"no other database", "", "-n 3 PING", "SELECT 3 failed: ERR DB index is out of range\nPONG\n", 0},
		{"latency", "", "--latency -i 0.1 --raw", `\d+ \d+ [0-9.]+ \d+\n`, 0},
		{"mass insertion", "ENQUEUE pipe a\r\nENQUEUE pipe b\r\nNONSENSE\r\n", "--pipe", `(?s).*errors: 1, replies: 3\n`, 1},
		{"no keys to scan", "", "--scan", `SCAN error: ERR unknown command 'SCAN', with args beginning with: '0' \n`, 1},
		{"no big keys", "", "--bigkeys", `(?s).*SCAN error: ERR unknown command 'SCAN', with args beginning with: '0' \n.*`, 1},
		{"no memory of keys", "", "--memkeys", `(?s).*SCAN error: ERR unknown command 'SCAN', with args beginning with: '0' \n.*`, 1},
		{"no hot keys", "", "--hotkeys", `(?s).*SCAN error: ERR unknown command 'SCAN', with args beginning with: '0' \n.*`, 1},
		{"no messages", "", "SUBSCRIBE x", "ERR unknown command 'SUBSCRIBE', with args beginning with: 'x' \n\n", 0},
		{"no scripts", "", "--eval /dev/null", "ERR unknown command 'EVAL', with args beginning with: '' '0' \n\n", 0},
		{"no replica", "", "--replica", `(?s).*SYNC with master failed: -ERR unknown command 'SYNC', with args beginning with: .*`, 1},
		{"no dump", "", "--rdb " + os.DevNull, `(?s).*SYNC with master failed: -ERR unknown command 'SYNC', with args beginning with: .*`, 1},
		{"no node of a cluster", "", "--cluster info 127.0.0.1:" + number(port), `(?s).*is not configured as a cluster node\..*`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, resp := range []string{"-2", "-3"} {
				cmd := exec.Command(path, append([]string{"-p", number(port), resp}, strings.Fields(c.args)...)...)
				cmd.Stdin = strings.NewReader(c.in)
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				if code := cmd.ProcessState.ExitCode(); code != c.code || !regexp.MustCompile(`^(?:`+c.want+`)$`).Match(out) {
					t.Errorf("redis-cli %s %s: exit code %d, want %d, printed\n%s\nwant %s", resp, c.args, code, c.code, out, c.want)
				}
			}
		})
	}
}

// What redis-cli shows until it is told to end: the first lines are there.
func TestRedisCLIWatches(t *testing.T) {
	path := need(t, "redis-cli", "redis-tools")
	startWith(t, port)
	cli := redisCLI{t, path, []string{"-p", number(port)}, ""}
	for _, c := range []struct {
		name, args string
		want       []string // expressions, of lines that follow one another
	}{
		{"stat", "--stat -i 0.05", []string{`^-+ data -+ -+ load -+ - child -$`, `^keys +mem +clients blocked requests +connections +$`, `^\d+ +[0-9.]+[KMG] +\d+ +\d+ +\d+ \(\+\d+\) +\d+ +$`, `^\d+ .*\(\+1\)`}},
		{"latency", "--latency-history -i 0.05 --raw", []string{`^\d+ \d+ [0-9.]+ \d+$`, `^\d+ \d+ [0-9.]+ \d+$`}},
		{"monitor", "MONITOR", []string{`^OK$`, `^[0-9.]+ \[0 127\.0\.0\.1:\d+\] "ENQUEUE" "seen" "hello"$`}},
		{"monitor in RESP3", "-3 MONITOR", []string{`^OK$`, `^[0-9.]+ \[0 127\.0\.0\.1:\d+\] "ENQUEUE" "seen" "hello"$`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// stdbuf, since redis-cli keeps back what it prints to a pipe.
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, need(t, "stdbuf", "coreutils"), append([]string{"-oL", path, "-p", number(port)}, strings.Fields(c.args)...)...)
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for _, want := range c.want {
				if !lines.Scan() || !regexp.MustCompile(want).MatchString(lines.Text()) {
					t.Errorf("got %q, want %s", lines.Text(), want)
					break
				}
				if lines.Text() == "OK" {
					cli.ask("", "ENQUEUE", "seen", "hello")
				}
			}
			cmd.Process.Kill()
			cmd.Wait()
			if said.Len() > 0 {
				t.Errorf("redis-cli warns:\n%s", said.String())
			}
		})
	}
}

// At a terminal redis-cli hints while one types, completes and helps, by COMMAND
// DOCS, and goes on in RESP3 after HELLO 3.
func TestRedisCLITerminal(t *testing.T) {
	path := need(t, "redis-cli", "redis-tools")
	startWith(t, port)
	// script gives it a terminal; echo off, so that only redis-cli prints.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, need(t, "script", "bsdutils"), "-qec", fmt.Sprintf("stty cols 250 rows 50 -echo; %s -p %s", path, number(port)), os.DevNull)
	cmd.Env = append(os.Environ(), "TERM=xterm", "HOME="+t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	var seen []byte
	buf := make([]byte, 4096)
	for _, step := range []struct{ want, send string }{
		{`> `, "enqueue mail"},
		{` payload \[DELAY`, " hello\r"}, // a hint
		{`2\) "[0-9A-Z]{26}"[^>]*> `, "help enqueue\r"},
		{`Adds a job to a queue\.[^>]*> `, "queue del\t mail\r"}, // completed
		{`QUEUE DELETE.*OK[^>]*> `, "hello 3\r"},
		{`# "proto" => \(integer\) 3(?s).*modules[^>]*> `, "config get save\r"},
		{`1# "save" => ""[^>]*> `, "exit\r"},
	} {
		for !regexp.MustCompile(`(?s)` + step.want).Match(seen) {
			n, err := out.Read(buf)
			if err != nil {
				t.Fatalf("redis-cli ends (%v) before %s, after\n%q", err, step.want, seen)
			}
			seen = append(seen, buf[:n]...)
		}
		seen = nil
		if _, err := io.WriteString(in, step.send); err != nil {
			t.Fatal(err)
		}
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("redis-cli ends with %v, said at last %q", err, rest)
	}
}

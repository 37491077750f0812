//go:build linux

package clients_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRedisPy(t *testing.T) {
	// Debian's python, which has Debian's modules.
	python := need(t, "/usr/bin/python3", "python3-redis")
	t.Run("own", func(t *testing.T) { play(t, "redis-py", python, "-W", "error", "testdata/redispy.py", "PythonParser") })
	t.Run("hiredis", func(t *testing.T) {
		play(t, "redis-py, hiredis's parser", python, "-W", "error", "testdata/redispy.py", "HiredisParser")
	})
	t.Run("asyncio", func(t *testing.T) { play(t, "redis-py, asyncio", python, "-W", "error", "testdata/redispy_asyncio.py") })
}

func TestPerl(t *testing.T) {
	perl := need(t, "perl", "perl")
	t.Run("Redis", func(t *testing.T) { play(t, "Redis.pm", perl, "testdata/redis.pl", "Redis") })
	t.Run("Fast", func(t *testing.T) { play(t, "Redis::Fast", perl, "testdata/redis.pl", "Redis::Fast") })
}

func TestPHP(t *testing.T) {
	php := []string{"-d", "display_errors=stderr", "-d", "error_reporting=-1", "testdata/redis.php"}
	for _, name := range []string{"phpredis", "Predis"} {
		t.Run(name, func(t *testing.T) {
			play(t, name, need(t, "php", "php-cli, php-redis and php-predis"), append(php, strings.ToLower(name))...)
		})
	}
}

func TestRuby(t *testing.T) {
	play(t, "redis-rb", need(t, "ruby", "ruby-redis"), "-w", "testdata/redis.rb")
}

func TestLua(t *testing.T) {
	play(t, "redis-lua", need(t, "lua5.1", "lua5.1 and lua-redis"), "testdata/redis.lua")
}

// The clients of Go that are not in this module's go.mod are in one of their own.
func TestGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "go")
	build := exec.Command(need(t, "go", "Go"), "build", "-o", program, ".")
	build.Dir = "testdata/go"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"redigo", "rueidis", "radix"} {
		t.Run(name, func(t *testing.T) { play(t, name, program, name) })
	}
}

func TestIoredis(t *testing.T) {
	for _, major := range []string{"5", "6"} {
		t.Run(major, func(t *testing.T) {
			play(t, "ioredis "+major, need(t, "node", "nodejs"), "--trace-warnings", filepath.Join(modules(t), "ioredis.js"), "ioredis"+major)
		})
	}
}

func TestNodeRedis(t *testing.T) {
	for _, major := range []string{"4", "5", "6"} {
		t.Run(major, func(t *testing.T) {
			play(t, "node-redis "+major, need(t, "node", "nodejs"), "--trace-warnings", filepath.Join(modules(t), "noderedis.js"), "redis"+major)
		})
	}
}

func TestGlide(t *testing.T) {
	play(t, "Valkey GLIDE", need(t, "node", "nodejs"), "--trace-warnings", filepath.Join(modules(t), "glide.js"))
}

func TestBun(t *testing.T) {
	dir := modules(t)
	play(t, "Bun", need(t, filepath.Join(dir, "node_modules", ".bin", "bun"), "bun"), filepath.Join(dir, "bun.js"))
}

// modules is a copy of testdata/node with the clients installed below it.
// PAWL_NODE_MODULES names a directory that has them already.
func modules(t *testing.T) string {
	t.Helper()
	need(t, "node", "nodejs")
	dir := os.Getenv("PAWL_NODE_MODULES")
	if dir == "" {
		t.Fatal("set PAWL_NODE_MODULES to the node_modules of: npm install in internal/clients/testdata/node")
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS("testdata/node")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(copied, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestHiredis(t *testing.T) {
	cc := need(t, "cc", "gcc and libhiredis-dev")
	program := filepath.Join(t.TempDir(), "hiredis")
	if out, err := exec.Command(cc, "-Wall", "-Werror", "-o", program, "testdata/hiredis.c", "-lhiredis").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	play(t, "hiredis", program)
}

// redisCLI runs redis-cli; a warning of it is a failure.
type redisCLI struct {
	t        *testing.T
	path     string
	to       []string // arguments that say where
	password string   // of the user worker; nobody logs in without it
}

func (c redisCLI) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.path, append(slices.Clone(c.to), args...)...)
	if c.password != "" {
		cmd.Args = append([]string{cmd.Args[0], "--user", "worker"}, cmd.Args[1:]...)
		cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+c.password)
	}
	return cmd
}

// ask gives what redis-cli prints for a command, or for commands as its input.
func (c redisCLI) ask(input string, args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	cmd.Stdin = strings.NewReader(input)
	var warnings bytes.Buffer
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || warnings.Len() > 0 {
		c.t.Errorf("redis-cli %q: %v\n%s%s", args, err, out, warnings.String())
	}
	return strings.TrimSpace(string(out))
}

// oneWaits finds it in QUEUE INFO, an array in RESP2 and a map in RESP3.
var oneWaits = regexp.MustCompile(`(?m)^waiting\s1$`)

// life takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits.
func (c redisCLI) life(queue string) {
	c.t.Helper()
	c.ask("", "ENQUEUE", queue, "hello")
	got := strings.Split(c.ask("", "FETCH", queue, "60000"), "\n")
	if len(got) != 6 || got[5] != "hello" {
		c.t.Fatalf("FETCH: got %q", got)
	}
	if got := c.ask("", "ACK", got[1]); got != "OK" {
		c.t.Errorf("ACK: got %q", got)
	}
	var waiting sync.WaitGroup
	var late string
	waiting.Go(func() { late = c.ask("", "FETCH", queue, "60000", "WAIT", "30000") })
	for end := time.Now().Add(patience); !oneWaits.MatchString(c.ask("", "QUEUE", "INFO", queue)); {
		if time.Now().After(end) {
			c.t.Fatal("nobody waits")
		}
	}
	c.ask("", "ENQUEUE", queue, "late")
	waiting.Wait()
	if !strings.HasSuffix(late, "\nlate") {
		c.t.Errorf("FETCH … WAIT: got %q", late)
	}
}

func TestRedisCLI(t *testing.T) {
	path := need(t, "redis-cli", "redis-tools")
	p := start(t, port)
	startTLS(t)
	for _, resp := range []string{"-2", "-3"} {
		cli := redisCLI{t, path, []string{"-p", number(port), resp}, "s3cret"}
		if got := cli.ask("", "ACL", "WHOAMI"); got != "worker" {
			t.Errorf("%s ACL WHOAMI: got %q", resp, got)
		}
		cli.life("cli" + resp)
	}
	cli := redisCLI{t, path, []string{"-p", number(port)}, "s3cret"}
	// From a terminal's input: HELLO, COMMAND DOCS and INFO come before.
	if got := cli.ask("PING\nENQUEUE cli x\nINFO server\n"); !strings.HasPrefix(got, "PONG\ntask_id\n") {
		t.Errorf("lines: got %q", got)
	}
	var mass strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&mass, "*3\r\n$7\r\nENQUEUE\r\n$4\r\nmass\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i)
	}
	if got := cli.ask(mass.String(), "--pipe"); !strings.Contains(got, "errors: 0, replies: 10000") {
		t.Errorf("--pipe: got %q", got)
	}
	if got := cli.ask("", "MOXY.STATS", "mass"); !strings.HasPrefix(got, "ready\n10000\n") {
		t.Errorf("STATS: got %q", got)
	}
	if got := cli.ask("MULTI\nENQUEUE cli-tx a\nENQUEUE cli-tx b\nEXEC\n"); !strings.HasPrefix(got, "OK\nQUEUED\nQUEUED\ntask_id\n") {
		t.Errorf("MULTI: got %q", got)
	}
	redisCLI{t, path, []string{"-p", number(tlsPort), "--tls", "--cacert", authority}, "s3cret"}.life("cli-tls")

	// One session, over the death of the daemon: the command that meets it is
	// lost, as with Redis, the next one connects again.
	session := cli.command()
	var said, warnings bytes.Buffer
	session.Stdout, session.Stderr = &said, &warnings
	in, err := session.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	defer session.Process.Kill()
	command := func() {
		t.Helper()
		if _, err := io.WriteString(in, "ACL WHOAMI\n"); err != nil {
			t.Fatal(err)
		}
	}
	command()
	for end := time.Now().Add(patience); !strings.Contains(cli.ask("", "CLIENT", "LIST"), "cmd=acl|whoami"); {
		if time.Now().After(end) {
			t.Fatal("the session does not begin")
		}
	}
	p.restart()
	command()
	command()
	in.Close()
	if err := session.Wait(); err != nil || !strings.HasPrefix(said.String(), "worker\nworker\n") {
		t.Errorf("the session ended with %v, said %q\n%s", err, said.String(), warnings.String())
	}
	if n := strings.Count(warnings.String(), "\n"); n > 1 || n == 1 && !strings.HasPrefix(warnings.String(), "Error: ") {
		t.Errorf("the session warns: %s", warnings.String())
	}
	checkRow(t, "redis-cli", []string{"login", "enqueue", "wait", "ack", "pipeline", "transaction", "tls", "restart"})
}

func TestRedisBenchmark(t *testing.T) {
	tool := need(t, "redis-benchmark", "redis-tools")
	p := start(t, port)
	startTLS(t)
	plain := []string{"-p", number(port)}
	secure := []string{"-p", number(tlsPort), "--tls", "--cacert", authority}
	run := func(to []string, args ...string) {
		t.Helper()
		args = append(append(append([]string{}, to...), "--user", "worker", "-a", "s3cret", "-c", "20", "-q"), args...)
		out, err := exec.Command(tool, args...).CombinedOutput()
		lower := bytes.ToLower(out)
		if err != nil || !bytes.Contains(out, []byte("requests per second")) || bytes.Contains(lower, []byte("error")) || bytes.Contains(lower, []byte("warning")) {
			t.Errorf("redis-benchmark %q: %v\n%s", args, err, out)
		}
	}
	for _, to := range [][]string{plain, secure} {
		run(to, "-n", "5000", "-t", "ping")
		run(to, "-n", "10000", "-P", "1000", "ENQUEUE", "bench", "__rand_int__")
		run(to, "-n", "5000", "FETCH", "bench", "60000")
		run(to, "-n", "40", "FETCH", "none", "60000", "WAIT", "20")
	}
	if p.restart(); !t.Failed() {
		run(plain, "-n", "5000", "FETCH", "bench", "60000") // what is left
	}
	checkRow(t, "redis-benchmark", []string{"login", "enqueue", "wait", "pipeline", "tls"})
}

// warnings is what go-redis would log.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *warnings) Printf(_ context.Context, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(&w.text, format+"\n", args...)
}

// goLife takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits.
func goLife(ctx context.Context, t *testing.T, r *redis.Client, queue string) {
	t.Helper()
	job, err := r.Do(ctx, "ENQUEUE", queue, "hello").StringSlice()
	if err != nil || len(job) != 2 {
		t.Fatalf("ENQUEUE: got %q, %v", job, err)
	}
	got, err := r.Do(ctx, "FETCH", queue, 60000).StringSlice()
	if err != nil || len(got) != 6 || got[5] != "hello" || got[3] != job[1] {
		t.Fatalf("FETCH: got %q, %v", got, err)
	}
	if err := r.Do(ctx, "ACK", got[1]).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Do(ctx, "ACK", got[1]).Err(); err == nil || err.Error() != "ERR lease does not exist" {
		t.Errorf("a second ACK: got %v", err)
	}
	if err := r.Do(ctx, "FETCH", queue, 60000).Err(); err != redis.Nil {
		t.Errorf("FETCH of nothing: got %v, want redis.Nil", err)
	}
	late := make(chan []string, 1)
	go func() {
		defer close(late)
		got, err := r.Do(ctx, "FETCH", queue, 60000, "WAIT", 30000).StringSlice()
		if err != nil {
			t.Errorf("FETCH … WAIT: %v", err)
			return
		}
		late <- got
	}()
	for {
		info, err := r.Do(ctx, "QUEUE", "INFO", queue).Result()
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := info.(map[any]any); !ok || m["waiting"] == int64(1) {
			if !ok {
				t.Fatalf("QUEUE INFO: got %T, want a map", info)
			}
			break
		}
	}
	if err := r.Do(ctx, "ENQUEUE", queue, "late").Err(); err != nil {
		t.Fatal(err)
	}
	if got := <-late; len(got) != 6 || got[5] != "late" {
		t.Fatalf("FETCH … WAIT: got %q", got)
	} else if err := r.Do(ctx, "ACK", got[1]).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestGoRedis(t *testing.T) {
	p := start(t, port)
	startTLS(t)
	said := new(warnings)
	redis.SetLogger(said)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := redis.NewClient(&redis.Options{Addr: port, Username: "worker", Password: "s3cret", ClientName: "go", ReadTimeout: 40 * time.Second})
	defer r.Close()
	if who, err := r.Do(ctx, "ACL", "WHOAMI").Text(); err != nil || who != "worker" {
		t.Fatalf("ACL WHOAMI: got %q, %v", who, err)
	}
	if name, err := r.ClientGetName(ctx).Result(); err != nil || name != "go" {
		t.Errorf("CLIENT GETNAME: got %q, %v", name, err)
	}
	goLife(ctx, t, r, "go")
	pipe := r.Pipeline()
	for i := range 10000 {
		pipe.Do(ctx, "ENQUEUE", "go-many", i)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	tx := r.TxPipeline()
	tx.Do(ctx, "ENQUEUE", "go-tx", "a")
	tx.Do(ctx, "ENQUEUE", "go-tx", "b")
	if _, err := tx.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	secure := redis.NewClient(&redis.Options{
		Addr: tlsPort, Username: "worker", Password: "s3cret", ReadTimeout: 40 * time.Second, TLSConfig: &tls.Config{RootCAs: pool},
	})
	defer secure.Close()
	goLife(ctx, t, secure, "go-tls")
	if said.text.Len() > 0 {
		t.Errorf("go-redis warns:\n%s", said.text.String())
	}
	p.restart()
	stats, err := r.Do(ctx, "MOXY.STATS", "go-many").Slice()
	if err != nil || len(stats) != 10 || stats[1] != int64(10000) {
		t.Errorf("after a restart: got %v, %v", stats, err)
	}
	if said.text.Len() > 0 {
		t.Errorf("go-redis warns after the restart:\n%s", said.text.String())
	}
	checkRow(t, "go-redis", []string{"login", "enqueue", "wait", "ack", "pipeline", "transaction", "tls", "restart"})
}

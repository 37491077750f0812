package resp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/internal/cert"
	"pawl/server/resp"
)

// goRedis is a client as its users make it, but for the patience of tests.
func goRedis(t *testing.T, opt redis.Options) *redis.Client {
	t.Helper()
	opt.ReadTimeout = patience
	c := redis.NewClient(&opt)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestGoRedis(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{Password: "secret"})
	ctx := t.Context()
	c := goRedis(t, redis.Options{Addr: d.addr, Password: "secret", ClientName: "worker"})
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	if name, err := c.ClientGetName(ctx).Result(); err != nil || name != "worker" {
		t.Errorf("name %q, %v", name, err)
	}
	if info, err := c.ClientInfo(ctx).Result(); err != nil || info.LibName == "" || info.Resp != 3 {
		t.Errorf("client info %+v, %v", info, err)
	}
	if info := c.Info(ctx).Val(); !strings.Contains(info, "redis_version:") || !strings.Contains(info, "loading:0") {
		t.Errorf("info %q", info)
	}
	if cmds, err := c.Command(ctx).Result(); err != nil || cmds["fetch"] == nil {
		t.Errorf("%d commands, %v", len(cmds), err)
	}
	if save, err := c.ConfigGet(ctx, "save").Result(); err != nil || save["save"] != "" {
		t.Errorf("config %v, %v", save, err)
	}

	pipe := c.Pipeline()
	const jobs = 10_000
	for i := range jobs {
		pipe.Do(ctx, "ENQUEUE", "q", fmt.Sprint(i))
	}
	replies, err := pipe.Exec(ctx)
	if err != nil || len(replies) != jobs {
		t.Fatalf("%d replies, %v", len(replies), err)
	}
	stats, err := c.Do(ctx, "STATS", "q").Slice()
	if err != nil || stats[1] != int64(jobs) {
		t.Fatalf("stats %v, %v", stats, err)
	}

	job, err := c.Do(ctx, "FETCH", "q", 60_000).Slice()
	if err != nil || len(job) != 6 || job[5] != "0" {
		t.Fatalf("fetched %v, %v", job, err)
	}
	if err := c.Do(ctx, "ACK", job[1]).Err(); err != nil {
		t.Error(err)
	}
	if err := c.Do(ctx, "ACK", job[1]).Err(); err == nil || err.Error() != "ERR lease does not exist" {
		t.Errorf("second ack: %v", err)
	}
	if err := c.Do(ctx, "FETCH", "empty", 1000).Err(); err != redis.Nil {
		t.Errorf("empty queue: %v, want %v", err, redis.Nil)
	}

	// A blocking fetch on one connection, the enqueue on another.
	got := make(chan []any, 1)
	go func() {
		job, _ := c.Do(ctx, "FETCH", "later", 60_000, "WAIT", 20_000).Slice()
		got <- job
	}()
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
	if err := c.Do(ctx, "ENQUEUE", "later", "now").Err(); err != nil {
		t.Fatal(err)
	}
	if job := <-got; len(job) != 6 || job[5] != "now" {
		t.Errorf("blocking fetch got %v", job)
	}

	// A transaction, by the client's own words for it.
	cmds, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Do(ctx, "ENQUEUE", "tx", "a")
		p.Do(ctx, "ENQUEUE", "tx", "b")
		return nil
	})
	if err != nil || len(cmds) != 2 {
		t.Errorf("transaction: %v, %v", cmds, err)
	}
	info, err := c.Do(ctx, "QUEUE", "INFO", "tx").Result()
	if m, ok := info.(map[any]any); err != nil || !ok || m["ready"] != int64(2) {
		t.Errorf("queue info %v, %v", info, err)
	}
}

func TestGoRedisComesBackAfterARestart(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{})
	ctx := t.Context()
	var addr atomic.Value // a port of the kernel's choice each time
	addr.Store(d.addr)
	c := goRedis(t, redis.Options{Addr: "pawl:6380", Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr.Load().(string))
	}})
	if err := c.Do(ctx, "ENQUEUE", "q", "x").Err(); err != nil {
		t.Fatal(err)
	}
	d.stop()
	again := &daemon{t: t, dir: d.dir, grace: patience}
	again.listen(resp.Options{})
	again.openEngine()
	addr.Store(again.addr)
	d.until("it is connected again", func() bool {
		job, err := c.Do(ctx, "FETCH", "q", 60_000).Slice()
		return err == nil && len(job) == 6 && job[5] == "x"
	})
}

func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "pawl") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Skipf("no Unix sockets: %v", err)
	}
	d, _ := startFake(t, resp.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- d.s.Serve(ctx, l) }()
	nc, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := newPeer(t, nc)
	c.expect("+PONG", "PING")
	if got := c.do("CLIENT", "INFO"); !strings.Contains(got, "addr="+filepath.Join(dir, "s")+":0") {
		t.Errorf("client info: %s", got)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	c.expect("+PONG", "PING") // the end of a listener is not that of its connections
}

// tlsConfig is a server's, with a certificate that is its own authority.
func tlsConfig(t *testing.T) (config *tls.Config, authority *x509.CertPool) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := cert.Write(certFile, keyFile, 1); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	authority = x509.NewCertPool()
	authority.AddCert(pair.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{pair}}, authority
}

// startTLS serves TLS on loopback.
func startTLS(t *testing.T, d *daemon, config *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go d.s.Serve(context.Background(), resp.NewTLSListener(l, config))
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{Limits: resp.Limits{LoginTime: 3 * time.Second}})
	config, _ := tlsConfig(t)
	addr := startTLS(t, d, config)
	client := func(config *tls.Config) (*peer, error) {
		config.InsecureSkipVerify = true
		nc, err := tls.Dial("tcp", addr, config)
		if err != nil {
			return nil, err
		}
		return newPeer(t, nc), nil
	}
	c, err := client(&tls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c.expect("+PONG", "PING")
	c.do("ENQUEUE", "q", strings.Repeat("x", 100_000))
	if got := c.do("FETCH", "q", "1000"); len(got) < 100_000 {
		t.Errorf("fetched %d bytes", len(got))
	}
	c.send(command("FETCH", "q", "60000", "WAIT", "60000"))
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })

	// Garbage and half a handshake end soon, and harm nobody.
	for _, hello := range []string{"PING\r\n", "\x16\x03\x01"} {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		p := newPeer(t, nc)
		p.send(hello)
		p.closed()
	}

	p := d.dial() // the plain port goes on
	p.expect("+PONG", "PING")
	p.do("ENQUEUE", "q", "y")
	if got := c.reply(); !strings.Contains(got, `"payload" "y"`) {
		t.Errorf("who waited got %s", got)
	}
	c.send(command("QUIT"))
	if got := c.closed(); got != "+OK\r\n" {
		t.Errorf("QUIT: got %q", got)
	}
}

func TestTLSClientCertificates(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	config, authority := tlsConfig(t)
	config.ClientCAs, config.ClientAuth = authority, tls.RequireAndVerifyClientCert
	addr := startTLS(t, d, config)
	nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, Certificates: config.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	newPeer(t, nc).expect("+PONG", "PING")

	nc, err = tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		nc.SetDeadline(time.Now().Add(patience))
		fmt.Fprint(nc, command("PING"))
		if line, err := bufio.NewReader(nc).ReadString('\n'); err == nil {
			t.Errorf("without a certificate: got %q", line)
		}
	}
}

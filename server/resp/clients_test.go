package resp_test

import (
	"bufio"
	"context"
	"crypto/tls"
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
	if resp.Exposed(l.Addr()) {
		t.Error("a Unix socket counts as exposed")
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

func TestExposed(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "0.0.0.0": true, "::": true, "10.0.0.1": true, "192.168.1.1": true,
	} {
		if got := resp.Exposed(&net.TCPAddr{IP: net.ParseIP(addr), Port: 1}); got != want {
			t.Errorf("%s: got %v, want %v", addr, got, want)
		}
	}
	if !resp.Exposed(&net.TCPAddr{Port: 1}) {
		t.Error("an address of all interfaces does not count as exposed")
	}
}

// writeCert writes a certificate for localhost that signs itself.
func writeCert(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := cert.Write(certFile, keyFile, serial); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

// startTLS serves TLS on loopback.
func startTLS(t *testing.T, d *daemon, files resp.TLSFiles) string {
	t.Helper()
	config, err := resp.LoadTLS(files, func(err error) { t.Logf("reload: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go d.s.Serve(context.Background(), tls.NewListener(l, config))
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := resp.TLSFiles{}
	files.Cert, files.Key = writeCert(t, dir, 1)
	d, _ := startFake(t, resp.Options{Limits: resp.Limits{LoginTime: 3 * time.Second}})
	addr := startTLS(t, d, files)
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

	if _, err := client(&tls.Config{MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 was taken")
	}
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

	// Certificates are read again without a restart.
	before := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(files.Cert, before, before); err != nil {
		t.Fatal(err)
	}
	writeCert(t, dir, 2)
	d.until("the new certificate is shown", func() bool {
		c, err := client(&tls.Config{})
		if err != nil {
			return false
		}
		defer c.nc.Close()
		return c.nc.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64() == 2
	})
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
	dir := t.TempDir()
	cert, key := writeCert(t, dir, 1)
	d, _ := startFake(t, resp.Options{})
	addr := startTLS(t, d, resp.TLSFiles{Cert: cert, Key: key, ClientCA: cert})
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}})
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
	if _, err := resp.LoadTLS(resp.TLSFiles{Cert: cert, Key: key, ClientCA: key}, nil); err == nil {
		t.Error("a file without certificates was taken for an authority")
	}
	if _, err := resp.LoadTLS(resp.TLSFiles{Cert: cert, Key: filepath.Join(dir, "nosuch")}, nil); err == nil {
		t.Error("a key that does not exist was loaded")
	}
}

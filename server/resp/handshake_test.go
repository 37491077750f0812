package resp

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawl/internal/cert"
)

// gatedServer takes TLS connections, two of which may compute at a time, and
// calls computing in that time. Every connection is answered one byte.
func gatedServer(t *testing.T, computing func()) (addr string) {
	t.Helper()
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	if err := cert.Write(certFile, keyFile, 1); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		computing()
		return nil, nil
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newTLSListener(tcp, config, 2)
	var serving sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		l.Close()
		stop()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer nc.Close()
				if nc.(*tls.Conn).HandshakeContext(ctx) == nil {
					nc.Write([]byte("x"))
				}
			})
		}
	})
	return tcp.Addr().String()
}

// greet goes through TLS and takes the byte.
func greet(t *testing.T, addr string) {
	nc, err := tls.DialWithDialer(&net.Dialer{Deadline: time.Now().Add(time.Minute)}, "tcp", addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	if n, err := nc.Read(make([]byte, 1)); n != 1 {
		t.Error(err)
	}
}

// However many clients come at once, two handshakes are computed at a time.
func TestHandshakesInTurn(t *testing.T) {
	var now, most atomic.Int64
	addr := gatedServer(t, func() {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(2 * time.Millisecond)
		now.Add(-1)
	})
	var clients sync.WaitGroup
	for range 50 {
		clients.Go(func() { greet(t, addr) })
	}
	clients.Wait()
	if n := most.Load(); n != 2 {
		t.Errorf("%d handshakes were computed at a time, want 2", n)
	}
}

// Clients that say nothing, or hello and then nothing, or what is no TLS, keep
// nobody from a handshake.
func TestHeldHandshakesHoldNobodyUp(t *testing.T) {
	addr := gatedServer(t, func() {})
	hello := make(chan []byte, 1)
	server, client := net.Pipe()
	go tls.Client(client, &tls.Config{ServerName: "localhost"}).Handshake()
	go func() {
		buf := make([]byte, 8<<10)
		n, _ := server.Read(buf)
		server.Close()
		hello <- buf[:n]
	}()
	whole := <-hello
	client.Close()
	for i := range 40 {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Write([][]byte{nil, whole[:len(whole)/2], whole, []byte("PING\r\n"), {0x16, 3, 1, 0xff, 0xff}}[i%5])
	}
	for range 10 {
		greet(t, addr)
	}
}

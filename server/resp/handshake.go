package resp

import (
	"crypto/tls"
	"net"
	"runtime"
	"sync/atomic"
)

// NewTLSListener is tls.NewListener for clients that may mean harm: of the part
// of a handshake in which this side computes, from the client's hello to the
// answer, only so many run at a time as half the processors, the others wait in
// turn. Hundreds of handshakes at once are then no hundreds of goroutines that
// want to run before those of connected clients. A client that is slow, or silent,
// holds nobody up: waiting for it is not that part.
func NewTLSListener(l net.Listener, config *tls.Config) net.Listener {
	return newTLSListener(l, config, max(1, runtime.GOMAXPROCS(0)/2))
}

func newTLSListener(l net.Listener, config *tls.Config, slots int) net.Listener {
	config = config.Clone()
	choose := config.GetConfigForClient
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if g, ok := hello.Conn.(*gatedConn); ok {
			g.enter()
		}
		if choose == nil {
			return nil, nil
		}
		return choose(hello)
	}
	return tls.NewListener(&gatedListener{l, make(chan struct{}, slots)}, config)
}

// gatedListener gives connections with a common gate.
type gatedListener struct {
	net.Listener
	gate chan struct{} // holds as many as compute
}

func (l *gatedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: nc, gate: l.gate}, nil
}

// gatedConn is in the gate from its hello to its first answer, an alert too.
type gatedConn struct {
	net.Conn
	gate   chan struct{}
	inside atomic.Bool
}

func (g *gatedConn) enter() {
	g.gate <- struct{}{}
	g.inside.Store(true)
}

func (g *gatedConn) leave() {
	if g.inside.Swap(false) {
		<-g.gate
	}
}

func (g *gatedConn) Write(p []byte) (int, error) {
	g.leave()
	return g.Conn.Write(p)
}

func (g *gatedConn) Close() error {
	g.leave()
	return g.Conn.Close()
}

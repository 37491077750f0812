//go:build unix

package client

import (
	"crypto/tls"
	"errors"
	"syscall"
)

// alive looks, without waiting, whether the other side has closed an idle
// connection. Bytes that nobody asked for make it useless as well.
func (cn *conn) alive() bool {
	if cn.in.in.Buffered() > 0 {
		return false
	}
	raw := cn.Conn
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	sc, ok := raw.(syscall.Conn)
	if !ok {
		return true
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	alive := false
	err = rc.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		again := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		// TLS may send tickets at any time: bytes are no bad sign there.
		_, secure := cn.Conn.(*tls.Conn)
		alive = again || (secure && n > 0)
		return true
	})
	return err == nil && alive
}

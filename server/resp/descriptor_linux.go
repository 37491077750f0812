package resp

import "golang.org/x/sys/unix"

// writeNow writes what the socket takes at once.
func (c *conn) writeNow(b []byte) int {
	n, err := unix.Write(c.fd, b)
	if err != nil {
		n = 0
		c.failed = err != unix.EAGAIN && err != unix.EINTR
	}
	c.srv.stats.bytesOut.Add(uint64(n))
	return n
}

// shutdownSocket ends both directions: whoever reads hears of it.
func shutdownSocket(fd int) { unix.Shutdown(fd, unix.SHUT_RDWR) }

// CloseWrite is net.TCPConn's.
func (f *fileStream) CloseWrite() error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) }); cerr != nil {
		return cerr
	}
	return err
}

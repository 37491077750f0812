//go:build unix

package resp

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// readPiece is Read of nc into p in the lane, waiting for bytes outside of it.
// What is no plain socket is read as ever.
func (l lane) readPiece(nc stream, p []byte) (n int, err error) {
	raw := plainSocket(nc)
	if raw == nil || len(p) == 0 {
		return nc.Read(p)
	}
	p = p[:min(len(p), flushBytes)]
	werr := raw.Read(func(fd uintptr) bool {
		n, err = l.move(unix.Read, fd, p)
		return err != unix.EAGAIN
	})
	switch {
	case werr != nil:
		return 0, werr
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// writePiece is Write of p to nc in the lane, waiting for the client outside of it.
// It may write less than all of p.
func (l lane) writePiece(nc stream, p []byte) (n int, err error) {
	raw := plainSocket(nc)
	if raw == nil {
		return nc.Write(p)
	}
	werr := raw.Write(func(fd uintptr) bool {
		n, err = l.move(unix.Write, fd, p)
		return err != unix.EAGAIN
	})
	if werr != nil {
		return 0, werr
	}
	return n, err
}

// move makes one call in the lane.
func (l lane) move(call func(fd int, p []byte) (int, error), fd uintptr, p []byte) (n int, err error) {
	l.enter()
	defer l.leave()
	for {
		if n, err = call(int(fd), p); err == nil {
			return n, nil
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
}

// plainSocket is nil where something stands between nc and its socket, such as TLS.
func plainSocket(nc stream) syscall.RawConn {
	s, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

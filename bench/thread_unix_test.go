//go:build unix

package bench

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// threadPair is a wire whose reader has a thread of its own, and the server's end.
func threadPair(t *testing.T) (*wire, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	w, err := dial(t.Context(), ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	// What came before stays in the buffer.
	if _, err := server.Write([]byte("+early\r\n+too ")); err != nil {
		t.Fatal(err)
	}
	if line, err := w.line(); err != nil || string(line) != "+early" {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := w.ownThread(); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.stream.(*threadSocket); !ok {
		t.Fatalf("the wire is a %T", w.stream)
	}
	return w, server
}

func TestThreadSocketReadsAndEnds(t *testing.T) {
	w, server := threadPair(t)
	w.out = append(w.out, "PING\r\n"...)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 6)
	if _, err := io.ReadFull(server, sent); err != nil || string(sent) != "PING\r\n" {
		t.Fatalf("the server got %q, %v", sent, err)
	}
	if _, err := server.Write([]byte("late\r\n+PONG\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+too late", "+PONG"} {
		if line, err := w.line(); err != nil || string(line) != want {
			t.Errorf("got %q, %v, want %s", line, err, want)
		}
	}
	if err := w.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.line(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want the end of the deadline", err)
	}
	server.Close()
	if err := w.SetReadDeadline(time.Now().Add(unanswered)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.line(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}

// Closing ends a read that waits in another goroutine: a run that is broken off
// does not hang.
func TestThreadSocketCloseEndsRead(t *testing.T) {
	w, server := threadPair(t)
	if err := w.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		_, err := w.line()
		got <- err
	}()
	// When it has taken what there is, it waits for more.
	if _, err := server.Write([]byte("half a line")); err != nil {
		t.Fatal(err)
	}
	for taken := false; !taken; {
		w.stream.(*threadSocket).control("recvfrom", func(fd int) error {
			_, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			taken = err == unix.EAGAIN
			return nil
		})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read of a closed connection: %v", err)
	}
	if n, err := server.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the server's end goes on: %d, %v", n, err)
	}
}

// What is no socket of the system is left as it is.
func TestOwnThreadOfAPipe(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	w := newWire(ours)
	defer w.Close()
	if err := w.ownThread(); err != nil || w.stream != stream(ours) {
		t.Errorf("got %T, %v", w.stream, err)
	}
}

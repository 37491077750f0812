package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"pawl/config"
	"pawl/server/resp"
)

// listeners are the open doors of a daemon; nil ones are off.
type listeners struct {
	resp []net.Listener // TCP and Unix
	http net.Listener
	adm  net.Listener
}

// listen opens all that c names. With an error nothing is left open.
func listen(c *config.Config, secure *tlsFiles) (l listeners, err error) {
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	switch {
	case config.IsSocket(c.Addr):
		unix, err := listenUnix(c.Addr)
		if err != nil {
			return l, fmt.Errorf("addr: %w", err)
		}
		l.resp = append(l.resp, unix)
	case c.Addr != "":
		tcp, err := net.Listen("tcp", c.Addr)
		if err != nil {
			return l, fmt.Errorf("addr: %w", err)
		}
		if secure != nil {
			tcp = resp.NewTLSListener(tcp, secure.server())
		}
		l.resp = append(l.resp, tcp)
	}
	if c.Unix != "" {
		unix, err := listenUnix(c.Unix)
		if err != nil {
			return l, fmt.Errorf("unix: %w", err)
		}
		l.resp = append(l.resp, unix)
	}
	web := func(name, addr string) (net.Listener, error) {
		if addr == "" {
			return nil, nil
		}
		tcp, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if secure != nil && c.HTTPTLS {
			return resp.NewTLSListener(tcp, secure.server("http/1.1")), nil
		}
		return tcp, nil
	}
	if l.http, err = web("http-addr", c.HTTPAddr); err != nil {
		return l, err
	}
	l.adm, err = web("admin-addr", c.AdminAddr)
	return l, err
}

// errSomebodyListens is for a Unix socket what EADDRINUSE is for a port.
var errSomebodyListens = errors.New("somebody listens there")

// listenUnix takes the place of a socket that nobody listens on any more. Only
// the owner may connect; wider rights are a matter of the directory's owner.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
			return nil, fmt.Errorf("%s: %w", path, errSomebodyListens)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *listeners) close() {
	for _, one := range append(l.resp, l.http, l.adm) {
		if one != nil {
			one.Close()
		}
	}
}

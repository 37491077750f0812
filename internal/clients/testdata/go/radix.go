package main

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/mediocregopher/radix/v4"
)

// radixPool is a pool of radix's connections.
type radixPool struct{ radix.Client }

func dialRadix(addr string, conf *tls.Config) (client, error) {
	dialer := radix.Dialer{AuthUser: "worker", AuthPass: "s3cret", NetDialer: &net.Dialer{}}
	if conf != nil {
		dialer.NetDialer = &tls.Dialer{Config: conf}
	}
	named := func(ctx context.Context, network, addr string) (radix.Conn, error) {
		conn, err := dialer.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := conn.Do(ctx, radix.Cmd(nil, "CLIENT", "SETNAME", "radix")); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
	pool, err := radix.PoolConfig{Dialer: radix.Dialer{CustomConn: named}}.New(context.Background(), "tcp", addr)
	return radixPool{pool}, err
}

func (r radixPool) close() { r.Client.Close() }

func (r radixPool) call(words ...string) (any, error) {
	var reply any
	command := radix.Cmd(&reply, words[0], words[1:]...)
	if words[0] == "FETCH" { // on a connection that nobody shares meanwhile
		command = radix.WithConn("", func(ctx context.Context, conn radix.Conn) error {
			return conn.Do(ctx, radix.Cmd(&reply, words[0], words[1:]...))
		})
	}
	err := r.Do(context.Background(), command)
	return text(reply), err
}

func (r radixPool) pipeline(commands [][]string) ([]any, error) {
	replies := make([]any, len(commands))
	p := radix.NewPipeline()
	for i, c := range commands {
		p.Append(radix.Cmd(&replies[i], c[0], c[1:]...))
	}
	err := r.Do(context.Background(), p)
	return text(replies).([]any), err
}

func (r radixPool) transaction(commands [][]string) (reply []any, err error) {
	p := radix.NewPipeline()
	p.Append(radix.Cmd(nil, "MULTI"))
	for _, c := range commands {
		p.Append(radix.Cmd(nil, c[0], c[1:]...))
	}
	p.Append(radix.Cmd(&reply, "EXEC"))
	err = r.Do(context.Background(), p)
	return reply, err
}

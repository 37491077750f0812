package main

import (
	"crypto/tls"
	"time"

	"github.com/gomodule/redigo/redis"
)

// redigo is a pool of redigo's connections.
type redigo struct{ pool *redis.Pool }

func dialRedigo(addr string, conf *tls.Config) (client, error) {
	options := []redis.DialOption{
		redis.DialUsername("worker"), redis.DialPassword("s3cret"), redis.DialClientName("redigo"), redis.DialReadTimeout(40 * time.Second),
	}
	if conf != nil {
		options = append(options, redis.DialUseTLS(true), redis.DialTLSConfig(conf))
	}
	return &redigo{&redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr, options...) }}}, nil
}

func (r *redigo) close() { r.pool.Close() }

func (r *redigo) call(words ...string) (any, error) {
	conn := r.pool.Get()
	defer conn.Close()
	reply, err := conn.Do(words[0], arguments(words)...)
	return text(reply), err
}

func (r *redigo) pipeline(commands [][]string) ([]any, error) {
	conn := r.pool.Get()
	defer conn.Close()
	for _, c := range commands {
		if err := conn.Send(c[0], arguments(c)...); err != nil {
			return nil, err
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, err
	}
	var replies []any
	for range commands {
		reply, err := conn.Receive()
		if err != nil {
			return nil, err
		}
		replies = append(replies, text(reply))
	}
	return replies, nil
}

func (r *redigo) transaction(commands [][]string) ([]any, error) {
	conn := r.pool.Get()
	defer conn.Close()
	for _, c := range append([][]string{{"MULTI"}}, commands...) {
		if err := conn.Send(c[0], arguments(c)...); err != nil {
			return nil, err
		}
	}
	return redis.Values(conn.Do("EXEC"))
}

// arguments are the words behind the command.
func arguments(words []string) []any {
	var list []any
	for _, w := range words[1:] {
		list = append(list, w)
	}
	return list
}

// text is a reply with strings where redigo and radix have bytes. Null is no bytes
// to radix.
func text(reply any) any {
	switch reply := reply.(type) {
	case []byte:
		if reply == nil {
			return nil
		}
		return string(reply)
	case []any:
		for i := range reply {
			reply[i] = text(reply[i])
		}
	}
	return reply
}

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/redis/rueidis"
)

// rueidisClient is a client of rueidis.
type rueidisClient struct{ rueidis.Client }

func dialRueidis(addr string, conf *tls.Config) (client, error) {
	options := rueidis.ClientOption{
		InitAddress: []string{addr}, Username: "worker", Password: "s3cret", ClientName: "rueidis", TLSConfig: conf,
	}
	// By default it caches what it reads, which nobody here could tell it to
	// drop: that must be refused, not half work.
	if c, err := rueidis.NewClient(options); err == nil {
		c.Close()
		return nil, errors.New("rueidis believes that it may cache")
	} else if !errors.Is(err, rueidis.ErrNoCache) {
		return nil, fmt.Errorf("rueidis, caching: %w", err)
	}
	options.DisableCache = true
	c, err := rueidis.NewClient(options)
	return rueidisClient{c}, err
}

func (r rueidisClient) close() { r.Client.Close() }

func (r rueidisClient) call(words ...string) (any, error) {
	command := r.B().Arbitrary(words...).Build()
	if words[0] == "FETCH" {
		command = r.B().Arbitrary(words...).Blocking() // on a connection of its own
	}
	return answered(r.Do(context.Background(), command))
}

func (r rueidisClient) pipeline(commands [][]string) ([]any, error) {
	var list rueidis.Commands
	for _, c := range commands {
		list = append(list, r.B().Arbitrary(c...).Build())
	}
	var replies []any
	for _, result := range r.DoMulti(context.Background(), list...) {
		reply, err := answered(result)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

func (r rueidisClient) transaction(commands [][]string) (reply []any, err error) {
	err = r.Dedicated(func(c rueidis.DedicatedClient) error {
		list := rueidis.Commands{c.B().Multi().Build()}
		for _, words := range commands {
			list = append(list, c.B().Arbitrary(words...).Build())
		}
		results := c.DoMulti(context.Background(), append(list, c.B().Exec().Build())...)
		reply, err = rueidisList(results[len(results)-1])
		return err
	})
	return reply, err
}

func rueidisList(result rueidis.RedisResult) ([]any, error) {
	reply, err := answered(result)
	list, _ := reply.([]any)
	return list, err
}

// answered is a reply, and nil for null.
func answered(result rueidis.RedisResult) (any, error) {
	reply, err := result.ToAny()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return reply, err
}

//go:build !linux

package resp_test

import "testing"

const pollers = false

func socketPair(testing.TB) (client, server halfCloser) { panic("there is no poller") }

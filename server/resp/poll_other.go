//go:build !linux

package resp

import "errors"

// poller is on Linux only; everywhere else every connection has a goroutine.
type poller struct{}

func newPollers(_ *Server, loop Loop) ([]*poller, error) {
	if loop == LoopPoll {
		return nil, errors.ErrUnsupported
	}
	return nil, nil
}

func (*poller) run()                {}
func (*poller) close()              {}
func (*poller) relieve()            {}
func (*poller) count() int64        { return 0 }
func (*poller) shrink(*conn)        {}
func (*poller) take(*conn) bool     { return false }
func (c *conn) writeNow([]byte) int { return 0 }
func shutdownSocket(int)            {}

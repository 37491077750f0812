package resp

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"

	"pawl/engine"
)

// do has the engine do commands that stand alone and waits until they are
// durable. False: one was refused or the storage failed, and the client has
// been told.
func (c *conn) do(cmds ...engine.Command) bool {
	if err := c.wait(c.submit(cmds...)); err != nil {
		c.abandon(cmds...)
		c.failError(err)
		return false
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			c.failError(err)
			return false
		}
	}
	return true
}

// decimal is n in base 10.
func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// randomHex is n random hex digits.
func randomHex(n int) string {
	raw := make([]byte, (n+1)/2)
	rand.Read(raw)
	return hex.EncodeToString(raw)[:n]
}

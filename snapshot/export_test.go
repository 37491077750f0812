package snapshot

import "io"

// Encode writes a whole snapshot of m to w with the payload that view writes.
func Encode(w io.Writer, m Meta, view func(io.Writer) error) error {
	e := newEncoder(w, m)
	if err := view(e); err != nil {
		return err
	}
	return e.close()
}

const (
	HeaderLen      = headerLen
	BlockHeaderLen = blockHeaderLen
	EndLen         = endLen
)

// Chained is the check of a block.
var Chained = chained

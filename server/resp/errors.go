package resp

import (
	"errors"
	"strconv"

	"pawl/engine"
)

// maxErrorBytes bounds an error line without CR LF.
const maxErrorBytes = 256

// errorLine makes one printable line of text: everything but printable ASCII is
// escaped, so that nothing a client sent can end the line or colour a terminal.
func errorLine(text string) string {
	plain := len(text) <= maxErrorBytes
	for i := 0; i < len(text) && plain; i++ {
		plain = text[i] >= ' ' && text[i] < 0x7f
	}
	if plain {
		return text
	}
	line := make([]byte, 0, maxErrorBytes)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c < 0x7f {
			line = append(line, c)
		} else {
			line = append(line, '\\', 'x')
			if c < 16 {
				line = append(line, '0')
			}
			line = strconv.AppendUint(line, uint64(c), 16)
		}
		if len(line) > maxErrorBytes-3 {
			return string(append(line[:maxErrorBytes-3], "..."...))
		}
	}
	return string(line)
}

// replies to errors of the engine: the first word is what clients match on.
var replies = []struct {
	err  error
	word string
}{
	{engine.ErrEmptyName, "ERR"},
	{engine.ErrNameTooLong, "ERR"},
	{engine.ErrTooLarge, "TOOLARGE"},
	{engine.ErrTimeout, "ERR"},
	{engine.ErrTTLShorter, "ERR"},
	{engine.ErrAttrs, "ERR"},
	{engine.ErrQueueFull, "QUEUEFULL"},
	{engine.ErrDraining, "PAUSED"},
	{engine.ErrNoMemory, "OOM"},
	{engine.ErrNoSpace, "MISCONF"},
	{engine.ErrTooMany, "ERR"},
	{engine.ErrNoLease, "ERR"},
	{engine.ErrNoJob, "ERR"},
	{engine.ErrBusyJob, "BUSYJOB"},
	{engine.ErrUniqueTaken, "ERR"},
	{engine.ErrCursor, "ERR"},
	{engine.ErrQueueLeased, "BUSYJOB"},
	{engine.ErrExists, "ERR"},
	{engine.ErrBusy, "ERR"},
	{engine.ErrUnknown, "UNKNOWN"},
	{engine.ErrFailed, "MISCONF"},
	{engine.ErrHung, "MISCONF"},
	{engine.ErrUnanswered, "UNKNOWN"},
	{engine.ErrPartly, "UNKNOWN"},
	{engine.ErrClosed, "ERR"},
	{engine.ErrDamaged, "ERR"},
}

// replyError is the error line for what the engine said. known is false for an
// error that this edge has no word for: the client learns no more than that,
// and the caller logs it.
func replyError(err error) (line string, known bool) {
	if abort, ok := errors.AsType[*engine.AbortError](err); ok {
		return errorLine("EXECABORT Transaction discarded because of " + abort.Error()), true
	}
	for _, r := range replies {
		if errors.Is(err, r.err) {
			return errorLine(r.word + " " + r.err.Error()), true
		}
	}
	return "ERR internal error", false
}

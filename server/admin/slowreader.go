package admin

import (
	"net/http"
	"time"
)

const (
	// writeTimeout is for one piece of a reply: a client that does not read shall not
	// keep a reply, which may be large, or the place of one of the few scrapes.
	writeTimeout = 30 * time.Second
	// writePiece is in bytes.
	writePiece = 64 << 10
)

// boundedWriter gives each piece of a reply its time to be written. The server has
// no limit for all of it, for some are made for minutes.
type boundedWriter struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (w boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter. The deadline that it leaves ends with the
// request.
func (w boundedWriter) Write(b []byte) (n int, err error) {
	control := http.NewResponseController(w.ResponseWriter)
	for {
		// An error: only a test's writer has no deadlines.
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		piece := b[n:min(len(b), n+writePiece)]
		wrote, err := w.ResponseWriter.Write(piece)
		if n += wrote; err != nil || n == len(b) {
			return n, err
		}
	}
}

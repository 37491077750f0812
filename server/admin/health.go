package admin

import (
	"fmt"
	"net/http"
	"time"
)

// Reason is why jobs are not served as they should be.
type Reason struct {
	Code   string `json:"code"`   // one word for programs
	Detail string `json:"detail"` // a sentence for people
}

// hungAfter is how long a change may wait for the disk before /readyz says so.
const hungAfter = 10 * time.Second

// unready are the reasons why jobs are not served, none when they are.
func (s *Server) unready() []Reason {
	reasons := []Reason{}
	if s.draining.Load() {
		reasons = append(reasons, Reason{"stopping", "the daemon is shutting down"})
	}
	e := s.currentEngine()
	if e == nil {
		detail := "the log is being replayed"
		if s.options.Loading != nil {
			if done, total := s.options.Loading(); total > 0 {
				detail = fmt.Sprintf("the log is being replayed: %d of %d bytes", done, total)
			}
		}
		return append(reasons, Reason{"loading", detail})
	}
	if err := e.Failure(); err != nil {
		reasons = append(reasons, Reason{"failed", "the storage has failed: " + err.Error()})
	}
	n := e.Numbers()
	if n.Full {
		reasons = append(reasons, Reason{"full", fmt.Sprintf("no space for the log, %d bytes are free: new jobs are refused", n.DiskFree)})
	}
	if n.Draining {
		reasons = append(reasons, Reason{"draining", "new jobs are refused by DRAIN"})
	}
	if n.OldestUnsyncedMs >= hungAfter.Milliseconds() {
		reasons = append(reasons, Reason{"hung", fmt.Sprintf("the disk has not answered for %d ms", n.OldestUnsyncedMs)})
	}
	return reasons
}

// livez says that the process answers. It is not asked to be useful: restarting
// one that is replaying its log would only make it begin again.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"live": true})
}

// readyz is 200 while jobs are served, else 503 with the reasons.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	reasons := s.unready()
	status := http.StatusOK
	if len(reasons) > 0 {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, readiness{len(reasons) == 0, reasons})
}

type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []Reason `json:"reasons"`
}

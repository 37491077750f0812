package engine

import "time"

// SetWall sets the wall clock that e sees by so much, which nobody tells it.
func (e *Engine) SetWall(by time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	look := e.clock.look
	e.clock.look = func() reading {
		r := look()
		r.wall += by
		return r
	}
}

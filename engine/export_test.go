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

// Elapse has f say how long ago a stay began, instead of the clock.
func (e *Engine) Elapse(f func(time.Time) time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock.elapsed = f
}

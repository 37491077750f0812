package resp

// StuckAtTick says whether a pass that began at one moment of the server's clock
// counts as stuck at another.
func StuckAtTick(began, now int64) bool { return isStuck(began+1, now) }

// RelieveLater has the janitor look at the pollers as if a second had passed
// since it did last, and says how many have a stand-in then.
func (s *Server) RelieveLater() (standIns int) {
	s.clock.Add(1000)
	for _, p := range s.pollers {
		p.relieve()
		p.mu.Lock()
		if p.standIn {
			standIns++
		}
		p.mu.Unlock()
	}
	return standIns
}

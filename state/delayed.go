package state

import "encoding/binary"

// The delayed jobs of a queue form a treap through their links: a search tree by
// (due, slot) that is a heap by rank, a number made of slot and secret. So the
// tree's shape depends on nothing but its members, its depth is logarithmic
// unless somebody knows the secret, and it costs a job no memory.
//
// Jobs due by log time and by wall time have a tree each, as the distance of the
// two clocks can change.
//
// Seidel and Aragon, "Randomized Search Trees", Algorithmica 16, 1996.

// rank is a job's place in the heap: splitmix64 of its slot under the secret.
func (s *State) rank(slot uint32) uint64 {
	x := (s.rankSeed() + uint64(slot)) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (s *State) rankSeed() uint64 { return binary.BigEndian.Uint64(s.secret[:8]) }

// tree is the root of the tree of a queue's jobs that are delayed by wall time,
// or by log time.
func (q *queue) tree(wall bool) *uint32 {
	if wall {
		return &q.dueWall
	}
	return &q.due
}

// plant puts a delayed job into its queue's tree.
func (s *State) plant(q *queue, slot uint32, j *job) {
	at := mark{j.whenAt(), slot}
	rank := s.rank(slot)
	link := s.descend(q.tree(j.isWall()), at, func(node uint32) bool { return s.rank(node) <= rank })
	j.prev, j.next = s.split(*link, at)
	*link = slot
}

// descend goes from root on the way to m until there is to stop, or nothing
// more, and returns the link that leads there. It edits only the job that has
// this link: the others on the way may be of a view, and would be copied.
func (s *State) descend(root *uint32, m mark, stop func(node uint32) bool) *uint32 {
	parent, before := uint32(0), false
	for node := *root; node != 0 && !stop(node); {
		j := s.jobs.at(node)
		parent, before = node, m.less(mark{j.whenAt(), node})
		if before {
			node = j.prev
		} else {
			node = j.next
		}
	}
	switch {
	case parent == 0:
		return root
	case before:
		return &s.jobs.edit(parent).prev
	}
	return &s.jobs.edit(parent).next
}

// split divides a tree into what is below m and what is not.
func (s *State) split(root uint32, m mark) (below, above uint32) {
	lo, hi := &below, &above
	for root != 0 {
		j := s.jobs.edit(root)
		if m.less(mark{j.whenAt(), root}) {
			*hi = root
			hi, root = &j.prev, j.prev
		} else {
			*lo = root
			lo, root = &j.next, j.next
		}
	}
	*lo, *hi = 0, 0
	return below, above
}

// uproot takes a delayed job out of its queue's tree.
func (s *State) uproot(q *queue, slot uint32, j *job) {
	root := s.descend(q.tree(j.isWall()), mark{j.whenAt(), slot}, func(node uint32) bool { return node == slot })
	// Merge the two children into its place.
	left, right := j.prev, j.next
	for left != 0 && right != 0 {
		if s.rank(left) > s.rank(right) {
			*root = left
			root = &s.jobs.edit(left).next
			left = *root
		} else {
			*root = right
			root = &s.jobs.edit(right).prev
			right = *root
		}
	}
	*root = left | right
	j.prev, j.next = 0, 0
}

// behind is the first job of a tree that lies behind m, 0 for none.
func (s *State) behind(root uint32, m mark) (slot uint32) {
	for root != 0 {
		j := s.jobs.at(root)
		if m.less(mark{j.whenAt(), root}) {
			slot, root = root, j.prev
		} else {
			root = j.next
		}
	}
	return slot
}

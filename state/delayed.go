package state

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

func (s *State) rankSeed() uint64 {
	var seed uint64
	for _, b := range s.secret[:8] {
		seed = seed<<8 | uint64(b)
	}
	return seed
}

// dueTree is the root of the tree that j belongs to.
func dueTree(q *queue, j *job) *uint32 {
	if j.isWall() {
		return &q.dueWall
	}
	return &q.due
}

// plant puts a delayed job into its queue's tree.
func (s *State) plant(q *queue, slot uint32, j *job) {
	root := dueTree(q, j)
	at := mark{j.whenAt(), slot}
	rank := s.rank(slot)
	for *root != 0 && s.rank(*root) > rank {
		root = s.child(*root, at)
	}
	j.prev, j.next = s.split(*root, at)
	*root = slot
}

// child is the link of the job at slot that leads to where m belongs.
func (s *State) child(slot uint32, m mark) *uint32 {
	j := s.jobs.edit(slot)
	if m.less(mark{j.whenAt(), slot}) {
		return &j.prev
	}
	return &j.next
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
	root := dueTree(q, j)
	at := mark{j.whenAt(), slot}
	for *root != slot {
		root = s.child(*root, at)
	}
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

// firstDue is the first job of a tree, 0 where it is empty.
func (s *State) firstDue(root uint32) uint32 {
	for root != 0 {
		left := s.jobs.at(root).prev
		if left == 0 {
			return root
		}
		root = left
	}
	return 0
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

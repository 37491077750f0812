package state

import "slices"

const (
	digitBits = 11
	digits    = 1 << digitBits
	// fewMarks is how many are sorted sooner by comparing them.
	fewMarks = 1 << 9
)

// sortMarks sorts by time and number.
func sortMarks(marks []mark) { new(markSorter).sort(marks) }

// A markSorter sorts by time and number, a digit of both after the other from the
// lowest on, with room for as many marks beside them, which it keeps.
type markSorter struct{ room []mark }

func (t *markSorter) sort(marks []mark) {
	if slices.IsSortedFunc(marks, mark.compare) {
		return
	}
	if len(marks) <= fewMarks {
		slices.SortFunc(marks, mark.compare)
		return
	}
	least, most := marks[0], marks[0]
	byID := true
	for i, m := range marks {
		least = mark{min(least.at, m.at), min(least.id, m.id)}
		most = mark{max(most.at, m.at), max(most.id, m.id)}
		byID = byID && (i == 0 || marks[i-1].id <= m.id)
	}
	t.room = slices.Grow(t.room[:0], len(marks))
	from, to := marks, t.room[:len(marks)]
	pass := func(digit func(mark) int) {
		var ends [digits]int
		for _, m := range from {
			ends[digit(m)]++
		}
		sum := 0
		for i, n := range ends {
			ends[i] = sum
			sum += n
		}
		for _, m := range from {
			d := digit(m)
			to[ends[d]] = m
			ends[d]++
		}
		from, to = to, from
	}
	if !byID {
		for shift := 0; (most.id-least.id)>>shift > 0; shift += digitBits {
			pass(func(m mark) int { return int((m.id-least.id)>>shift) & (digits - 1) })
		}
	}
	for shift := 0; uint64(most.at-least.at)>>shift > 0; shift += digitBits {
		pass(func(m mark) int { return int(uint64(m.at-least.at)>>shift) & (digits - 1) })
	}
	copy(marks, from) // onto itself after an even number of passes
}

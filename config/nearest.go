package config

import "strings"

// Nearest is the word of known that a person may have meant by word: at most
// three letters away (a third of a short word), empty when none is.
func Nearest(word string, known []string) string {
	limit := min(3, max(1, len(word)/3))
	best, at := limit+1, ""
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < best {
			best, at = d, k
		}
	}
	return at
}

// distance is Levenshtein's, with a swap of neighbours as one step.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

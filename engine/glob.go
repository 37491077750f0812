package engine

// Glob says whether name matches pattern as Redis means it: * is any bytes, ? is
// one, [abc], [a-c] and [^a] are one of a set, \ takes the next byte as it is.
// It goes back to the last star only, so it takes at most len(pattern) ×
// len(name) steps.
func Glob(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0 // where to go on after a mismatch
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, n
			p++
			continue
		}
		if width, ok := globOne(pattern[p:], name[n]); ok {
			p += width
			n++
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, n = star+1, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globOne matches one byte against the first element of pattern, which is no
// star, and says how long that is.
func globOne(pattern string, c byte) (width int, ok bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == c
		}
	case '[':
		return globSet(pattern, c)
	}
	return 1, pattern[0] == c
}

// globSet matches a set; one that does not end takes the rest of the pattern.
func globSet(pattern string, c byte) (width int, ok bool) {
	i := 1
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	found := false
	for ; i < len(pattern) && pattern[i] != ']'; i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		low, high := pattern[i], pattern[i]
		if i+2 < len(pattern) && pattern[i+1] == '-' {
			high = pattern[i+2]
			i += 2
		}
		if low > high {
			low, high = high, low
		}
		found = found || low <= c && c <= high
	}
	return min(i+1, len(pattern)), found != not
}

package acl

// Match says whether name matches a glob: * is any bytes, ? one byte, [a-z] one
// of a class ([^a-z] one of the others), and \ takes the next byte as it is. It
// needs at most len(pattern) × len(name) steps and no stack, whatever the
// pattern: only the last star is ever tried again.
func Match(pattern string, name []byte) bool {
	p, n := 0, 0
	star, mark := -1, 0 // behind the last star, and what it had taken up to
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, mark = p, n
			continue
		}
		if next, ok := matchOne(pattern, p, name[n]); ok {
			p, n = next, n+1
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, n = star, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches c with the element of pattern at p and returns where the
// next one begins.
func matchOne(pattern string, p int, c byte) (next int, ok bool) {
	if p >= len(pattern) {
		return p, false
	}
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return matchClass(pattern, p+1, c)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, pattern[p] == c
}

// matchClass matches c with the class whose first element is at p. A class
// that does not end takes the rest of the pattern.
func matchClass(pattern string, p int, c byte) (next int, ok bool) {
	negate := p < len(pattern) && pattern[p] == '^'
	if negate {
		p++
	}
	for p < len(pattern) && pattern[p] != ']' {
		if pattern[p] == '\\' && p+1 < len(pattern) {
			p++
		}
		low, high := pattern[p], pattern[p]
		if p+2 < len(pattern) && pattern[p+1] == '-' && pattern[p+2] != ']' {
			high = pattern[p+2]
			p += 2
		}
		if low > high {
			low, high = high, low
		}
		ok = ok || low <= c && c <= high
		p++
	}
	return min(p+1, len(pattern)), ok != negate
}

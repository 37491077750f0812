package state

import "bytes"

// A queue key is the one identity of a queue: pool, namespace and name joined
// by slashes, `pool/namespace/name`. Neither pool nor namespace holds a slash,
// so the first two slashes split it; the name may hold any bytes. Each part is
// 1 to 255 bytes.

// DefaultPool and DefaultNamespace stand where a client names none.
const (
	DefaultPool      = "default"
	DefaultNamespace = "default"
)

// MaxNameBytes bounds each part of a queue key.
const MaxNameBytes = 255

// AppendQueueKey appends the key of what a client calls name in pool: the
// first slash in name splits namespace from queue, and without one the
// namespace is default.
func AppendQueueKey(dst []byte, pool string, name []byte) []byte {
	dst = append(append(dst, pool...), '/')
	if bytes.IndexByte(name, '/') < 0 {
		dst = append(append(dst, DefaultNamespace...), '/')
	}
	return append(dst, name...)
}

// SplitQueueKey gives the three parts of a key. It must be well formed.
func SplitQueueKey(key string) (pool, namespace, name string) {
	i := indexSlash(key, 0)
	j := indexSlash(key, i+1)
	return key[:i], key[i+1 : j], key[j+1:]
}

// DisplayName is the name that clients of the key's pool use: the namespace is
// left out when it is default.
func DisplayName(key string) string {
	pool, namespace, name := SplitQueueKey(key)
	if namespace == DefaultNamespace {
		// A name with a slash of its own would be split by who reads it.
		if indexSlash(name, 0) < 0 {
			return name
		}
	}
	return key[len(pool)+1:]
}

func indexSlash(s string, from int) int {
	for i := from; i < len(s); i++ {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

// ValidQueueKey reports whether key has three parts of 1 to MaxNameBytes bytes,
// of which only the last may hold slashes.
func ValidQueueKey(key []byte) bool {
	pool, rest, ok := bytes.Cut(key, []byte{'/'})
	namespace, name, ok2 := bytes.Cut(rest, []byte{'/'})
	for _, part := range [][]byte{pool, namespace, name} {
		if len(part) == 0 || len(part) > MaxNameBytes {
			return false
		}
	}
	return ok && ok2
}

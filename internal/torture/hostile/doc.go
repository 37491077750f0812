// Package hostile plays clients that mean harm, or are broken, against a real
// daemon, and measures what that costs the daemon and its other clients: the
// growth of its memory, and the 99th percentile of clients that go on working
// beside them.
package hostile

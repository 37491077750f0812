//go:build !unix

package main

import "io"

// terminalSize is not known here.
func terminalSize(io.Writer) (columns, lines int) { return 0, 0 }

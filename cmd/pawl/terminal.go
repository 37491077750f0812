package main

import (
	"io"
	"os"
)

// isTerminal says whether w is a character device: somebody may be looking.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isCharDevice(f)
}

// isTerminalInput says whether somebody may be typing.
func isTerminalInput(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && isCharDevice(f)
}

func isCharDevice(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a device too, where nobody types
	return err != nil || !os.SameFile(info, null)
}

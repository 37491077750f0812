package main

import (
	"runtime/debug"
	"strings"
)

// version is that of the module a client is from.
func version(client string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if strings.Contains(m.Path, "/"+client) {
				return strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return "unknown"
}

package wal_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// The tests make and forget a hundred thousand small disks, and would spend most
// of their time collecting them.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}

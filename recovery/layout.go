package recovery

import "path/filepath"

const (
	identityName    = "STORE"
	identityTmpName = "STORE.tmp"
	logName         = "log"
	snapshotsName   = "snapshots"
	liveName        = "live.tmp" // a tool's copy, while it looks at a running store
)

// LogDir is the directory of the log's generations in a data directory.
func LogDir(dir string) string { return filepath.Join(dir, logName) }

// SnapshotDir is the directory of the snapshots in a data directory.
func SnapshotDir(dir string) string { return filepath.Join(dir, snapshotsName) }

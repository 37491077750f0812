package wal

// GenerationDir is the directory of a generation below the log's directory, for
// those who copy a log.
func GenerationDir(dir string, generation uint32) string { return generationDir(dir, generation) }

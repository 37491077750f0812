package recovery

import (
	"fmt"
	"path/filepath"
)

func segmentPath(dir string, number uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%010d", number), "00000000000000000001")
}

package state_test

import (
	"flag"
	"testing"

	"pawl/state/statetest"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata/*.txt")

func TestScripts(t *testing.T) { statetest.Scripts(t, "testdata/*.txt", *update) }

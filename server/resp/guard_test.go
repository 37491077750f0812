package resp

import (
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// A panic that passes through the engine ends the process, whatever was called,
// although connections recover theirs.
func TestEnginePanicEndsTheProcess(t *testing.T) {
	const key = "PAWL_ENGINE_PANIC"
	if method := os.Getenv(key); method != "" {
		defer func() {
			recover()
			os.Exit(0) // as a connection would go on
		}()
		f := reflect.ValueOf(guarded{}).MethodByName(method) // there is no engine: it panics
		var args []reflect.Value
		for in := range f.Type().Ins() {
			args = append(args, reflect.Zero(in))
		}
		if f.Type().IsVariadic() {
			f.CallSlice(args)
		}
		f.Call(args)
	}
	for m := range reflect.TypeFor[Engine]().Methods() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			again := exec.Command(os.Args[0], "-test.run=^TestEnginePanicEndsTheProcess$")
			again.Env = append(os.Environ(), key+"="+m.Name)
			out, err := again.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "engine.EndOnPanic") {
				t.Errorf("got %v, want the process to end:\n%s", err, out)
			}
		})
	}
}

package tracee_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pawl/internal/torture/tracee"
)

// TestMain makes the test binary the program that is traced when asked so.
func TestMain(m *testing.M) {
	switch dir := os.Getenv("TRACEE_DIR"); {
	case dir == "":
		os.Exit(m.Run())
	case os.Getenv("TRACEE_CLOCK") != "":
		tell()
	case os.Getenv("TRACEE_SOCKET") != "":
		talk()
	default:
		write(dir)
	}
}

// write makes a file in three writes with a sync behind each, from several
// threads, and says what it has done.
func write(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "file"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Println("open", err)
		os.Exit(3)
	}
	for i := range 3 {
		done := make(chan error)
		go func() {
			if _, err := fmt.Fprintf(f, "line %d\n", i); err != nil {
				done <- err
				return
			}
			done <- f.Sync()
		}()
		if err := <-done; err != nil {
			fmt.Println("failed", err)
			os.Exit(4)
		}
		fmt.Println("done", i)
	}
}

// tell prints the wall clock whenever a line comes from the file it waits for.
func tell() {
	name := filepath.Join(os.Getenv("TRACEE_DIR"), "go")
	fmt.Println(time.Now().Unix())
	for {
		if _, err := os.Stat(name); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println(time.Now().Unix())
}

// talk says what each of three writes to a socket did, and what is read there.
func talk() {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		fmt.Println("socketpair", err)
		os.Exit(3)
	}
	for range 3 {
		n, err := syscall.Write(ends[0], []byte("0123456789"))
		fmt.Println(n, err)
	}
	b := make([]byte, 100)
	n, err := syscall.Read(ends[1], b)
	fmt.Println(string(b[:max(n, 0)]), err)
}

func start(t *testing.T, dir string, out *bytes.Buffer, opt tracee.Options, env ...string) *tracee.Process {
	t.Helper()
	opt.Under, opt.Stdout = dir, out
	opt.Env = append(os.Environ(), append(env, "TRACEE_DIR="+dir)...)
	p, err := tracee.Start(opt, os.Args[0])
	if errors.Is(err, tracee.ErrUnsupported) {
		if os.Getenv("PAWL_E2E") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCounts(t *testing.T) {
	var out bytes.Buffer
	var seen []string
	p := start(t, t.TempDir(), &out, tracee.Options{Seen: func(c tracee.Call) {
		seen = append(seen, fmt.Sprintf("%d %s %s %d", c.N, c.Name, filepath.Base(c.Path), c.Bytes))
	}})
	status, err := p.Wait()
	if err != nil || status.Code != 0 || status.Struck {
		t.Fatalf("got %v struck %v, %v, want exit 0", status, status.Struck, err)
	}
	want := []string{
		"1 openat file 0",
		"2 write file 7", "3 fsync file 0",
		"4 write file 7", "5 fsync file 0",
		"6 write file 7", "7 fsync file 0",
	}
	if !slices.Equal(seen, want) || status.Calls != 7 {
		t.Errorf("got calls %q, want %q", seen, want)
	}
	if got := out.String(); got != "done 0\ndone 1\ndone 2\n" {
		t.Errorf("got output %q", got)
	}
}

func TestFaults(t *testing.T) {
	kill := int(syscall.SIGKILL)
	for _, c := range []struct {
		name  string
		fault tracee.Fault
		file  string // content afterwards
		out   string
		code  int // exit code, or minus the signal
	}{
		{"before the create", tracee.Fault{Mode: tracee.Before, Nth: 1}, "", "", -kill},
		{"before a write", tracee.Fault{Mode: tracee.Before, Nth: 4}, "line 0\n", "done 0\n", -kill},
		{"after a write", tracee.Fault{Mode: tracee.After, Nth: 4}, "line 0\nline 1\n", "done 0\n", -kill},
		{"torn", tracee.Fault{Mode: tracee.Tear, Nth: 4, Bytes: 3}, "line 0\nlin", "done 0\n", -kill},
		{"torn beyond the end", tracee.Fault{Mode: tracee.Tear, Nth: 2, Bytes: 99}, "line 0\n", "", -kill},
		{"a sync fails", tracee.Fault{Mode: tracee.Errno, Nth: 3, Errno: syscall.EIO}, "line 0\n", "failed", 4},
		{"all fails from the second write", tracee.Fault{Mode: tracee.Errno, Nth: 4, Errno: syscall.ENOSPC, Sticky: true}, "line 0\n", "done 0\nfailed", 4},
		{"never reached", tracee.Fault{Mode: tracee.Before, Nth: 99}, "line 0\nline 1\nline 2\n", "done 0\ndone 1\ndone 2\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var out bytes.Buffer
			status, err := start(t, dir, &out, tracee.Options{Fault: c.fault}).Wait()
			if err != nil {
				t.Fatal(err)
			}
			code := status.Code
			if status.Signal != 0 {
				code = -int(status.Signal)
			}
			if code != c.code {
				t.Errorf("got %v, want %d", status, c.code)
			}
			if want := c.fault.Nth <= 7; status.Struck != want {
				t.Errorf("got struck %v, want %v", status.Struck, want)
			}
			if !strings.HasPrefix(out.String(), c.out) {
				t.Errorf("got output %q, want %q", out.String(), c.out)
			}
			content, err := os.ReadFile(filepath.Join(dir, "file"))
			if err != nil && c.file != "" {
				t.Fatal(err)
			}
			if string(content) != c.file {
				t.Errorf("got file %q, want %q", content, c.file)
			}
		})
	}
}

func TestSocket(t *testing.T) {
	var out bytes.Buffer
	answers := map[int][]int{10: {4, 0, 10}, 100: {7}} // no read is cut short; by what the call asks for
	p := start(t, t.TempDir(), &out, tracee.Options{Socket: func(n int) int {
		left := answers[n]
		if len(left) == 0 {
			return n // what the runtime waits for
		}
		answers[n] = left[1:]
		return left[0]
	}}, "TRACEE_SOCKET=1")
	if status, err := p.Wait(); err != nil || status.Code != 0 {
		t.Fatalf("got %v, %v, want exit 0", status, err)
	}
	if got, want := out.String(), "4 <nil>\n-1 interrupted system call\n10 <nil>\n01230123456789 <nil>\n"; got != want {
		t.Errorf("got output %q, want %q", got, want)
	}
}

func TestShiftClock(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	p := start(t, dir, &out, tracee.Options{}, "TRACEE_CLOCK=1")
	p.ShiftClock(tracee.Shift{Wall: 240 * time.Hour})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(); err != nil || status.Code != 0 {
		t.Fatalf("got %v, %v, want exit 0", status, err)
	}
	var before, after int64
	if _, err := fmt.Sscan(out.String(), &before, &after); err != nil {
		t.Fatalf("got output %q: %v", out.String(), err)
	}
	// The first reading may or may not have been shifted already.
	if ahead := after - time.Now().Unix(); ahead < 239*3600 {
		t.Errorf("the program's clock is %d s ahead, want ten days", ahead)
	}
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLongPolls: many consumers wait on the real binary, one job wakes one of
// them, and when they hang up nobody waits any more. What it cost is logged:
//
//	PAWL_POLLS=5000 go test -v -run LongPolls ./cmd/pawl
//
// It needs a descriptor for each, on both sides.
func TestLongPolls(t *testing.T) {
	polls := 300
	text, long := os.LookupEnv("PAWL_POLLS")
	if long {
		var err error
		if polls, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	stderr := &output{}
	cmd := exec.Command("pawl", "serve", "--dir", filepath.Join(dir, "data"), "--addr=", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = io.Discard, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon: %v\n%s", err, stderr)
		}
	})
	stderr.wait(t, "msg=serving")
	public := stderr.wait(t, `for="lmstfy clients" addr=(\S+)`)
	admin := stderr.wait(t, `for=operators addr=(\S+)`)
	token := regexp.MustCompile(`"token": "(\w+)"`).FindStringSubmatch(call(t, "POST", "http://"+admin+"/token/ns?description=polls"))[1]
	waiting := func(want int) {
		t.Helper()
		const name = `infra_lmstfy_redis_blocking_connections{pool="default"} `
		for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			_, rest, _ := strings.Cut(call(t, "GET", "http://"+admin+"/metrics"), "\n"+name)
			if got, _, _ := strings.Cut(rest, "\n"); got == strconv.Itoa(want) {
				return
			} else if time.Since(begun) > awaited {
				t.Fatalf("%s of %d wait", got, want)
			}
		}
	}
	waiting(0)
	empty := resident(t, cmd.Process.Pid)

	replies := make(chan string, polls)
	conns := make([]net.Conn, polls)
	for i := range conns {
		nc, err := net.Dial("tcp", public)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		conns[i] = nc
		fmt.Fprintf(nc, "GET /api/ns/q?timeout=3600&ttr=3600 HTTP/1.1\r\nHost: %s\r\nX-Token: %s\r\nUser-Agent: Go-http-client/1.1\r\n\r\n", public, token)
		go func() {
			if line, err := bufio.NewReader(nc).ReadString('\n'); err == nil {
				replies <- line
			}
		}()
	}
	waiting(polls)
	t.Logf("%d polls: %d bytes of resident memory each", polls, (resident(t, cmd.Process.Pid)-empty)/int64(polls))
	if long {
		before := used(t, cmd.Process.Pid)
		time.Sleep(20 * time.Second)
		t.Logf("%.2f s of processor time in 20 s", (used(t, cmd.Process.Pid) - before).Seconds())
	}

	const jobs = 3
	for n := 1; n <= jobs; n++ {
		call(t, "PUT", "http://"+public+"/api/ns/q?token="+token)
		select {
		case line := <-replies:
			if line != "HTTP/1.1 200 OK\r\n" {
				t.Errorf("job %d: got %q", n, line)
			}
		case <-time.After(awaited):
			t.Fatalf("nobody had job %d", n)
		}
		waiting(polls - n)
	}
	for _, nc := range conns {
		nc.Close()
	}
	waiting(0)
	call(t, "PUT", "http://"+public+"/api/ns/q?token="+token)
	if size := call(t, "GET", "http://"+public+"/api/ns/q/size"); size != `{"namespace":"ns","queue":"q","size":1}` {
		t.Errorf("after all hung up: %s", size)
	}
	if len(replies) > 0 {
		t.Errorf("%d jobs woke %d more", jobs, len(replies))
	}
}

// call is one request that must succeed.
func call(t *testing.T, method, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s %v", method, url, reply.Status, text, err)
	}
	return string(text)
}

// resident is a process's resident memory in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no VmRSS in %s", text)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// used is the processor time of a process, in steps of 10 ms.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	var ticks int
	for _, f := range fields[12:14] { // utime and stime, which are 14 and 15 of the line
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"pawl/client"
)

// openTerminal is both ends of a terminal of that size.
func openTerminal(t *testing.T, columns, lines uint16) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines}); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return screen, program
}

// TestTopFits: the live screen stays within the terminal, whatever queues are
// called, and shows as many of them as there is room for.
func TestTopFits(t *testing.T) {
	s := serveIn(t, t.TempDir()).ready(t)
	c := client.New(client.Options{Addr: s.sock})
	defer c.Close()
	long := strings.Repeat("a-long-name-", 15)
	for i := range 60 {
		if _, err := c.Enqueue(t.Context(), client.Job{Queue: fmt.Sprintf("%s%02d", long, i), Payload: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Do(t.Context(), "QUEUE", "PAUSE", long+"00"); err != nil {
		t.Fatal(err)
	}
	for _, size := range []struct{ columns, lines uint16 }{{80, 24}, {200, 60}} {
		screen, program := openTerminal(t, size.columns, size.lines)
		got := make(chan []byte, 1)
		go func() {
			var all bytes.Buffer
			buf := make([]byte, 4096)
			for !bytes.Contains(all.Bytes(), []byte("\x1b[?1049l")) {
				n, err := screen.Read(buf)
				all.Write(buf[:n])
				if err != nil {
					break
				}
			}
			got <- all.Bytes()
		}()
		e, _, stderr := testEnv(map[string]string{"PAWL_ADDR": s.sock})
		e.stdout = program
		if code := run(t.Context(), e, []string{"top", "--times", "1"}); code != exitOK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		text := regexp.MustCompile(`\x1b\[[?0-9]*[A-Za-z]`).ReplaceAllString(string(<-got), "")
		lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r", ""), "\n"), "\n")
		if len(lines) >= int(size.lines) { // the cursor stands on one more
			t.Errorf("%dx%d: %d lines", size.columns, size.lines, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > int(size.columns) {
				t.Errorf("%dx%d: %d columns in %q", size.columns, size.lines, n, line)
			}
		}
		if queues := strings.Count(text, "a-long-name-a"); queues < int(size.lines)-8 && size.columns > 100 || queues == 0 && size.columns > 100 {
			t.Errorf("%dx%d: only %d queues:\n%s", size.columns, size.lines, queues, text)
		}
	}
	e, stdout, _ := testEnv(map[string]string{"PAWL_ADDR": s.sock})
	if code := run(t.Context(), e, []string{"top", "--times", "1", "--json", "--queues", "3"}); code != exitOK {
		t.Fatalf("--json: exit code %d", code)
	}
	var page topJSON
	if err := json.Unmarshal(stdout.Bytes(), &page); err != nil || page.Queues != 60 || page.All.Ready != 60 || len(page.Busiest) != 3 {
		t.Errorf("--json: got %+v, %v", page, err)
	}
}

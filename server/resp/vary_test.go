package resp_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pawl/server/resp"
)

// Replies that are never the same twice have a form.
func TestRepliesThatVary(t *testing.T) {
	p := startDaemon(t, resp.Options{}).dial()
	for _, test := range []struct{ command, form string }{
		{"TIME", `^\["\d{10,}" "\d{1,6}"\]$`},
		{"CLIENT INFO", `^"id=\d+ addr=127\.0\.0\.1:\d+ .*cmd=client\|info.*\\n"$`},
		{"MEMORY DOCTOR", `^".*[a-z].*"$`},
		{"ACL GENPASS", `^"[0-9a-f]{64}"$`},
		{"ACL GENPASS 5", `^"[0-9a-f]{2}"$`},
	} {
		if got := p.do(strings.Fields(test.command)...); !regexp.MustCompile(test.form).MatchString(got) {
			t.Errorf("%s: got %s, want %s", test.command, got, test.form)
		}
	}
}

// A snapshot and a backup that fail say so and stop nothing.
func TestStorageRefusals(t *testing.T) {
	backups := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(backups, nil, 0o600); err != nil { // no directory can be made below it
		t.Fatal(err)
	}
	d := startDaemon(t, resp.Options{BackupDir: backups})
	p := d.dial()
	if got := p.do("BACKUP", "monday"); !strings.HasPrefix(got, "-ERR the backup failed: ") {
		t.Errorf("BACKUP: got %s", got)
	}
	// The second of two in one write comes while the first one is running, or is
	// begun like it.
	p.send(command("ENQUEUE", "q", "x") + strings.Repeat(command("BGSAVE"), 200))
	p.reply()
	refused := 0
	for range 200 {
		switch got := p.reply(); got {
		case "+Background saving started":
		case "-ERR Background save already in progress":
			refused++
		default:
			t.Errorf("BGSAVE: got %s", got)
		}
	}
	if refused == 0 {
		t.Error("200 snapshots at once: none was refused")
	}
	if got := p.do("PING"); got != "+PONG" {
		t.Errorf("afterwards: got %s", got)
	}
}

// What this edge has no word for is told as no more than that, and a frame that
// the codec does not take, though the framer did, closes the connection.
func TestErrorsWithoutAWord(t *testing.T) {
	if line, known := resp.ReplyError(errors.New("/secret/path: broken")); known || line != "ERR internal error" {
		t.Errorf("got %q, known %v", line, known)
	}
	for _, frame := range []string{"", "*1\r\n", "*1\r\n$4\r\nPING\r\nmore", "*9223372036854775807\r\n"} {
		if args, err := resp.SplitCommand([]byte(frame)); err == nil {
			t.Errorf("%q: got %q, want an error", frame, args)
		}
	}
}

package resp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pawl/acl"
	"pawl/engine"
	"pawl/server/resp"
)

func TestUsersOfTheLogSurviveARestart(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{})
	c := d.dial()
	c.expect("+OK", "ACL", "SETUSER", "bob", "on", ">secret", "~jobs/*", "+@produce", "pool=eu")
	c.expect("+OK", "ACL", "SETUSER", "gone", "on", "nopass")
	c.expect("1", "ACL", "DELUSER", "gone")
	c.expect("+OK", "ACL", "SETUSER", "default", "off")
	d.stop()

	again := startLoading(t, resp.Options{})
	again.dir = d.dir
	again.openEngine()
	c = again.dial()
	c.expect("-NOAUTH Authentication required.", "PING")
	c.expect("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "gone", "x")
	c.expect("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "bob", "wrong")
	c.expect("+OK", "AUTH", "bob", "secret")
	c.expect("-NOPERM No permissions to access a queue", "ENQUEUE", "other/a", "x")
	c.expect("-NOPERM User bob has no permissions to run the 'fetch' command", "FETCH", "jobs/a", "1000")
	if got := c.do("ENQUEUE", "jobs/a", "x"); got[:1] != "[" {
		t.Error(got)
	}
}

// The HTTP API's tokens are users whose rights end with their namespace.
func TestTokensLogIn(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{Password: "x"})
	for _, key := range []string{"token/default/mail/abc", "token/eu/mail/def", "token/default/a*b/ghi"} {
		set := engine.MetaSet{Key: key, Value: []byte("a token")}
		if err := d.e.Do(&set); err != nil || set.Err() != nil {
			t.Fatal(err, set.Err())
		}
	}
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled."
	c := d.dial()
	for _, pair := range [][2]string{{"mail", "def"}, {"mail", "eu:abc"}, {"sms", "abc"}, {"mail", ""}, {"mail", "default/mail:abc"}, {"", "abc"}, {"mail/abc", "x"}} {
		c.expect(wrong, "AUTH", pair[0], pair[1])
		time.Sleep(110 * time.Millisecond) // slower than what is slowed
	}
	c.expect("+OK", "AUTH", "mail", "abc")
	c.expect(`"token/default/mail"`, "ACL", "WHOAMI")
	if got := c.do("ENQUEUE", "mail/a", "x"); got[:1] != "[" {
		t.Error(got)
	}
	c.expect(`["mail/a"]`, "QUEUE", "LIST")
	c.expect("-NOPERM No permissions to access a queue", "ENQUEUE", "sms/a", "x")
	c.expect("-NOPERM User token/default/mail has no permissions to run the 'config|get' command", "CONFIG", "GET", "*")

	c = d.dial()
	c.expect("+OK", "AUTH", "mail", "eu:def")
	c.expect(`[]`, "QUEUE", "LIST")
	c = d.dial()
	c.expect("+OK", "AUTH", "a*b", "default:ghi")
	c.expect("-NOPERM No permissions to access a queue", "ENQUEUE", "aXb/q", "x")
	if got := c.do("ENQUEUE", "a*b/q", "x"); got[:1] != "[" {
		t.Error(got)
	}
}

// Whoever does not log in is not listened to for long.
func TestStrangerMaySendFewCommands(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{Password: "x"})
	c := d.dial()
	c.send(strings.Repeat(command("PING"), 1100) + command("AUTH", "x"))
	want := strings.Repeat("-NOAUTH Authentication required.\r\n", 1000) + "-ERR Protocol error: too many commands before login\r\n"
	if got := c.closed(); got != want {
		t.Errorf("got %d bytes that end in %q", len(got), got[max(0, len(got)-100):])
	}
	if n := d.s.Numbers().Closed["protocol"]; n != 1 {
		t.Errorf("%d connections were closed", n)
	}
	c = d.dial()
	c.send(strings.Repeat(command("PING"), 1000))
	for range 1000 {
		c.reply()
	}
	c.expect("+OK", "AUTH", "x")
	c.expect("+PONG", "PING")
}

// A token that is deleted cuts off who is logged in with it, also one that waits
// for a job, and nobody else: not another token of the same namespace.
func TestDeletedTokenCutsOff(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{Password: "x"})
	for _, token := range []string{"gone", "stays"} {
		set := engine.MetaSet{Key: "token/default/mail/" + token, Value: []byte("a token")}
		if err := d.e.Do(&set); err != nil || set.Err() != nil {
			t.Fatal(err, set.Err())
		}
	}
	login := func(token string) *peer {
		t.Helper()
		c := d.dial()
		c.expect("+OK", "AUTH", "mail", token)
		return c
	}
	idle, waiting, stays, other := login("gone"), login("gone"), login("stays"), login("gone")
	other.expect("+OK", "AUTH", "mail", "stays") // the later login counts
	waiting.send(command("FETCH", "mail/q", "60000", "WAIT", "3600000") + command("ENQUEUE", "mail/q", "not done"))
	d.until("it waits", func() bool { return d.s.Numbers().Blocked == 1 })
	if err := d.e.Do(&engine.MetaSet{Key: "token/default/mail/gone"}); err != nil {
		t.Fatal(err)
	}
	d.s.TokenDeleted("default", "mail", "gone")
	if got := idle.closed() + waiting.closed(); got != "" {
		t.Errorf("who was cut off was told %q", got)
	}
	d.until("nobody waits", func() bool { return d.s.Numbers().Blocked == 0 })
	if got := stays.do("ENQUEUE", "mail/q", "x"); got[:1] != "[" {
		t.Errorf("another token of the namespace: got %s", got)
	}
	if got := other.do("FETCH", "mail/q", "60000"); !strings.Contains(got, `"payload" "x"`) {
		t.Errorf("who has logged in anew: got %s", got)
	}
	if n := d.s.Numbers().Closed["killed"]; n != 2 {
		t.Errorf("%d connections were killed, want 2", n)
	}
}

// A wrong password of a user costs what a name that does not exist costs: both
// look for a token in the log, which may wait for the disk.
func TestWrongNameAndPasswordAreAlike(t *testing.T) {
	t.Parallel()
	d, f := startFake(t, resp.Options{Password: "right", Users: []acl.User{{Name: "off"}}})
	c := d.dial()
	for _, user := range []string{"default", "off", "nobody"} {
		f.mu.Lock()
		before := f.submits
		f.mu.Unlock()
		c.expect("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", user, "wrong")
		f.mu.Lock()
		if n := f.submits - before; n != 1 {
			t.Errorf("a wrong password for %q looked into the log %d times, want 1", user, n)
		}
		f.mu.Unlock()
	}
	c.expect("+OK", "AUTH", "right")
}

// Whoever tries passwords is slowed, and nobody else from another address.
func TestWrongPasswordsAreSlowed(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{Password: "right"})
	c := d.dial()
	began := time.Now()
	for i := range 11 {
		c.expect("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", fmt.Sprint("wrong", i))
	}
	c.expect("+OK", "AUTH", "right")
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("eleven wrong passwords took %v", took)
	}
	if n := d.s.Numbers().AuthFailures; n != 11 {
		t.Errorf("%d failures were counted", n)
	}
}

// MONITOR shows what is done, and no password and no whole payload.
func TestMonitor(t *testing.T) {
	d, _ := startFake(t, resp.Options{})
	m := d.dial()
	m.expect("+OK", "MONITOR")
	c := d.dial()
	c.do("ENQUEUE", "q", string(make([]byte, 1000)))
	c.do("AUTH", "default", "topsecret")
	c.do("HELLO", "3", "AUTH", "default", "topsecret")
	c.do("PING")
	var lines []string
	for range 4 {
		lines = append(lines, m.reply())
	}
	for i, want := range []string{`"ENQUEUE" "q" "\x00`, `"AUTH" "(redacted)"`, `"HELLO" "(redacted)"`, `"PING"`} {
		if !strings.Contains(lines[i], want) || strings.Contains(lines[i], "topsecret") || len(lines[i]) > 1000 {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	m.send(command("RESET"))
	for m.reply() != "+RESET" { // a line of the RESET itself may come first
	}
	c.do("PING")
	m.expect("+PONG", "PING")
	if n := d.s.Numbers().Monitors; n != 0 {
		t.Errorf("%d monitors are left", n)
	}
}

package resp_test

import (
	"strings"
	"testing"
	"time"

	"pawl/acl"
	"pawl/server/resp"
)

func user(t *testing.T, name string, rules ...string) acl.User {
	t.Helper()
	u, err := acl.Parse(name, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestConfiguredUsersChange: new users of the configuration hold for who is
// connected, those that are gone are cut off, and users of the log come out from
// behind them.
func TestConfiguredUsersChange(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{Users: []acl.User{
		user(t, "ops", "on", ">o", "+@all", "allqueues"), user(t, "worker", "on", ">w", "~a", "+@work"), user(t, "old", "on", ">x"),
	}})
	login := func(name, password string) *peer {
		t.Helper()
		c := d.dial()
		c.expect("+OK", "AUTH", name, password)
		return c
	}
	ops, worker, old := login("ops", "o"), login("worker", "w"), login("old", "x")
	ops.expect("+OK", "ACL", "SETUSER", "logged", "on", ">l")
	ops.expect("-ERR this user is set in the configuration", "ACL", "SETUSER", "worker", "off")
	worker.expect("-NOPERM No permissions to access a queue", "FETCH", "b", "1000")

	d.s.SetUsers([]acl.User{user(t, "ops", "on", ">o", "+@all", "allqueues"), user(t, "worker", "on", ">w", "~b", "+@work"), user(t, "logged", "on", ">hidden")}, "")
	worker.expect("(nil)", "FETCH", "b", "1000")
	worker.expect("-NOPERM No permissions to access a queue", "FETCH", "a", "1000")
	old.closed()
	c := d.dial()
	c.expect("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "logged", "l")
	c.expect("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "old", "x")
	c.expect("-NOAUTH Authentication required.", "ENQUEUE", "q", "x") // users are configured: nobody is everybody

	d.s.SetUsers(nil, "")
	login("logged", "l")
	c = d.dial()
	if got := c.do("ENQUEUE", "q", "x"); !strings.HasPrefix(got, "[") {
		t.Errorf("without configured users: got %s, want a job", got)
	}
	d.s.SetUsers(nil, "secret")
	d.dial().expect("-NOAUTH Authentication required.", "ENQUEUE", "q", "x")
}

// TestSetLimits: fewer connections and a shorter idle time hold from now on.
func TestSetLimits(t *testing.T) {
	t.Parallel()
	d, _ := startFake(t, resp.Options{})
	first := d.dial()
	first.expect("+PONG", "PING")
	d.s.SetLimits(resp.Limits{Clients: 1})
	d.dial().expect("-ERR max number of clients reached", "PING")
	d.s.SetLimits(resp.Limits{})
	d.dial().expect("+PONG", "PING")
	if got := first.do("CONFIG", "GET", "maxclients"); !strings.Contains(got, "10000") {
		t.Skip("this process may not open so many files") // the limit follows them
	}
	d.s.SetLimits(resp.Limits{IdleTime: time.Millisecond})
	first.closed()
}

// TestOperators does with connections and users what the admin listener does.
func TestOperators(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, resp.Options{})
	c := d.dial()
	c.expect("+OK", "CLIENT", "SETNAME", "boss")
	list := d.s.Clients()
	if len(list) != 1 || list[0].Name != "boss" || list[0].User != "default" || list[0].Command != "client|setname" || list[0].Protocol != 2 {
		t.Fatalf("got %+v", list)
	}
	if err := d.s.SetUser("bob", []string{"on", ">b", "~mail*", "+@work", "pool=eu"}, "op"); err != nil {
		t.Fatal(err)
	}
	bob := d.dial()
	bob.expect("+OK", "AUTH", "bob", "b")
	users := d.s.Users()
	if len(users) != 2 || users[0].Name != "bob" || users[0].Pool != "eu" || users[0].Connected != 1 || users[0].Implied || !users[1].Implied {
		t.Errorf("got %+v", users)
	}
	for _, bad := range []struct {
		name string
		rule string
	}{{"", "on"}, {"bob", "everything"}, {"token/default/x", "on"}} {
		if err := d.s.SetUser(bad.name, []string{bad.rule}, "op"); err == nil {
			t.Errorf("user %q with rule %q was taken", bad.name, bad.rule)
		}
	}
	if _, err := d.s.DeleteUser("default", "op"); err != resp.ErrUserDefault {
		t.Errorf("got %v, want ErrUserDefault", err)
	}
	if gone, err := d.s.DeleteUser("bob", "op"); !gone || err != nil {
		t.Errorf("got %v, %v", gone, err)
	}
	bob.closed()
	if gone, err := d.s.DeleteUser("bob", "op"); gone || err != nil {
		t.Errorf("again: got %v, %v", gone, err)
	}
	if !d.s.KillClient(list[0].ID) || d.s.KillClient(99) {
		t.Error("the connection was not found, or one that there is not")
	}
	c.closed()
}

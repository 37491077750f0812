package acl_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pawl/acl"
)

func TestRulesMakeTheSameUserAgain(t *testing.T) {
	for _, rules := range []string{
		"",
		"on nopass allqueues +@all",
		"on >secret >other ~mail/* ~sms/[a-c]? +@produce +@work pool=eu",
		"on >secret +@all -@admin",
		"on nopass +@work reset",
	} {
		u, err := acl.Parse("bob", strings.Fields(rules)...)
		if err != nil {
			t.Fatalf("%q: %v", rules, err)
		}
		again, err := acl.Parse("bob", u.Rules()...)
		if err != nil {
			t.Fatalf("%q: its rules %q: %v", rules, u.Rules(), err)
		}
		if !reflect.DeepEqual(again, u) {
			t.Errorf("%q: got %+v, want %+v", rules, again, u)
		}
	}
}

func TestRefusedRules(t *testing.T) {
	for _, rule := range []string{
		"", "onn", ">", "#abc", "#" + strings.Repeat("0", 32) + "$zz", "+@nobody", "-@", "~", "secret", "pool=a/b",
		">" + strings.Repeat("x", acl.MaxPasswordBytes+1), "~" + strings.Repeat("x", acl.MaxPatternBytes+1),
	} {
		if u, err := acl.Parse("bob", rule); err == nil {
			t.Errorf("rule %q was taken: %v", rule, u)
		}
	}
	for _, name := range []string{"", "a b", "a\nb", strings.Repeat("x", 256)} {
		if _, err := acl.Parse(name, "on"); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
	if _, err := acl.Parse("bob", "on", "wrong"); !errors.Is(err, acl.ErrRule) || !strings.HasPrefix(err.Error(), "rule 2: ") {
		t.Errorf("got %v, want rule 2: %v", err, acl.ErrRule)
	}
}

func TestApplyLeavesTheOldUserAlone(t *testing.T) {
	old, _ := acl.Parse("bob", "on", ">one", "~a", "+@work")
	before := old.String()
	if _, err := old.Apply(">two", "~b", "resetpass", "reset"); err != nil {
		t.Fatal(err)
	}
	if got := old.String(); got != before {
		t.Errorf("got %q, want %q", got, before)
	}
}

func TestPasswords(t *testing.T) {
	u, err := acl.Parse("bob", "on", ">one", ">two")
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{"one": true, "two": true, "": false, "On": false, "one ": false} {
		if got := u.Check([]byte(password)); got != want {
			t.Errorf("%q: got %v, want %v", password, got, want)
		}
	}
	if strings.Contains(u.String(), "one") || u.Passwords[0].Salt == u.Passwords[1].Salt {
		t.Errorf("password in clear or salt used twice: %v", u)
	}
	off, _ := u.Apply("off")
	none, _ := acl.Parse("eve", "on")
	open, _ := acl.Parse("eve", "on", "nopass")
	if off.Check([]byte("one")) || none.Check(nil) || none.Check([]byte("x")) || !open.Check([]byte("x")) {
		t.Error("a user that is off, or has no password, got in; or one with nopass did not")
	}
}

func TestRights(t *testing.T) {
	u, _ := acl.Parse("bob", "on", "nopass", "~mail/*", "~default/x", "+@produce", "+@work")
	if !u.May(0) || !u.May(acl.Work) || u.May(acl.Admin) || u.May(acl.Work|acl.Admin) {
		t.Errorf("classes of %v are wrong", u)
	}
	for queue, want := range map[string]bool{"mail/a": true, "mail/": true, "default/x": true, "default/xy": false, "mai": false, "": false} {
		if got := u.Sees([]byte(queue)); got != want {
			t.Errorf("%q: got %v, want %v", queue, got, want)
		}
	}
	all := acl.Everybody()
	if u.SeesAll() || !all.SeesAll() || !all.Sees([]byte("any/thing")) || !all.May(acl.All) {
		t.Error("everybody does not see everything, or bob does")
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"**", "abc", true},
		{"a*", "abc", true}, {"a*c", "abc", true}, {"a*c", "abcd", false}, {"*b*", "abc", true}, {"*x*", "abc", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"?", "", false},
		{"[a-c]x", "bx", true}, {"[a-c]x", "dx", false}, {"[^a-c]x", "dx", true}, {"[^a-c]x", "ax", false},
		{"[c-a]", "b", true}, {"[a", "a", true}, {"[a", "b", false}, {"[]", "a", false}, {"[a-]", "-", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {`\`, `\`, true}, {`[\]]`, "]", true},
		{"a*a*a*b", "aaaaaaaaaaaaab", true}, {"mail/*", "mail/a/b", true}, {"[", "", false},
		{"[", "a", false}, {"[a-", "-", true}, {"[a-", "b", false}, {`[\`, `\`, true}, {`[\`, "a", false},
	} {
		if got := acl.Match(c.pattern, []byte(c.name)); got != c.want {
			t.Errorf("Match(%q, %q): got %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

// A pattern made to be slow must end: recursion on each star would take longer
// than the world has stood.
func TestMatchIsBounded(t *testing.T) {
	pattern := strings.Repeat("*a", 100) + "b"
	done := make(chan bool, 1)
	go func() { done <- acl.Match(pattern, []byte(strings.Repeat("a", 1000))) }()
	select {
	case got := <-done:
		if got {
			t.Error("matched")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no answer")
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*[b-d]?", "axxcz")
	f.Add(`[^\]`, "a")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 1024 || len(name) > 1024 {
			return
		}
		acl.Match(pattern, []byte(name))
		if !acl.Match("*"+pattern, []byte(name)) && acl.Match(pattern, []byte(name)) {
			t.Errorf("%q matches %q, but not with a star before it", pattern, name)
		}
	})
}

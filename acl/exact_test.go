package acl_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pawl/acl"
)

// What is as long as it may be is taken, and no more.
func TestLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, rule := range []string{">" + long(acl.MaxPasswordBytes), "~" + long(acl.MaxPatternBytes), "pool=" + long(acl.MaxNameBytes), "pool="} {
		if _, err := acl.Parse(long(acl.MaxNameBytes), rule); err != nil {
			t.Errorf("%.10q of %d bytes: %v", rule, len(rule), err)
		}
	}
	if _, err := acl.Parse("bob", "pool="+long(acl.MaxNameBytes+1)); !errors.Is(err, acl.ErrRule) {
		t.Errorf("a pool that is too long: got %v, want %v", err, acl.ErrRule)
	}
	for first, most := range map[string]int{">": acl.MaxPasswords, "~": acl.MaxPatterns} {
		var rules []string
		for i := range most {
			rules = append(rules, fmt.Sprint(first, i))
		}
		u, err := acl.Parse("bob", rules...)
		if err != nil {
			t.Fatalf("%d of %q: %v", most, first, err)
		}
		if _, err := u.Apply(first + "more"); !errors.Is(err, acl.ErrRule) {
			t.Errorf("one more of %q: got %v, want %v", first, err, acl.ErrRule)
		}
	}
}

// A rule with the end of a line in it would be another user's where users are
// kept as lines.
func TestRulesAreOfOneLine(t *testing.T) {
	for _, rule := range []string{"~a\nb", "~a\rb", "~a\x00b", ">a\nb", "on\n"} {
		if u, err := acl.Parse("bob", rule); !errors.Is(err, acl.ErrRule) {
			t.Errorf("%q: got %v, %v, want %v", rule, u, err, acl.ErrRule)
		}
	}
}

// Each class is a name of its own and part of all.
func TestClasses(t *testing.T) {
	names := acl.ClassNames()
	if want := []string{"produce", "work", "operate", "admin"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	var together acl.Class
	for _, name := range names {
		c, ok := acl.ParseClass(name)
		if !ok || c == 0 || together&c != 0 {
			t.Errorf("%s is %b, beside %b", name, c, together)
		}
		together |= c
	}
	if together != acl.All {
		t.Errorf("all is %b, want %b", acl.All, together)
	}
}

// What was hashed once lets in for ever: the salt comes first, then the password.
func TestStoredPassword(t *testing.T) {
	const text = "#000102030405060708090a0b0c0d0e0f$67557c0d86179c45199f096d85b7aeb2b8b34bf423c403ba517f72bcc5913c4c"
	u, err := acl.Parse("bob", "on", text)
	if err != nil {
		t.Fatal(err)
	}
	if !u.Check([]byte("secret")) || u.Check([]byte("Secret")) {
		t.Error("the stored password is not the one that lets in")
	}
	if got := u.Passwords[0].String(); got != text {
		t.Errorf("got %s, want %s", got, text)
	}
	salt, sum := text[1:33], text[34:]
	for name, bad := range map[string]string{
		"no mark":             salt + "$" + sum,
		"no sum":              "#" + salt,
		"a short salt":        "#" + salt[2:] + "$" + sum,
		"a short sum":         "#" + salt + "$" + sum[2:],
		"a salt that is none": "#" + strings.Repeat("x", len(salt)) + "$" + sum,
		"a sum that is none":  "#" + salt + "$" + strings.Repeat("x", len(sum)),
	} {
		if p, err := acl.ParsePassword(bad); err != acl.ErrPassword || p != (acl.Password{}) {
			t.Errorf("%s: got %v, %v, want %v", name, p, err, acl.ErrPassword)
		}
	}
}

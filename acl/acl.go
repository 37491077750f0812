// Package acl says who may do what: users with passwords, the classes of
// commands they may use, and the queues they may use them on.
//
// A user is made from a name and rules, the same in the configuration file and
// in ACL SETUSER:
//
//	on | off             may log in, or not
//	>password            adds a password, which is kept as a salted hash
//	#salt$hash           adds one that was hashed before (see Password.String)
//	nopass               any password is right
//	resetpass            no passwords, and none is right
//	+@class  -@class     gives or takes a class: produce, work, operate, admin, all
//	~glob                allows the queues whose namespace/queue matches; the edges
//	                     also match the name alone in the default namespace
//	allqueues            is ~*
//	resetqueues          no queue
//	pool=name            the pool of all the user's queues; default without
//	reset                back to a user without any right
//
// The package has no state and no IO: who keeps users, and where, is up to
// its callers.
package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Class is a set of command classes.
type Class uint8

// The classes. Every user may use the commands of none of them, such as PING.
const (
	// Produce adds jobs.
	Produce Class = 1 << iota
	// Work takes, finishes and gives back jobs.
	Work
	// Operate looks into queues and jobs, and changes them.
	Operate
	// Admin is about the daemon: users, settings, backups, other clients.
	Admin

	All = Produce | Work | Operate | Admin
)

var classNames = []struct {
	class Class
	name  string
}{{Produce, "produce"}, {Work, "work"}, {Operate, "operate"}, {Admin, "admin"}}

// ClassNames are the names of all classes, in the order of their rights.
func ClassNames() []string {
	names := make([]string, len(classNames))
	for i, c := range classNames {
		names[i] = c.name
	}
	return names
}

// ParseClass reads one name of ClassNames, or "all".
func ParseClass(name string) (Class, bool) {
	if name == "all" {
		return All, true
	}
	for _, c := range classNames {
		if c.name == name {
			return c.class, true
		}
	}
	return 0, false
}

// String lists the classes as rules, for example "+@produce +@work".
func (c Class) String() string {
	switch c {
	case 0:
		return "-@all"
	case All:
		return "+@all"
	}
	var rules []string
	for _, n := range classNames {
		if c&n.class != 0 {
			rules = append(rules, "+@"+n.name)
		}
	}
	return strings.Join(rules, " ")
}

// Bounds of a user.
const (
	MaxNameBytes     = 255
	MaxPasswordBytes = 1024
	MaxPasswords     = 16
	MaxPatterns      = 64
	MaxPatternBytes  = 255
)

// DefaultName is the user of clients that have not logged in, where that is
// allowed, and of AUTH with one argument.
const DefaultName = "default"

// User is one user. The zero value may do nothing and cannot log in. A User is
// not changed once it is in use; Apply makes another.
type User struct {
	Name      string
	Enabled   bool
	NoPass    bool // any password is right
	Passwords []Password
	Classes   Class
	Patterns  []string // globs over namespace/queue; any one that matches allows
	Pool      string   // empty is the default pool
}

// Everybody is the default user of a server without authentication: all
// rights, no password.
func Everybody() User {
	return User{Name: DefaultName, Enabled: true, NoPass: true, Classes: All, Patterns: []string{"*"}}
}

// ErrRule is given for a rule that cannot be read; the text says which, never
// with a password in it.
var ErrRule = errors.New("unknown or malformed rule")

// Parse makes a user from a name and rules.
func Parse(name string, rules ...string) (User, error) {
	if name == "" || len(name) > MaxNameBytes || strings.ContainsAny(name, " \r\n\x00") {
		return User{}, fmt.Errorf("user name must be 1 to %d bytes without blanks", MaxNameBytes)
	}
	return User{Name: name}.Apply(rules...)
}

// Apply is u after more rules, in their order. u itself is not changed.
func (u User) Apply(rules ...string) (User, error) {
	u.Passwords, u.Patterns = slices.Clone(u.Passwords), slices.Clone(u.Patterns)
	for i, rule := range rules {
		if err := u.apply(rule); err != nil {
			return User{}, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return u, nil
}

func (u *User) apply(rule string) error {
	if strings.ContainsAny(rule, "\r\n\x00") {
		return ErrRule // users are kept as lines of rules
	}
	switch rule {
	case "on":
		u.Enabled = true
	case "off":
		u.Enabled = false
	case "nopass":
		u.NoPass, u.Passwords = true, nil
	case "resetpass":
		u.NoPass, u.Passwords = false, nil
	case "allqueues", "allkeys":
		u.Patterns = []string{"*"}
	case "resetqueues", "resetkeys":
		u.Patterns = nil
	case "reset":
		*u = User{Name: u.Name}
	default:
		return u.applyValue(rule)
	}
	return nil
}

func (u *User) applyValue(rule string) error {
	if class, ok := strings.CutPrefix(rule, "+@"); ok {
		c, ok := ParseClass(class)
		if !ok {
			return fmt.Errorf("%w: no such class", ErrRule)
		}
		u.Classes |= c
		return nil
	}
	if class, ok := strings.CutPrefix(rule, "-@"); ok {
		c, ok := ParseClass(class)
		if !ok {
			return fmt.Errorf("%w: no such class", ErrRule)
		}
		u.Classes &^= c
		return nil
	}
	if pool, ok := strings.CutPrefix(rule, "pool="); ok {
		if len(pool) > MaxNameBytes || strings.Contains(pool, "/") {
			return fmt.Errorf("%w: a pool is at most %d bytes without a slash", ErrRule, MaxNameBytes)
		}
		u.Pool = pool
		return nil
	}
	if rule == "" {
		return ErrRule
	}
	switch value := rule[1:]; rule[0] {
	case '>':
		if value == "" || len(value) > MaxPasswordBytes {
			return fmt.Errorf("%w: a password is 1 to %d bytes", ErrRule, MaxPasswordBytes)
		}
		return u.addPassword(NewPassword(value))
	case '#':
		p, err := ParsePassword(rule)
		if err != nil {
			return err
		}
		return u.addPassword(p)
	case '~':
		if value == "" || len(value) > MaxPatternBytes || len(u.Patterns) == MaxPatterns {
			return fmt.Errorf("%w: at most %d patterns of 1 to %d bytes", ErrRule, MaxPatterns, MaxPatternBytes)
		}
		if !slices.Contains(u.Patterns, value) {
			u.Patterns = append(u.Patterns, value)
		}
		return nil
	}
	return ErrRule
}

func (u *User) addPassword(p Password) error {
	if len(u.Passwords) == MaxPasswords {
		return fmt.Errorf("%w: at most %d passwords", ErrRule, MaxPasswords)
	}
	u.NoPass, u.Passwords = false, append(u.Passwords, p)
	return nil
}

// Rules says u in rules that make the same user again.
func (u User) Rules() []string {
	rules := []string{"off"}
	if u.Enabled {
		rules[0] = "on"
	}
	if u.NoPass {
		rules = append(rules, "nopass")
	}
	for _, p := range u.Passwords {
		rules = append(rules, p.String())
	}
	if len(u.Patterns) == 0 {
		rules = append(rules, "resetqueues")
	}
	for _, p := range u.Patterns {
		rules = append(rules, "~"+p)
	}
	if u.Pool != "" {
		rules = append(rules, "pool="+u.Pool)
	}
	return append(rules, strings.Fields(u.Classes.String())...)
}

// String is one line as ACL LIST shows it.
func (u User) String() string { return "user " + u.Name + " " + strings.Join(u.Rules(), " ") }

// May says whether u may use a command of class need; the zero class is
// everybody's.
func (u *User) May(need Class) bool { return u.Classes&need == need }

// Sees says whether a pattern of u allows the queue, as namespace/queue.
func (u *User) Sees(queue []byte) bool {
	for _, p := range u.Patterns {
		if p == "*" || Match(p, queue) {
			return true
		}
	}
	return false
}

// SeesAll says whether every queue of the pool is u's, so that nothing needs to
// be looked at for each.
func (u *User) SeesAll() bool { return slices.Contains(u.Patterns, "*") }

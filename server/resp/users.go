package resp

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"pawl/acl"
	"pawl/engine"
	"pawl/state"
)

const defaultName = acl.DefaultName

// Where users and the HTTP API's tokens are kept in the log.
const (
	userKey  = "user/"
	tokenKey = "token/"
)

// userTable is all users at one moment; it is never changed, only replaced.
type userTable struct {
	byName     map[string]*acl.User
	configured map[string]bool // names the configuration has taken
}

func (t *userTable) named(name string) *acl.User { return t.byName[name] }

// with is the table with u, or without the user of that name when u is nil.
func (t *userTable) with(name string, u *acl.User) *userTable {
	next := &userTable{byName: maps.Clone(t.byName), configured: t.configured}
	if u == nil {
		delete(next.byName, name)
	} else {
		next.byName[name] = u
	}
	return next
}

// configuredUsers are the users without the log's.
func configuredUsers(opt Options) *userTable {
	t := &userTable{byName: make(map[string]*acl.User), configured: make(map[string]bool)}
	for _, u := range opt.Users {
		t.byName[u.Name], t.configured[u.Name] = &u, true
	}
	if opt.Password != "" {
		u := acl.Everybody()
		u.NoPass, u.Passwords = false, []acl.Password{acl.NewPassword(opt.Password)}
		t.byName[defaultName], t.configured[defaultName] = &u, true
	}
	if t.byName[defaultName] == nil {
		u := acl.Everybody()
		if len(opt.Users) > 0 {
			u = acl.User{Name: defaultName}
		}
		t.byName[defaultName] = &u
	}
	return t
}

// loadUsers adds the log's users to those of the configuration, which win.
func (s *Server) loadUsers(e Engine) error {
	list := engine.MetaList{Prefix: userKey}
	if err := e.Wait(e.Submit(&list)); err != nil {
		return err
	}
	if err := list.Err(); err != nil {
		return err
	}
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	t := s.users.Load()
	for _, pair := range list.Pairs {
		name := strings.TrimPrefix(pair.Key, userKey)
		u, err := acl.Parse(name, strings.Split(string(pair.Value), "\n")...)
		if err != nil {
			return fmt.Errorf("user %q: %w", name, err)
		}
		if t.configured[name] {
			s.log.Warn("a user of the log is hidden by one of the configuration", "user", name)
			continue
		}
		t = t.with(name, &u)
	}
	s.users.Store(t)
	return nil
}

// takeUsers makes a new connection the default user's, where that needs no
// password.
func (c *conn) takeUsers(t *userTable) {
	c.becomeDefault(t)
}

func (c *conn) becomeDefault(t *userTable) {
	c.users = t
	u := t.named(defaultName)
	if u == nil || !u.Enabled || !u.NoPass {
		u = nil
	}
	c.become(u)
}

func (c *conn) become(u *acl.User) {
	c.user = u
	c.strange.Store(u == nil)
	name := ""
	if u != nil {
		name = u.Name
	}
	c.mu.Lock()
	c.login = name
	c.mu.Unlock()
}

// usersChanged takes over the new rights of the client's user. False: the user
// is gone, and the connection ends.
func (c *conn) usersChanged(t *userTable) bool {
	c.users = t
	if c.user == nil {
		c.becomeDefault(t)
		return true
	}
	if _, token := strings.CutPrefix(c.user.Name, tokenKey); token {
		return true
	}
	u := t.named(c.user.Name)
	if u == nil || !u.Enabled {
		c.fail("NOAUTH Authentication required.")
		c.closing = true
		return false
	}
	c.become(u)
	return true
}

const errWrongPass = "WRONGPASS invalid username-password pair or user is disabled."

// logIn makes the connection the user's, or answers why not. The answer and the
// time it takes are the same for a wrong name and a wrong password.
func (c *conn) logIn(name, password []byte) bool {
	c.srv.failures.wait(c)
	u := c.srv.users.Load().named(string(name))
	ok := false
	if u != nil {
		ok = u.Check(password)
	} else {
		acl.Reject(password)
		var err error
		if u, err = c.token(name, password); err != nil {
			c.failError(err)
			return false
		}
		ok = u != nil
	}
	if ok {
		c.become(u)
		return true
	}
	if c.engine() == nil {
		// The log may know the user.
		c.failNow("LOADING Pawl is replaying its log")
		return false
	}
	c.srv.stats.authFailures.Add(1)
	c.srv.failures.add(c)
	c.srv.log.Warn("a client could not log in", "client", c.id, "addr", c.addr)
	c.failNow(errWrongPass)
	return false
}

// token gives the user that a token of the HTTP API stands for: AUTH namespace
// token, with POOL: before the token when the pool is not the default one. Its
// holder may do in the namespace what the HTTP API lets it do.
func (c *conn) token(namespace, token []byte) (*acl.User, error) {
	e := c.engine()
	if e == nil || len(namespace) == 0 || len(namespace) > state.MaxNameBytes || bytes.IndexByte(namespace, '/') >= 0 ||
		len(token) == 0 || len(token) > acl.MaxPasswordBytes {
		return nil, nil
	}
	pool, secret, ok := bytes.Cut(token, []byte{':'})
	if !ok {
		pool, secret = nil, token
	}
	if len(pool) == 0 {
		pool = []byte(state.DefaultPool)
	}
	if len(secret) == 0 || bytes.IndexByte(pool, '/') >= 0 {
		return nil, nil
	}
	get := engine.MetaGet{Key: tokenKey + string(pool) + "/" + string(namespace) + "/" + string(secret)}
	if err := c.wait(c.submit(&get)); err != nil {
		return nil, err
	}
	if get.Err() != nil || get.Value == nil {
		return nil, nil
	}
	return &acl.User{
		Name: tokenKey + string(pool) + "/" + string(namespace), Enabled: true,
		Classes: acl.Produce | acl.Work | acl.Operate, Pool: string(pool),
		Patterns: []string{quoteGlob(string(namespace)) + "/*"},
	}, nil
}

// quoteGlob is the glob that matches text and nothing else.
func quoteGlob(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(`*?[]\`, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// failureLimiter slows addresses that try passwords: after ten wrong ones in a
// second, the next attempt waits until that second is over.
type failureLimiter struct {
	mu    sync.Mutex
	since time.Time      // when counting began
	count map[string]int // guarded by mu
}

// maxFailureHosts bounds the table; beyond it every address shares one count.
const maxFailureHosts = 4096

func (f *failureLimiter) host(c *conn) string {
	host, _, err := net.SplitHostPort(c.addr)
	if err != nil {
		return c.addr
	}
	return host
}

func (f *failureLimiter) add(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn(time.Now())
	host := f.host(c)
	if _, ok := f.count[host]; !ok && len(f.count) >= maxFailureHosts {
		host = ""
	}
	f.count[host]++
}

// turn begins a new second.
func (f *failureLimiter) turn(now time.Time) {
	if f.count == nil || now.Sub(f.since) >= time.Second {
		f.since, f.count = now, make(map[string]int)
	}
}

func (f *failureLimiter) wait(c *conn) {
	f.mu.Lock()
	now := time.Now()
	f.turn(now)
	pause := time.Duration(0)
	if max(f.count[f.host(c)], f.count[""]) >= failuresPerSec {
		pause = time.Second - now.Sub(f.since)
	}
	f.mu.Unlock()
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.srv.stop:
	}
}

// ACL WHOAMI.
func cmdACLWhoAmI(c *conn, _ [][]byte) { c.b.out.bulkString(c.user.Name) }

// ACL LIST.
func cmdACLList(c *conn, _ [][]byte) {
	t := c.srv.users.Load()
	c.b.out.array(len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		c.b.out.bulkString(t.named(name).String())
	}
}

// ACL USERS.
func cmdACLUsers(c *conn, _ [][]byte) {
	t := c.srv.users.Load()
	c.b.out.array(len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		c.b.out.bulkString(name)
	}
}

// ACL CAT [class].
func cmdACLCat(c *conn, args [][]byte) {
	w := &c.b.out
	if len(args) == 2 {
		w.array(len(acl.ClassNames()))
		for _, name := range acl.ClassNames() {
			w.bulkString(name)
		}
		return
	}
	class, ok := acl.ParseClass(lower(string(args[2])))
	if !ok {
		c.failNow("ERR Unknown category '" + clip(args[2]) + "'")
		return
	}
	var names []string
	for _, cmd := range commands {
		if cmd.class&class != 0 && cmd.run != nil {
			names = append(names, cmd.fullName())
		}
	}
	w.array(len(names))
	for _, name := range names {
		w.bulkString(name)
	}
}

// ACL GETUSER name.
func cmdACLGetUser(c *conn, args [][]byte) {
	u := c.srv.users.Load().named(string(args[2]))
	w := &c.b.out
	if u == nil {
		w.null()
		return
	}
	w.mapHeader(5)
	w.bulkString("flags")
	flags := []string{"off"}
	if u.Enabled {
		flags[0] = "on"
	}
	if u.NoPass {
		flags = append(flags, "nopass")
	}
	w.set(len(flags))
	for _, f := range flags {
		w.bulkString(f)
	}
	w.bulkString("passwords")
	w.array(len(u.Passwords))
	for _, p := range u.Passwords {
		w.bulkString(p.String())
	}
	w.pairString("commands", u.Classes.String())
	patterns := make([]string, len(u.Patterns))
	for i, p := range u.Patterns {
		patterns[i] = "~" + p
	}
	w.pairString("queues", strings.Join(patterns, " "))
	w.pairString("pool", poolOf(u))
}

// ACL SETUSER name [rule…].
func cmdACLSetUser(c *conn, args [][]byte) {
	name := string(args[2])
	rules := make([]string, 0, len(args)-3)
	for _, arg := range args[3:] {
		rules = append(rules, string(arg))
	}
	s := c.srv
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	t := s.users.Load()
	if t.configured[name] {
		c.failNow("ERR this user is set in the configuration")
		return
	}
	if strings.HasPrefix(name, tokenKey) {
		c.failNow("ERR user names that begin with " + tokenKey + " are those of tokens")
		return
	}
	base := acl.User{}
	var err error
	if old := t.named(name); old != nil {
		base = *old
	} else if base, err = acl.Parse(name); err != nil {
		c.failNow("ERR Error in ACL SETUSER: " + err.Error())
		return
	}
	u, err := base.Apply(rules...)
	if err != nil {
		c.failNow("ERR Error in ACL SETUSER modifier: " + err.Error())
		return
	}
	set := engine.MetaSet{Key: userKey + name, Value: []byte(strings.Join(u.Rules(), "\n"))}
	if !c.do(&set) {
		return
	}
	s.users.Store(t.with(name, &u))
	s.log.Info("a user was set", "user", name, "by", c.user.Name)
	c.b.out.ok()
}

// ACL DELUSER name….
func cmdACLDelUser(c *conn, args [][]byte) {
	s := c.srv
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	t, deleted := s.users.Load(), 0
	for _, arg := range args[2:] {
		name := string(arg)
		if name == defaultName {
			c.failNow("ERR The 'default' user cannot be removed")
			return
		}
		if t.configured[name] {
			c.failNow("ERR this user is set in the configuration")
			return
		}
	}
	for _, arg := range args[2:] {
		name := string(arg)
		if t.named(name) == nil {
			continue
		}
		if !c.do(&engine.MetaSet{Key: userKey + name}) {
			return
		}
		deleted++
		t = t.with(name, nil)
		s.users.Store(t)
		s.log.Info("a user was deleted", "user", name, "by", c.user.Name)
		s.closeUser(name, c)
	}
	c.b.out.integer(int64(deleted))
}

// closeUser closes the connections of a user that is no more, but not the one
// that is about to hear of it.
func (s *Server) closeUser(name string, but *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.mu.Lock()
		same := c.login == name
		c.mu.Unlock()
		if same && c != but {
			c.condemn(closedKilled)
		}
	}
}

// ACL GENPASS [bits].
func cmdACLGenPass(c *conn, args [][]byte) {
	bits := int64(256)
	if len(args) > 2 {
		n, ok := parseInt(args[2])
		if !ok || n < 1 || n > 4096 {
			c.failNow("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
			return
		}
		bits = n
	}
	c.b.out.bulkString(randomHex(int(bits+3) / 4))
}

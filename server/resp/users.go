package resp

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	byName     map[string]*acl.User // those that hold
	configured map[string]*acl.User // of the configuration: they win
	logged     map[string]*acl.User // of ACL SETUSER, hidden ones too
}

// newUserTable keeps both maps.
func newUserTable(configured, logged map[string]*acl.User) *userTable {
	t := &userTable{byName: make(map[string]*acl.User), configured: configured, logged: logged}
	u := acl.Everybody()
	if len(configured) > 0 {
		u = acl.User{Name: defaultName}
	}
	t.byName[defaultName] = &u
	maps.Copy(t.byName, logged)
	maps.Copy(t.byName, configured)
	return t
}

func (t *userTable) named(name string) *acl.User { return t.byName[name] }

// with is the table with u among the log's, or without the one of that name when
// u is nil.
func (t *userTable) with(name string, u *acl.User) *userTable {
	logged := maps.Clone(t.logged)
	if logged == nil {
		logged = make(map[string]*acl.User)
	}
	if u == nil {
		delete(logged, name)
	} else {
		logged[name] = u
	}
	return newUserTable(t.configured, logged)
}

// configuredUsers are users by name, and the default one when it has a password.
func configuredUsers(users []acl.User, password string) map[string]*acl.User {
	m := make(map[string]*acl.User, len(users)+1)
	for _, u := range users {
		m[u.Name] = &u
	}
	if password != "" {
		u := acl.Everybody()
		u.NoPass, u.Passwords = false, []acl.Password{acl.NewPassword(password)}
		m[defaultName] = &u
	}
	return m
}

// SetUsers makes these the users of the configuration, in place of those before.
// It holds at once, also for who is connected: users that are no more are
// disconnected. users and password are as in Options.
func (s *Server) SetUsers(users []acl.User, password string) {
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	old := s.users.Load()
	next := newUserTable(configuredUsers(users, password), old.logged)
	s.users.Store(next)
	s.warnHidden(next)
	for name := range old.byName {
		if next.byName[name] == nil {
			s.closeUser(name, nil)
		}
	}
}

// warnHidden says which of the log's users the configuration hides.
func (s *Server) warnHidden(t *userTable) {
	for _, name := range slices.Sorted(maps.Keys(t.logged)) {
		if t.configured[name] != nil {
			s.log.Warn("a user of the log is hidden by one of the configuration", "user", name)
		}
	}
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
	logged := make(map[string]*acl.User, len(list.Pairs))
	for _, pair := range list.Pairs {
		name := strings.TrimPrefix(pair.Key, userKey)
		u, err := acl.Parse(name, strings.Split(string(pair.Value), "\n")...)
		if err != nil {
			return fmt.Errorf("user %q: %w", name, err)
		}
		logged[name] = &u
	}
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	t := newUserTable(s.users.Load().configured, logged)
	s.users.Store(t)
	s.warnHidden(t)
	return nil
}

// takeUsers makes a new connection the default user's, where that needs no
// password.
func (c *conn) takeUsers(t *userTable) {
	c.becomeDefault(t)
}

func (c *conn) becomeDefault(t *userTable) {
	c.users = t
	c.setToken("", "")
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
	if strings.HasPrefix(c.user.Name, tokenKey) {
		// One whose token was deleted is cut off, but what it had sent before may
		// still be in the input.
		c.closing = c.condemned.Load() != nil
		return !c.closing
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
	f := &c.srv.failures
	slot, ok := f.wait(c)
	if !ok {
		c.closing = true
		return false
	}
	u := c.srv.users.Load().named(string(name))
	right := false
	if u != nil {
		right = u.Check(password)
	} else {
		acl.Reject(password)
	}
	if right {
		f.right(c, slot)
		c.setToken("", "")
		c.become(u)
		return true
	}
	// Also when the name is a user's, who hides the token: the look into the log may
	// wait for the disk, and how long it takes must not tell names.
	byToken, err := c.logInByToken(name, password, u != nil)
	switch {
	case err != nil:
		c.failError(err)
		return false
	case byToken != nil:
		f.right(c, slot)
		c.become(byToken)
		return true
	}
	if c.engine() == nil {
		// The log may know the user.
		c.failNow("LOADING Pawl is replaying its log")
		return false
	}
	c.srv.stats.authFailures.Add(1)
	f.wrong(c, slot)
	c.srv.log.Warn("a client could not log in", "client", c.id, "addr", c.addr)
	c.failNow(errWrongPass)
	return false
}

// logInByToken gives the user that a token of the HTTP API stands for: AUTH
// namespace token, with POOL: before the token when the pool is not the default
// one. Its holder may do in the namespace what the HTTP API lets it do. Nil is
// that there is no such token, or that it is hidden.
func (c *conn) logInByToken(namespace, token []byte, hidden bool) (*acl.User, error) {
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
	// Said before it is looked up: who deletes the token after that sees it here.
	c.mu.Lock()
	before := c.token
	c.mu.Unlock()
	c.setToken(before, get.Key)
	err := c.wait(c.submit(&get))
	if err == nil {
		err = get.Err() // a look that was refused has not seen that there is none
	}
	if err != nil || get.Value == nil || hidden {
		c.setToken(before, "")
		return nil, err
	}
	c.setToken(get.Key, "")
	return &acl.User{
		Name: tokenKey + string(pool) + "/" + string(namespace), Enabled: true,
		Classes: acl.Produce | acl.Work | acl.Operate, Pool: string(pool),
		Patterns: []string{quoteGlob(string(namespace)) + "/*"},
	}, nil
}

// setToken says which token the connection is logged in with, and which one it
// tries, by their keys in the log.
func (c *conn) setToken(token, tried string) {
	c.mu.Lock()
	c.token, c.triedToken = token, tried
	c.mu.Unlock()
}

// TokenDeleted cuts off the connections that are logged in with a token of the
// HTTP API, once its deletion is durable: none of them does another command.
func (s *Server) TokenDeleted(pool, namespace, token string) {
	key := tokenKey + pool + "/" + namespace + "/" + token
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	s.closeWhere(func(c *conn) bool { return c.token == key || c.triedToken == key })
	// A new table, so that whoever is about to do a command looks up.
	t := *s.users.Load()
	s.users.Store(&t)
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
	rules := make([]string, 0, len(args)-3)
	for _, arg := range args[3:] {
		rules = append(rules, string(arg))
	}
	if c.changed(c.srv.setUser(string(args[2]), rules, c.user.Name, c.store)) {
		c.b.out.ok()
	}
}

// ACL DELUSER name….
func cmdACLDelUser(c *conn, args [][]byte) {
	t, deleted := c.srv.users.Load(), int64(0)
	for _, arg := range args[2:] {
		if !c.changed(t.mayDelete(string(arg))) {
			return
		}
	}
	for _, arg := range args[2:] {
		gone, err := c.srv.deleteUser(string(arg), c.user.Name, c, c.store)
		if !c.changed(err) {
			return
		}
		if gone {
			deleted++
		}
	}
	c.b.out.integer(deleted)
}

// errReplied stands for an error that the client has been told.
var errReplied = errors.New("already replied")

// store writes a user for this client.
func (c *conn) store(set *engine.MetaSet) error {
	if !c.do(set) {
		return errReplied
	}
	return nil
}

// changed replies to the error of a change of users, if there is one.
func (c *conn) changed(err error) bool {
	if err != nil && !errors.Is(err, errReplied) {
		c.failNow("ERR " + err.Error())
	}
	return err == nil
}

// closeUser closes the connections of a user that is no more, but not the one
// that is about to hear of it.
func (s *Server) closeUser(name string, but *conn) {
	s.closeWhere(func(c *conn) bool { return c.login == name && c != but })
}

// closeWhere closes the connections that are to be closed; which is called with
// their locks held.
func (s *Server) closeWhere(which func(*conn) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.mu.Lock()
		found := which(c)
		c.mu.Unlock()
		if found {
			c.condemn(closedKilled)
		}
	}
}

// ACL GENPASS [bits].
func cmdACLGenPass(c *conn, args [][]byte) {
	bits := int64(256)
	if len(args) > 2 {
		n, ok := parseInt(args[2])
		if !ok {
			c.failNow(errNumber)
			return
		}
		if n < 1 || n > 4096 {
			c.failNow("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096")
			return
		}
		bits = n
	}
	c.b.out.bulkString(randomHex(int(bits+3) / 4))
}

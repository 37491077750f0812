package resp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pawl/acl"
	"pawl/engine"
)

// What operators do with connections and users, for RESP commands and for the
// admin listener alike.

// ClientInfo is one connection, as CLIENT LIST shows it.
type ClientInfo struct {
	ID                    int64
	Addr, Local           string
	Name                  string // CLIENT SETNAME
	User                  string // empty before login
	Library, LibraryVer   string // CLIENT SETINFO
	Command               string // the last one; empty before the first
	Age, Idle             time.Duration
	Blocked, Monitor, TLS bool
	Queued                int   // commands of an open MULTI; -1 is none
	Bytes                 int64 // of buffers
	Protocol              int   // 2 or 3
}

// Clients are all connections by ID.
func (s *Server) Clients() []ClientInfo {
	list := s.clients()
	infos := make([]ClientInfo, len(list))
	for i, c := range list {
		infos[i] = c.info()
	}
	return infos
}

// info may be asked for by any goroutine.
func (c *conn) info() ClientInfo {
	i := ClientInfo{
		ID: c.id, Addr: c.addr, Local: c.local, Age: time.Since(c.created),
		Idle:    time.Duration(c.srv.clock.Load()-c.since.Load()) * time.Millisecond,
		Blocked: c.blocked.Load(), Monitor: c.isMonitor(), TLS: c.tls, Bytes: c.held.Load(),
	}
	if cmd := c.lastCmd.Load(); cmd != nil {
		i.Command = cmd.fullName()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i.Name, i.User, i.Library, i.LibraryVer, i.Queued, i.Protocol = c.name, c.login, c.libName, c.libVer, c.queued, c.proto
	return i
}

// describe is one line of CLIENT LIST.
func (c *conn) describe() string {
	i := c.info()
	flags := "N"
	switch {
	case i.Blocked:
		flags = "b"
	case i.Monitor:
		flags = "O"
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d idle=%d flags=%s db=0 sub=0 psub=0 ssub=0 multi=%d watch=0 tot-mem=%d cmd=%s user=%s resp=%d lib-name=%s lib-ver=%s",
		i.ID, i.Addr, i.Local, i.Name, int64(i.Age.Seconds()), i.Idle.Milliseconds()/1000, flags,
		i.Queued, i.Bytes, cmp.Or(i.Command, "NULL"), cmp.Or(i.User, "(none)"), i.Protocol, i.Library, i.LibraryVer)
}

// KillClient closes the connection with that ID, as CLIENT KILL ID does; false
// is that there is none.
func (s *Server) KillClient(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.id == id {
			c.condemn(closedKilled)
			return true
		}
	}
	return false
}

// UserInfo is a user and where it stands.
type UserInfo struct {
	acl.User
	Configured bool // in the configuration, which alone can change it
	Implied    bool // neither there nor in the log: the default user
	Connected  int  // connections that are logged in
}

// Users are those that hold, by name.
func (s *Server) Users() []UserInfo {
	connected := make(map[string]int)
	for _, c := range s.clients() {
		connected[c.info().User]++
	}
	t := s.users.Load()
	list := make([]UserInfo, 0, len(t.byName))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		list = append(list, UserInfo{
			User: *t.byName[name], Configured: t.configured[name] != nil,
			Implied: t.configured[name] == nil && t.logged[name] == nil, Connected: connected[name],
		})
	}
	return list
}

// Refusals of changes of users.
var (
	ErrUserConfigured = errors.New("this user is set in the configuration")
	ErrUserOfToken    = errors.New("user names that begin with " + tokenKey + " are those of tokens")
	//lint:ignore ST1005 Redis' words, which clients match
	ErrUserDefault = errors.New("The 'default' user cannot be removed")
	ErrLoading     = errors.New("the log is being replayed")
)

// UserError is what is wrong with a name or a rule.
type UserError struct {
	Rule bool // else the name
	Err  error
}

// Error implements error, with Redis' words.
func (e *UserError) Error() string {
	if e.Rule {
		return "Error in ACL SETUSER modifier: " + e.Err.Error()
	}
	return "Error in ACL SETUSER: " + e.Err.Error()
}

// Unwrap is the error of package acl.
func (e *UserError) Unwrap() error { return e.Err }

// CheckUser says what SetUser would make of a user, and changes nothing.
func (s *Server) CheckUser(name string, rules []string) (acl.User, error) {
	return s.users.Load().after(name, rules)
}

// after is the user of that name, or a new one, with rules applied.
func (t *userTable) after(name string, rules []string) (acl.User, error) {
	if t.configured[name] != nil {
		return acl.User{}, ErrUserConfigured
	}
	if strings.HasPrefix(name, tokenKey) {
		return acl.User{}, ErrUserOfToken
	}
	base := acl.User{}
	var err error
	if old := t.named(name); old != nil {
		base = *old
	} else if base, err = acl.Parse(name); err != nil {
		return acl.User{}, &UserError{Err: err}
	}
	u, err := base.Apply(rules...)
	if err != nil {
		return acl.User{}, &UserError{Rule: true, Err: err}
	}
	return u, nil
}

// SetUser makes a user or applies rules to one, as ACL SETUSER does, and returns
// when that is on disk. by is who did it, for the log.
func (s *Server) SetUser(name string, rules []string, by string) error {
	return s.setUser(name, rules, by, s.store)
}

func (s *Server) setUser(name string, rules []string, by string, store func(*engine.MetaSet) error) error {
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	t := s.users.Load()
	u, err := t.after(name, rules)
	if err != nil {
		return err
	}
	if err := store(&engine.MetaSet{Key: userKey + name, Value: []byte(strings.Join(u.Rules(), "\n"))}); err != nil {
		return err
	}
	s.users.Store(t.with(name, &u))
	s.log.Info("a user was set", "user", name, "by", by)
	return nil
}

// DeleteUser removes a user and closes its connections, as ACL DELUSER does;
// false is that there was none.
func (s *Server) DeleteUser(name, by string) (bool, error) {
	return s.deleteUser(name, by, nil, s.store)
}

// deleteUser leaves the connection but alone, which is about to hear of it.
func (s *Server) deleteUser(name, by string, but *conn, store func(*engine.MetaSet) error) (bool, error) {
	s.aclMu.Lock()
	defer s.aclMu.Unlock()
	t := s.users.Load()
	if err := t.mayDelete(name); err != nil || t.named(name) == nil {
		return false, err
	}
	if err := store(&engine.MetaSet{Key: userKey + name}); err != nil {
		return false, err
	}
	s.users.Store(t.with(name, nil))
	s.log.Info("a user was deleted", "user", name, "by", by)
	s.closeUser(name, but)
	return true, nil
}

func (t *userTable) mayDelete(name string) error {
	switch {
	case name == defaultName:
		return ErrUserDefault
	case t.configured[name] != nil:
		return ErrUserConfigured
	}
	return nil
}

// store writes without a connection.
func (s *Server) store(set *engine.MetaSet) error {
	e := s.engine.Load()
	if e == nil {
		return ErrLoading
	}
	if err := (*e).Wait((*e).Submit(set)); err != nil {
		return err
	}
	return set.Err()
}

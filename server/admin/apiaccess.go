package admin

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"pawl/acl"
	"pawl/server/lmstfy"
	"pawl/server/resp"
	"pawl/state"
)

type tokensReply struct {
	Total  int                `json:"total" doc:"tokens that match"`
	Tokens []lmstfy.TokenInfo `json:"tokens" doc:"by pool, namespace and token"`
	Pools  []string           `json:"pools" doc:"all pools"`
}

// listTokens pages through the tokens.
func (c *apiCall) listTokens() (any, error) {
	match, err := c.match()
	if err != nil {
		return nil, err
	}
	pool := c.query.Get("pool")
	tokens := c.s.options.Lmstfy.Tokens()
	list := slices.DeleteFunc(tokens.List(), func(t lmstfy.TokenInfo) bool {
		return pool != "" && t.Pool != pool || match != "" && !matches(match, t.Namespace) && !matches(match, t.Description)
	})
	return tokensReply{len(list), pageOf(c, list), tokens.Pools()}, nil
}

type tokenBody struct {
	Pool        string `json:"pool" doc:"empty is default"`
	Namespace   string `json:"namespace"`
	Token       string `json:"token" doc:"empty is a new one"`
	Description string `json:"description"`
	DryRun      bool   `json:"dry_run"`
}

type tokenReply struct {
	acted
	Token string `json:"token" doc:"what clients send; empty in a dry run"`
}

func (c *apiCall) createToken() (any, error) {
	var b tokenBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	words := []string{"pawl", "token", "create"}
	if b.Pool != "" && b.Pool != state.DefaultPool {
		words = append(words, "--pool", b.Pool)
	}
	reply := tokenReply{acted: acted{commandLine(append(words, b.Namespace, b.Description)...), b.DryRun, 1}}
	if b.DryRun {
		return reply, nil
	}
	text, err := c.s.options.Lmstfy.Tokens().Create(b.Pool, b.Namespace, b.Token, b.Description)
	if err != nil {
		return nil, err
	}
	reply.Token = text
	c.logged("create a token of namespace "+b.Namespace, 1)
	return reply, nil
}

type tokenRefBody struct {
	Namespace string `json:"namespace"`
	Token     string `json:"token" doc:"as clients send it, with its pool unless that is default"`
	DryRun    bool   `json:"dry_run"`
}

func (c *apiCall) deleteToken() (any, error) {
	var b tokenRefBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, "pawl token delete "+b.Namespace+" <token>", 1, func() (int64, error) {
		return 1, c.s.options.Lmstfy.Tokens().Delete(b.Namespace, b.Token)
	})
}

type limitBody struct {
	Namespace string       `json:"namespace"`
	Token     string       `json:"token" doc:"as clients send it"`
	Limit     lmstfy.Limit `json:"limit"`
	DryRun    bool         `json:"dry_run"`
}

// limitRequest is the request of lmstfy's admin API that does the same. The token
// is not shown in full.
func limitRequest(method, namespace, token string) string {
	return method + " /token/" + namespace + "/" + token[:min(6, len(token))] + "…/limit"
}

func (c *apiCall) setLimit() (any, error) {
	var b limitBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, limitRequest(http.MethodPut, b.Namespace, b.Token), 1, func() (int64, error) {
		return 1, c.s.options.Lmstfy.Tokens().SetLimit(b.Namespace, b.Token, b.Limit, false)
	})
}

func (c *apiCall) deleteLimit() (any, error) {
	var b tokenRefBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, limitRequest(http.MethodDelete, b.Namespace, b.Token), 1, func() (int64, error) {
		return 1, c.s.options.Lmstfy.Tokens().DeleteLimit(b.Namespace, b.Token)
	})
}

// RESP is what this package needs of *resp.Server.
type RESP interface {
	Numbers() resp.Numbers
	Clients() []resp.ClientInfo
	KillClient(id int64) bool
	Users() []resp.UserInfo
	CheckUser(name string, rules []string) (acl.User, error)
	SetUser(name string, rules []string, by string) error
	DeleteUser(name, by string) (bool, error)
}

// respEdge is the edge for Redis clients, if there is one.
func (c *apiCall) respEdge() (RESP, error) {
	if c.s.options.Resp == nil {
		return nil, &apiError{http.StatusNotFound, "no_resp", "this daemon serves no Redis clients"}
	}
	return c.s.options.Resp, nil
}

// userJSON is a user of the RESP port. Passwords are only counted.
type userJSON struct {
	Name       string   `json:"name"`
	Enabled    bool     `json:"enabled"`
	Passwords  int      `json:"passwords"`
	NoPass     bool     `json:"nopass" doc:"any password is right"`
	Classes    []string `json:"classes" doc:"produce, work, operate, admin"`
	Queues     []string `json:"queues" doc:"globs over namespace/queue"`
	Pool       string   `json:"pool"`
	Configured bool     `json:"configured" doc:"in the configuration, which alone can change it"`
	Implied    bool     `json:"implied" doc:"nobody has set it: the default user"`
	Connected  int      `json:"connected" doc:"connections"`
}

func userOf(u *acl.User) userJSON {
	j := userJSON{
		Name: shown(u.Name), Enabled: u.Enabled, Passwords: len(u.Passwords), NoPass: u.NoPass,
		Classes: []string{}, Queues: []string{}, Pool: shown(cmp.Or(u.Pool, state.DefaultPool)),
	}
	for _, name := range acl.ClassNames() {
		if class, _ := acl.ParseClass(name); u.May(class) {
			j.Classes = append(j.Classes, name)
		}
	}
	for _, p := range u.Patterns {
		j.Queues = append(j.Queues, shown(p))
	}
	return j
}

type usersReply struct {
	Total int        `json:"total" doc:"users that match"`
	Users []userJSON `json:"users"`
}

// listUsers pages through the users that hold.
func (c *apiCall) listUsers() (any, error) {
	reply := usersReply{Users: []userJSON{}}
	match, err := c.match()
	if err != nil {
		return nil, err
	}
	edge, err := c.respEdge()
	if err != nil {
		return reply, nil
	}
	users := edge.Users()
	from, count := c.page(len(users))
	for i := range users {
		u := &users[i]
		if match != "" && !matches(match, u.Name) {
			continue
		}
		if reply.Total++; reply.Total <= from || len(reply.Users) == count {
			continue
		}
		j := userOf(&u.User)
		j.Configured, j.Implied, j.Connected = u.Configured, u.Implied, u.Connected
		reply.Users = append(reply.Users, j)
	}
	return reply, nil
}

type userBody struct {
	Name     string   `json:"name"`
	Rules    []string `json:"rules" doc:"as ACL SETUSER takes them"`
	Generate bool     `json:"generate" doc:"give the user a new random password in place of those it has"`
	DryRun   bool     `json:"dry_run"`
}

type userReply struct {
	acted
	Password string   `json:"password" doc:"the one that was generated; it is shown this once"`
	User     userJSON `json:"user" doc:"as it is then"`
}

// setUser makes a user, changes one, or gives one another password.
func (c *apiCall) setUser() (any, error) {
	edge, err := c.respEdge()
	if err != nil {
		return nil, err
	}
	var b userBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	rules, words, password := b.Rules, []string{"ACL", "SETUSER", b.Name}, ""
	for _, rule := range rules {
		if strings.HasPrefix(rule, ">") {
			rule = ">…"
		}
		words = append(words, rule)
	}
	if b.Generate {
		password = rand.Text()
		rules = append(slices.Clone(rules), "resetpass", ">"+password)
		words = append(words, "resetpass", ">…")
	}
	u, err := edge.CheckUser(b.Name, rules)
	if err != nil {
		return nil, userRefusal(err)
	}
	reply := userReply{acted: acted{strings.Join(words, " "), b.DryRun, 1}, User: userOf(&u)}
	if b.DryRun {
		return reply, nil
	}
	if err := edge.SetUser(b.Name, rules, c.operator()); err != nil {
		return nil, userRefusal(err)
	}
	reply.Password = password
	c.logged(reply.Command, 1)
	return reply, nil
}

type userNameBody struct {
	Name   string `json:"name"`
	DryRun bool   `json:"dry_run"`
}

func (c *apiCall) deleteUser() (any, error) {
	edge, err := c.respEdge()
	if err != nil {
		return nil, err
	}
	var b userNameBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, commandLine("ACL", "DELUSER", b.Name), 1, func() (int64, error) {
		gone, err := edge.DeleteUser(b.Name, c.operator())
		if err != nil {
			return 0, userRefusal(err)
		}
		if !gone {
			return 0, notFound("there is no user %.64q", b.Name)
		}
		return 1, nil
	})
}

// userRefusal is an error of the RESP edge about a user; others are the engine's.
func userRefusal(err error) error {
	switch wrong, ok := errors.AsType[*resp.UserError](err); {
	case ok:
		return invalid("%s", wrong.Err.Error())
	case errors.Is(err, resp.ErrUserConfigured), errors.Is(err, resp.ErrUserDefault):
		return &apiError{http.StatusConflict, "fixed", err.Error()}
	case errors.Is(err, resp.ErrUserOfToken):
		return invalid("%s", err.Error())
	}
	return err
}

// clientJSON is one connection of the RESP port.
type clientJSON struct {
	ID       int64  `json:"id"`
	Addr     string `json:"addr"`
	Name     string `json:"name" doc:"that it gave itself"`
	User     string `json:"user" doc:"empty before login"`
	Library  string `json:"library"`
	Command  string `json:"command" doc:"the last one"`
	AgeMs    int64  `json:"age_ms"`
	IdleMs   int64  `json:"idle_ms"`
	Waiting  bool   `json:"waiting" doc:"for a job"`
	Monitor  bool   `json:"monitor"`
	TLS      bool   `json:"tls"`
	Bytes    int64  `json:"bytes" doc:"of buffers"`
	Protocol int    `json:"protocol" doc:"2 or 3"`
}

type clientsReply struct {
	Total   int          `json:"total" doc:"connections that match"`
	Clients []clientJSON `json:"clients" doc:"oldest first"`
}

// listClients pages through the connections.
func (c *apiCall) listClients() (any, error) {
	reply := clientsReply{Clients: []clientJSON{}}
	edge, err := c.respEdge()
	if err != nil {
		return reply, nil
	}
	match := strings.ToLower(c.query.Get("match"))
	clients := edge.Clients()
	from, count := c.page(len(clients))
	for _, i := range clients {
		library := strings.TrimSpace(i.Library + " " + i.LibraryVer)
		if match != "" && !strings.Contains(strings.ToLower(i.Addr+"\n"+i.Name+"\n"+i.User+"\n"+i.Command+"\n"+library), match) {
			continue
		}
		reply.Total++
		if reply.Total <= from || len(reply.Clients) == count {
			continue
		}
		reply.Clients = append(reply.Clients, clientJSON{
			ID: i.ID, Addr: i.Addr, Name: i.Name, User: shown(i.User), Library: library, Command: i.Command,
			AgeMs: i.Age.Milliseconds(), IdleMs: i.Idle.Milliseconds(), Waiting: i.Blocked, Monitor: i.Monitor,
			TLS: i.TLS, Bytes: i.Bytes, Protocol: i.Protocol,
		})
	}
	return reply, nil
}

type killBody struct {
	ID     int64 `json:"id"`
	DryRun bool  `json:"dry_run"`
}

func (c *apiCall) killClient() (any, error) {
	edge, err := c.respEdge()
	if err != nil {
		return nil, err
	}
	var b killBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, commandLine("CLIENT", "KILL", "ID", strconv.FormatInt(b.ID, 10)), 1, func() (int64, error) {
		if !edge.KillClient(b.ID) {
			return 0, notFound("there is no connection %d", b.ID)
		}
		return 1, nil
	})
}

package admin

import (
	"strings"

	"pawl/engine"
	"pawl/server/lmstfy"
)

type tokensReply struct {
	Tokens []lmstfy.TokenInfo `json:"tokens"`
	Pools  []string           `json:"pools"`
}

func (c *apiCall) listTokens() (any, error) {
	tokens := c.s.options.Lmstfy.Tokens()
	return tokensReply{tokens.List(), tokens.Pools()}, nil
}

type tokenBody struct {
	Pool        string `json:"pool" doc:"empty is default"`
	Namespace   string `json:"namespace"`
	Token       string `json:"token" doc:"empty is a new one"`
	Description string `json:"description"`
}

type tokenReply struct {
	Token string `json:"token" doc:"what clients send"`
}

func (c *apiCall) createToken() (any, error) {
	var b tokenBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	text, err := c.s.options.Lmstfy.Tokens().Create(b.Pool, b.Namespace, b.Token, b.Description)
	if err != nil {
		return nil, err
	}
	c.logged("create a token of namespace "+b.Namespace, 1)
	return tokenReply{text}, nil
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
}

func (c *apiCall) setLimit() (any, error) {
	var b limitBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	if err := c.s.options.Lmstfy.Tokens().SetLimit(b.Namespace, b.Token, b.Limit, false); err != nil {
		return nil, err
	}
	c.logged("limit a token of namespace "+b.Namespace, 1)
	return acted{Affected: 1}, nil
}

func (c *apiCall) deleteLimit() (any, error) {
	var b tokenRefBody
	if err := c.read(&b); err != nil {
		return nil, err
	}
	return c.act(b.DryRun, "", 1, func() (int64, error) {
		return 1, c.s.options.Lmstfy.Tokens().DeleteLimit(b.Namespace, b.Token)
	})
}

type usersReply struct {
	Users []string `json:"users" doc:"names; rights and passwords are for ACL on the RESP port"`
}

// listUsers are the users that ACL SETUSER has made.
func (c *apiCall) listUsers() (any, error) {
	list := &engine.MetaList{Prefix: "user/"}
	if err := c.do(list); err != nil {
		return nil, err
	}
	reply := usersReply{Users: []string{}}
	for _, p := range list.Pairs {
		reply.Users = append(reply.Users, shown(strings.TrimPrefix(p.Key, "user/")))
	}
	return reply, nil
}

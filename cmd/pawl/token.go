package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

func tokenCommand() subcommand {
	return subcommand{
		name: "token", words: []string{"list", "create", "delete"}, args: "list NAMESPACE | create NAMESPACE [DESCRIPTION] | delete NAMESPACE TOKEN",
		summary: "tokens of the HTTP API, over the admin address", group: groupQueues,
		flags: func(e *env) (*pflag.FlagSet, runFunc) {
			fs := newFlagSet("token")
			t := &tokenTool{e: e, fs: fs}
			fs.StringVar(&t.base, "admin", "http://127.0.0.1:7778", "URL of the admin address (PAWL_ADMIN)")
			fs.StringVar(&t.user, "user", "", "log in as (PAWL_ADMIN_USER); the password is taken from PAWL_ADMIN_PASSWORD")
			fs.StringVar(&t.pool, "pool", "", "pool, the default one when left out")
			fs.BoolVar(&t.asJSON, "json", false, jsonUsage)
			return fs, t.run
		},
	}
}

// tokenTool is pawl token.
type tokenTool struct {
	e                *env
	fs               *pflag.FlagSet
	base, user, pool string
	asJSON           bool
}

func (t *tokenTool) run(ctx context.Context, args []string) error {
	if err := wantArgs(args, 2, 3); err != nil {
		return err
	}
	for flag, variable := range map[string]string{"admin": "PAWL_ADMIN", "user": "PAWL_ADMIN_USER"} {
		if text, ok := t.e.lookup(variable); ok && !t.fs.Changed(flag) {
			t.fs.Set(flag, text)
		}
	}
	namespace := url.PathEscape(args[1])
	query := url.Values{}
	if t.pool != "" {
		query.Set("pool", t.pool)
	}
	switch {
	case args[0] == "create":
		description := "made by pawl token"
		if len(args) == 3 {
			description = args[2]
		}
		query.Set("description", description)
		var made struct {
			Token string `json:"token"`
		}
		if err := t.call(ctx, http.MethodPost, "/token/"+namespace, query, &made); err != nil {
			return err
		}
		if t.asJSON {
			return printJSON(t.e.stdout, made)
		}
		fmt.Fprintln(t.e.stdout, made.Token)
		return nil
	case args[0] == "list" && len(args) == 2:
		var found struct {
			Tokens map[string]string `json:"tokens"`
		}
		if err := t.call(ctx, http.MethodGet, "/token/"+namespace, query, &found); err != nil {
			return err
		}
		if t.asJSON {
			return printJSON(t.e.stdout, found.Tokens)
		}
		table := newTable(t.e.stdout, "token", "description")
		for _, token := range slices.Sorted(maps.Keys(found.Tokens)) {
			row(table, token, printable(found.Tokens[token], 60))
		}
		return table.Flush()
	case args[0] == "delete" && len(args) == 3:
		token := args[2]
		if t.pool != "" && !strings.Contains(token, ":") {
			token = t.pool + ":" + token // this route takes the pool from the token only
		}
		return t.call(ctx, http.MethodDelete, "/token/"+namespace+"/"+url.PathEscape(token), query, nil)
	}
	return usagef("want token list NAMESPACE, create NAMESPACE [DESCRIPTION], or delete NAMESPACE TOKEN")
}

// call does one request; answer may be nil.
func (t *tokenTool) call(ctx context.Context, method, path string, query url.Values, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(t.base, "/")+path+"?"+query.Encode(), nil)
	if err != nil {
		return usageError{err}
	}
	if t.user != "" {
		password, _ := t.e.lookup("PAWL_ADMIN_PASSWORD")
		request.SetBasicAuth(t.user, password)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return withExit(exitNoServer, fmt.Errorf("%w; is the daemon running (pawl serve), is --admin right?", err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	if err != nil {
		return withExit(exitNoServer, err)
	}
	switch {
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return withExit(exitDenied, fmt.Errorf("%s: %s", response.Status, printable(string(body), 200)))
	case response.StatusCode >= 300:
		return fmt.Errorf("%s: %s", response.Status, printable(strings.TrimSpace(string(body)), 200))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(body, answer)
}

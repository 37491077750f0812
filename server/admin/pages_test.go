package admin_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pawl/acl"
	"pawl/server/admin"
	"pawl/server/resp"
	"pawl/state"
)

// TestListsHavePages: what grows with the number of tenants comes in pages, as queues
// do. Without parameters it is the first one.
func TestListsHavePages(t *testing.T) {
	const things = 230
	var users []acl.User
	for i := range things - 1 { // the default user is another one
		u, err := acl.Parse(fmt.Sprintf("x%03d", i), "on", ">p", "+@work", "~*")
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, u)
	}
	o := newOfficeWith(t, resp.New(resp.Options{Users: users}))
	crons := &published{}
	for i := range things {
		name := fmt.Sprintf("x%03d", i)
		if _, err := o.public.Tokens().Create("default", name, "a-token-of-20-characters", "of a tenant"); err != nil {
			t.Fatal(err)
		}
		crons.census.Crons = append(crons.census.Crons, state.Cron{Namespace: "default/default", Name: name, Spec: "0 * * * *", Queue: "default/default/" + name})
	}
	calendar := &office{pair: newServer(t, admin.Options{})}
	calendar.SetEngine(crons)
	for _, list := range []struct {
		o         *office
		path, key string
		some      string // a match, for those with a 7 in their names
	}{{o, "tokens", "namespace", "x*7*"}, {o, "users", "name", "x*7*"}, {calendar, "crons", "name", "X*7*"}} {
		list.o.t = t
		page := func(query string, wantTotal, wantLen int) (names []string) {
			t.Helper()
			reply := list.o.get(list.path+"?"+query, "")
			all, ok := reply[list.path].([]any)
			if !ok || len(all) != wantLen || reply["total"] != float64(wantTotal) {
				t.Fatalf("%s?%s: got %d of %v, want %d of %d", list.path, query, len(all), reply["total"], wantLen, wantTotal)
			}
			for _, v := range all {
				names = append(names, v.(map[string]any)[list.key].(string))
			}
			return names
		}
		all := page("", things, 100)
		all = append(all, page("from=100", things, 100)...)
		all = append(all, page("from=200&count=1000", things, 30)...)
		seen := map[string]bool{}
		for i, name := range all {
			if seen[name] = true; i > 0 && name <= all[i-1] && strings.HasPrefix(name, "x") {
				t.Errorf("%s: %s stands behind %s", list.path, name, all[i-1])
			}
		}
		if len(seen) != things {
			t.Errorf("%s: all pages have %d, want %d", list.path, len(seen), things)
		}
		page("from=230", things, 0)
		page("from=-5&count=-3", things, 1)
		if sevens := page("count=7&from=2&match="+url.QueryEscape(strings.ToLower(list.some)), 41, 7); sevens[0] != "x027" {
			t.Errorf("%s: the third with a 7 is %s", list.path, sevens[0])
		}
		list.o.refuse("GET", list.path+"?match="+strings.Repeat("x", 1025), "", "", 400, "invalid")
	}
	if got := o.get("tokens?pool=default", "")["total"]; got != float64(things) {
		t.Errorf("of the pool there are %v tokens", got)
	}
	if got := o.get("tokens?pool=other", "")["total"]; got != float64(0) {
		t.Errorf("of another pool there are %v tokens", got)
	}
	if got := calendar.get("crons?pool=other", "")["total"]; got != float64(0) {
		t.Errorf("of another pool there are %v crons", got)
	}
}

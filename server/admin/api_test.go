package admin_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/acl"
	"pawl/engine"
	"pawl/server/admin"
	"pawl/server/lmstfy"
	"pawl/server/resp"
	"pawl/server/servertest"
	"pawl/state"
)

// office is the admin server on a real engine.
type office struct {
	*pair
	engine *engine.Engine
	resp   *resp.Server
	addr   string // of resp
}

func newOffice(t *testing.T) *office {
	t.Helper()
	worker, err := acl.Parse("boss", "on", ">b", "+@all", "~*")
	if err != nil {
		t.Fatal(err)
	}
	return newOfficeWith(t, resp.New(resp.Options{Users: []acl.User{worker}}))
}

// newOfficeWith is newOffice with another RESP edge.
func newOfficeWith(t *testing.T, edge *resp.Server) *office {
	t.Helper()
	s := newServer(t, admin.Options{Resp: edge})
	e := servertest.Open(t, t.TempDir(), engine.Options{})
	s.SetEngine(e)
	if err := edge.SetEngine(e); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- edge.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		if err := edge.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return &office{s, e, edge, l.Addr().String()}
}

// object is a decoded reply.
type object map[string]any

func (o *office) call(method, path, queue, body string) (int, object) {
	o.t.Helper()
	if queue != "" {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		path += sep + "queue=" + url.QueryEscape(queue)
	}
	w := ask(o, method, "/api/v1/"+path, func(r *http.Request) {
		if method == "POST" {
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			r.Body = io.NopCloser(strings.NewReader(body))
		}
	})
	var v object
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		o.t.Fatalf("%s %s: %v in %q", method, path, err, w.Body)
	}
	return w.Code, v
}

func (o *office) get(path, queue string) object {
	o.t.Helper()
	code, v := o.call("GET", path, queue, "")
	if code != 200 {
		o.t.Fatalf("GET %s: got %d %v", path, code, v)
	}
	return v
}

func (o *office) post(path, queue, body string) object {
	o.t.Helper()
	code, v := o.call("POST", path, queue, body)
	if code != 200 {
		o.t.Fatalf("POST %s %s: got %d %v", path, body, code, v)
	}
	return v
}

// act does a dry run and then the action, and compares command and count of
// both. The body is an object without dry_run.
func (o *office) act(path, queue, body, command string, affected int) {
	o.t.Helper()
	before := o.engine.Numbers().AppliedLSN
	dry := o.post(path, queue, strings.Replace(strings.Replace(body, "{", `{"dry_run":true,`, 1), ",}", "}", 1))
	if got := fmt.Sprint(dry["command"], dry["affected"], dry["dry_run"]); got != fmt.Sprint(command, affected, true) {
		o.t.Errorf("%s, dry run: got %s, want %s %d", path, got, command, affected)
	}
	if after := o.engine.Numbers().AppliedLSN; after != before {
		o.t.Errorf("%s: the dry run changed something", path)
	}
	done := o.post(path, queue, body)
	if got := fmt.Sprint(done["command"], done["affected"], done["dry_run"]); got != fmt.Sprint(command, affected, false) {
		o.t.Errorf("%s: got %s, want %s %d", path, got, command, affected)
	}
}

func (o *office) refuse(method, path, queue, body string, status int, code string) {
	o.t.Helper()
	got, v := o.call(method, path, queue, body)
	e, _ := v["error"].(map[string]any)
	if got != status || e["code"] != code || e["message"] == "" {
		o.t.Errorf("%s %s %s: got %d %v, want %d %s", method, path, body, got, v, status, code)
	}
}

const mailKey = "default/default/mail"

// fill makes 41 ready jobs, one leased, one delayed and five dead ones in mail.
func (o *office) fill() {
	o.t.Helper()
	fillEngine(o.t, o.engine)
}

func (o *office) ids(queue, place string) []string {
	o.t.Helper()
	ids := []string{}
	for _, j := range o.get("jobs?count=100&state="+place, queue)["jobs"].([]any) {
		ids = append(ids, j.(map[string]any)["id"].(string))
	}
	return ids
}

func quoted(ids []string) string {
	text, _ := json.Marshal(ids)
	return string(text)
}

func TestQueueRoutes(t *testing.T) {
	o := newOffice(t)
	o.fill()
	q := o.get("queue", mailKey)
	if q["ready"] != 40. || q["leased"] != 1. || q["delayed"] != 1. || q["dead"] != 5. || q["display"] != "mail" || q["ref"] != "default%2Fdefault%2Fmail" {
		t.Errorf("got %v", q)
	}
	o.act("queue/pause", mailKey, `{"for_ms":60000}`, "QUEUE PAUSE mail FOR 60000", 1)
	if q := o.get("queue", mailKey); q["paused"] != true || q["paused_until"] == 0. {
		t.Errorf("paused: got %v until %v", q["paused"], q["paused_until"])
	}
	o.act("queue/resume", mailKey, `{}`, "QUEUE RESUME mail", 1)
	o.act("queue/settings", mailKey,
		`{"tries":3,"ttl_ms":1000,"backoff_ms":10,"backoff_max_ms":20,"max_len":100,"max_bytes":9999,"max_leased":5,"rate_count":7,"rate_per_ms":500,"dead_max":50,"dead_for_ms":60000}`,
		"QUEUE SET mail TRIES 3 TTL 1000 BACKOFF 10 MAX 20 MAXLEN 100 MAXBYTES 9999 MAXLEASED 5 RATE 7/500 DEADMAX 50 DEADFOR 60000", 1)
	set := fmt.Sprint(o.get("queue", mailKey)["settings"])
	if want := "map[backoff_max_ms:20 backoff_ms:10 dead_for_ms:60000 dead_max:50 max_bytes:9999 max_leased:5 max_len:100 rate_count:7 rate_per_ms:500 tries:3 ttl_ms:1000]"; set != want {
		t.Errorf("settings: got  %s\nwant %s", set, want)
	}
	o.act("queue/settings", mailKey, `{"max_len":0}`, "QUEUE SET mail MAXLEN 0", 1)
	if s := o.get("queue", mailKey)["settings"].(map[string]any); s["max_len"] != 0. || s["tries"] != 3. {
		t.Errorf("one setting changed: got %v", s)
	}
	o.act("queue/reset", mailKey, `{}`, "QUEUE RESET mail", 1)
	o.act("queue/redrive", mailKey, `{"count":2,"to":"default/shop/again","tries":9,"ttl_ms":60000}`, "QUEUE REDRIVE mail COUNT 2 TO shop/again TRIES 9 TTL 60000", 2)
	if ids := o.ids("default/shop/again", "ready"); len(ids) != 2 {
		t.Errorf("redriven to another queue: %d jobs, want 2", len(ids))
	}
	o.act("queue/purge", mailKey, `{"states":["dead","delayed"]}`, "QUEUE PURGE mail STATE dead delayed", 4)
	o.act("queue/purge", mailKey, `{}`, "QUEUE PURGE mail", 40)
	o.refuse("POST", "queue/delete", mailKey, `{}`, 409, "leased")
	o.act("jobs/delete", "", `{"ids":`+quoted(o.ids(mailKey, "leased"))+`}`, "JOB DELETE "+o.ids(mailKey, "leased")[0], 1)
	o.act("queue/delete", mailKey, `{}`, "QUEUE DELETE mail", 1)
	o.refuse("GET", "queue", mailKey, "", 404, "not_found")
}

func TestQueueList(t *testing.T) {
	o := newOffice(t)
	o.fill()
	if err := o.engine.Do(&engine.Enqueue{Queue: []byte("other/ns/\xff<q>"), Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	names := func(query string) []string {
		t.Helper()
		var names []string
		for _, q := range o.get("queues?"+query, "")["queues"].([]any) {
			names = append(names, q.(map[string]any)["display"].(string))
		}
		return names
	}
	// The census is a copy of at most a second ago.
	for deadline := time.Now().Add(30 * time.Second); len(names("")) != 14; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %q, want 14 queues", names(""))
		}
	}
	if got := names("sort=ready&count=1"); !slices.Equal(got, []string{"mail"}) {
		t.Errorf("the fullest: got %q", got)
	}
	if got := names("match=orders-1"); len(got) != 3 {
		t.Errorf("part of the name: got %q, want orders-1, -10 and -11", got)
	}
	if got := names("match=shop/*-1"); !slices.Equal(got, []string{"shop/orders-1"}) {
		t.Errorf("glob: got %q", got)
	}
	if got := names("pool=other"); !slices.Equal(got, []string{`"ns/\xff<q>"`}) {
		t.Errorf("pool: got %q", got)
	}
	if got := len(names("from=12&count=50")); got != 2 {
		t.Errorf("the last page: got %d queues, want 2", got)
	}
	if q := o.get("queue", "other/ns/\xff<q>"); q["ready"] != 1. {
		t.Errorf("a name that is no UTF-8: got %v", q)
	}
	o.refuse("GET", "queues?sort=x", "", "", 400, "invalid")
}

func TestJobRoutes(t *testing.T) {
	o := newOffice(t)
	o.fill()
	ready := o.ids(mailKey, "ready")
	if len(ready) != 40 {
		t.Fatalf("%d ready jobs, want 40", len(ready))
	}
	page := o.get("jobs?count=30", mailKey)
	rest := o.get("jobs?count=30&after="+page["next"].(string), mailKey)
	if a, b := len(page["jobs"].([]any)), len(rest["jobs"].([]any)); a != 30 || b != 10 || rest["next"] != "" {
		t.Errorf("pages of %d and %d jobs, then %q", a, b, rest["next"])
	}
	one := ready[0]
	o.act("jobs/delay", "", `{"ids":["`+one+`"],"delay_ms":60000}`, "JOB DELAY "+one+" 60000", 1)
	if j := o.get("job?id="+one, ""); j["state"] != "delayed" || j["due_at"] == 0. {
		t.Errorf("delayed: got %v", j)
	}
	o.act("jobs/run", "", `{"ids":["`+one+`"]}`, "JOB RUN "+one, 1)
	o.act("jobs/priority", "", `{"ids":["`+one+`"],"priority":-5}`, "JOB PRIORITY "+one+" -5", 1)
	o.act("jobs/payload", "", `{"id":"`+one+`","text":"say \"hi\"\n"}`, `JOB PAYLOAD `+one+` "say \"hi\"\x0a"`, 1)
	o.act("jobs/move", "", `{"ids":["`+one+`"],"to":"default/shop/b c"}`, "JOB MOVE "+one+` "shop/b c"`, 1)
	j := o.get("job?id="+one, "")
	payload, _ := base64.StdEncoding.DecodeString(j["payload"].(string))
	if j["queue"] != "shop/b c" || j["priority"] != -5. || string(payload) != "say \"hi\"\n" || j["state"] != "ready" {
		t.Errorf("after the edits: got %v", j)
	}
	// A leased job is left alone, the others of the request are not.
	leased := o.ids(mailKey, "leased")[0]
	both := o.post("jobs/run", "", `{"ids":["`+leased+`","`+o.ids(mailKey, "delayed")[0]+`"]}`)
	refused := both["refused"].([]any)
	if both["affected"] != 1. || len(refused) != 1 || refused[0].(map[string]any)["code"] != "leased" {
		t.Errorf("a leased job among others: got %v", both)
	}
	if j := o.get("job?id="+leased, ""); len(j["lease"].(string)) != state.LeaseIDLen || j["deadline"] == 0. {
		t.Errorf("the leased job: got %v", j)
	}
	o.refuse("GET", "job?id="+one[:25]+"Z", "", "", 404, "not_found")
	o.refuse("GET", "job?id=x", "", "", 400, "invalid")
	o.refuse("POST", "jobs/run", "", `{"ids":[]}`, 400, "invalid")
	o.refuse("POST", "jobs/run", "", `{"ids":["`+one+`"],"typo":1}`, 400, "invalid")
	o.refuse("POST", "jobs/run", "", `{"ids":["`+one+`"]} {}`, 400, "invalid")
	o.refuse("POST", "jobs/move", "", `{"ids":["`+one+`"],"to":"mail"}`, 400, "invalid")
	o.refuse("GET", "jobs?state=gone", mailKey, "", 400, "invalid")
	o.refuse("GET", "jobs?after=*", mailKey, "", 400, "invalid")
}

func TestEnqueueRoute(t *testing.T) {
	o := newOffice(t)
	body := `{"text":"x","delay_ms":5000,"ttl_ms":60000,"priority":3,"tries":2,"unique":"k","for_ms":1000,"group":"g","attrs":[{"name":"a","value":"b c"}]}`
	o.act("jobs", mailKey, body, `ENQUEUE mail x DELAY 5000 TTL 60000 PRIORITY 3 TRIES 2 UNIQUE k FOR 1000 GROUP g ATTR a "b c"`, 1)
	first := o.ids(mailKey, "delayed")[0]
	again := o.post("jobs", mailKey, body)
	if again["duplicate"] != true || again["id"] != first {
		t.Errorf("again: got %v, want the first job", again)
	}
	j := o.get("job?id="+first, "")
	if j["priority"] != 3. || j["tries"] != 2. || j["unique"] == "" || j["group"] != "g" || fmt.Sprint(j["attrs"]) != "[map[name:a value:b c]]" {
		t.Errorf("got %v", j)
	}
	o.refuse("POST", "jobs", mailKey, `{"text":"x","delay_ms":5,"ttl_ms":5}`, 400, "ttl")
	o.refuse("POST", "jobs", mailKey, `{"text":"x","delay_ms":5,"at":5}`, 400, "invalid")
	o.refuse("POST", "jobs", "mail", `{"text":"x"}`, 400, "invalid")
	o.refuse("POST", "jobs", "default//mail", `{"text":"x"}`, 400, "invalid")
	o.refuse("POST", "jobs", mailKey, `{"payload":"`+base64.StdEncoding.EncodeToString(make([]byte, 1<<20+1))+`"}`, 413, "too_large")
}

func TestDeadRoutes(t *testing.T) {
	o := newOffice(t)
	o.fill()
	reasons := o.get("dead", mailKey)
	counts := map[string]any{}
	for _, r := range reasons["reasons"].([]any) {
		r := r.(map[string]any)
		counts[r["reason"].(string)] = r["count"]
	}
	if reasons["complete"] != true || counts["connection refused"] != 3. || counts["no such address"] != 2. {
		t.Errorf("got %v", reasons)
	}
	o.act("jobs/bulk", mailKey, `{"state":"dead","reason":"no such address","action":"delete"}`, `JOB DELETE "<each ID>"`, 2)
	o.act("jobs/bulk", mailKey, `{"state":"dead","action":"move","to":"default/default/graves"}`, `JOB MOVE "<each ID>" graves`, 3)
	o.act("jobs/bulk", "default/default/graves", `{"state":"dead","reason":"connection refused","action":"run"}`, `JOB RUN "<each ID>"`, 3)
	o.act("jobs/bulk", mailKey, `{"state":"ready","action":"delay","delay_ms":60000}`, `JOB DELAY "<each ID>" 60000`, 40)
	o.act("jobs/bulk", mailKey, `{"state":"delayed","action":"priority","priority":1}`, `JOB PRIORITY "<each ID>" 1`, 41)
	o.refuse("POST", "jobs/bulk", mailKey, `{"state":"ready","action":"explode"}`, 400, "invalid")
	o.refuse("POST", "jobs/bulk", mailKey, `{"state":"everywhere","action":"run"}`, 400, "invalid")
}

func TestCronRoutes(t *testing.T) {
	o := newOffice(t)
	o.act("crons", "default/shop/orders", `{"name":"nightly","spec":"0 3 * * *","zone":"Europe/Berlin","text":"go","catchup":"all"}`,
		`CRON SET shop/nightly "0 3 * * *" shop/orders go TZ Europe/Berlin CATCHUP all`, 1)
	o.act("crons", "default/shop/orders", `{"name":"nightly","spec":"0 3 * * *","text":"go","delay_ms":10,"ttl_ms":0,"priority":-3,"tries":5,"backoff_ms":100,"backoff_max_ms":1000,"unique":"u","for_ms":2000,"group":"g","attrs":[{"name":"a","value":"b"}],"zone":"Europe/Berlin","catchup":"all"}`,
		`CRON SET shop/nightly "0 3 * * *" shop/orders go TZ Europe/Berlin CATCHUP all DELAY 10 TTL 0 PRIORITY -3 TRIES 5 BACKOFF 100 MAX 1000 UNIQUE u FOR 2000 GROUP g ATTR a b`, 1)
	o.refuse("POST", "crons", mailKey, `{"name":"x","spec":"0 3 * * *","backoff_max_ms":5}`, 400, "invalid")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) { // the census is a copy
		list := o.get("crons", "")["crons"].([]any)
		options := ""
		if len(list) == 1 {
			options = fmt.Sprint(list[0].(map[string]any)["options"])
		}
		if options == "map[attrs:[map[name:a value:b]] backoff_max_ms:1000 backoff_ms:100 delay_ms:10 for_ms:2000 group:g priority:-3 tries:5 ttl_ms:0 unique:u]" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got options %s", options)
		}
	}
	crons := &engine.CronList{Namespace: "default/"}
	if err := o.engine.Do(crons); err != nil || len(crons.Crons) != 1 || crons.Crons[0].Catchup != state.CatchupAll || crons.Crons[0].Next == 0 {
		t.Errorf("got %+v (%v)", crons.Crons, err)
	}
	o.refuse("POST", "crons", mailKey, `{"name":"x","spec":"every day"}`, 400, "invalid")
	o.refuse("POST", "crons", mailKey, `{"name":"","spec":"0 3 * * *"}`, 400, "invalid")
	o.refuse("POST", "crons", mailKey, `{"name":"x","spec":"0 3 * * *","catchup":"most"}`, 400, "invalid")
	o.act("crons/delete", "", `{"pool":"default","namespace":"shop","name":"nightly"}`, "CRON DELETE shop/nightly", 1)
	o.refuse("POST", "crons/delete", "", `{"pool":"default","namespace":"shop","name":"nightly"}`, 404, "not_found")
}

func TestAccessRoutes(t *testing.T) {
	o := newOffice(t)
	made := o.post("tokens", "", `{"pool":"other","namespace":"ns","description":"the shop"}`)["token"].(string)
	if !strings.HasPrefix(made, "other:") {
		t.Errorf("got token %q, want one of pool other", made)
	}
	o.post("limits", "", `{"namespace":"ns","token":"`+made+`","limit":{"read":1,"write":2,"interval":3}}`)
	list := o.get("tokens", "")["tokens"].([]any)
	if len(list) != 1 || fmt.Sprint(list[0].(map[string]any)["limit"]) != "map[interval:3 read:1 write:2]" {
		t.Errorf("got %v", list)
	}
	o.refuse("POST", "limits", "", `{"namespace":"ns","token":"`+made+`","limit":{"read":0,"write":0,"interval":3}}`, 400, "limit")
	o.refuse("POST", "tokens", "", `{"namespace":"ns","description":""}`, 400, "description")
	o.refuse("POST", "tokens", "", `{"namespace":"n.s","description":"x"}`, 400, "namespace")
	o.refuse("POST", "tokens", "", `{"pool":"nope","namespace":"ns","description":"x"}`, 404, "no_pool")
	o.post("limits/delete", "", `{"namespace":"ns","token":"`+made+`"}`)
	o.post("tokens/delete", "", `{"namespace":"ns","token":"`+made+`"}`)
	if list := o.get("tokens", "")["tokens"].([]any); len(list) != 0 {
		t.Errorf("after the deletion: got %v", list)
	}
	dry := o.post("tokens", "", `{"pool":"other","namespace":"n","description":"a b","dry_run":true}`)
	if dry["command"] != `pawl token create --pool other n "a b"` || dry["token"] != "" || len(o.get("tokens", "")["tokens"].([]any)) != 0 {
		t.Errorf("dry run: got %v", dry)
	}
}

func TestUserRoutes(t *testing.T) {
	o := newOffice(t)
	users := func() map[string]map[string]any {
		t.Helper()
		all := map[string]map[string]any{}
		for _, u := range o.get("users", "")["users"].([]any) {
			all[u.(map[string]any)["name"].(string)] = u.(map[string]any)
		}
		return all
	}
	const rules = `"rules":["on","~mail*","+@work","+@produce","pool=eu"]`
	dry := o.post("users", "", `{"name":"bob",`+rules+`,"generate":true,"dry_run":true}`)
	if dry["command"] != "ACL SETUSER bob on ~mail* +@work +@produce pool=eu resetpass >…" || dry["password"] != "" || users()["bob"] != nil {
		t.Errorf("dry run: got %v", dry)
	}
	made := o.post("users", "", `{"name":"bob",`+rules+`,"generate":true}`)
	first := made["password"].(string)
	bob := users()["bob"]
	if len(first) < 20 || bob["enabled"] != true || bob["passwords"] != 1. || bob["pool"] != "eu" ||
		fmt.Sprint(bob["classes"], bob["queues"]) != "[produce work] [mail*]" {
		t.Errorf("got %v and password %q", bob, first)
	}
	login := func(password string) error {
		c := redis.NewClient(&redis.Options{Addr: o.addr, Username: "bob", Password: password, MaxRetries: -1})
		t.Cleanup(func() { c.Close() })
		return c.Ping(t.Context()).Err()
	}
	if err := login(first); err != nil {
		t.Errorf("with the password that was shown: %v", err)
	}
	// Another password takes the place of the first; rights stay.
	second := o.post("users", "", `{"name":"bob","rules":[],"generate":true}`)["password"].(string)
	if login(first) == nil || login(second) != nil || users()["bob"]["passwords"] != 1. {
		t.Error("after the rotation the old password works, or the new one does not")
	}
	clients := o.get("clients?match=BOB", "")
	if clients["total"].(float64) < 1 {
		t.Fatalf("got %v", clients)
	}
	one := clients["clients"].([]any)[0].(map[string]any)
	o.act("clients/kill", "", fmt.Sprintf(`{"id":%.0f}`, one["id"]), fmt.Sprintf("CLIENT KILL ID %.0f", one["id"]), 1)
	o.refuse("POST", "clients/kill", "", `{"id":999999}`, 404, "not_found")
	if none := o.get("clients?match=nobody-is-called-so", ""); none["total"] != 0. {
		t.Errorf("got %v", none)
	}
	all := users()
	if all["boss"]["configured"] != true || all["default"]["implied"] != true || all["default"]["enabled"] != false {
		t.Errorf("got %v", all)
	}
	o.refuse("POST", "users", "", `{"name":"boss","rules":["off"]}`, 409, "fixed")
	o.refuse("POST", "users", "", `{"name":"bob","rules":["+@everything"]}`, 400, "invalid")
	o.refuse("POST", "users", "", `{"name":"two words","rules":["on"]}`, 400, "invalid")
	o.refuse("POST", "users", "", `{"name":"token/default/x","rules":["on"]}`, 400, "invalid")
	o.refuse("POST", "users/delete", "", `{"name":"default"}`, 409, "fixed")
	o.act("users/delete", "", `{"name":"bob"}`, "ACL DELUSER bob", 1)
	o.refuse("POST", "users/delete", "", `{"name":"bob"}`, 404, "not_found")
}

func TestJobSearch(t *testing.T) {
	o := newOffice(t)
	o.fill()
	found := func(query string) int {
		t.Helper()
		return len(o.get("jobs?"+query, mailKey)["jobs"].([]any))
	}
	for query, want := range map[string]int{
		"match=%22n%22:7%7D": 1, "match=%22n%22": 25, "count=100&match=%22n%22": 40, "match=nothing": 0,
		"state=dead&match=refused": 3, "state=dead&match=dead%204": 1, "match=" + o.ids(mailKey, "ready")[3]: 1,
	} {
		if got := found(query); got != want {
			t.Errorf("%s: got %d jobs, want %d", query, got, want)
		}
	}
	// A page goes on where the one before ended.
	page := o.get("jobs?count=25&match=%22n%22", mailKey)
	rest := o.get("jobs?count=25&match=%22n%22&after="+page["next"].(string), mailKey)
	if got := len(rest["jobs"].([]any)); got != 15 || rest["next"] != "" {
		t.Errorf("the second page has %d jobs and leads to %q, want 15 and the end", got, rest["next"])
	}
	o.refuse("GET", "jobs?match="+strings.Repeat("x", 256), mailKey, "", 400, "invalid")
}

func TestSystemRoutes(t *testing.T) {
	o := newOffice(t)
	o.fill()
	o.Sample()
	v := o.get("overview", "")
	if v["ready"] != true || fmt.Sprint(v["jobs"]) != "map[dead:5 delayed:1 leased:1 ready:52]" || len(v["history"].([]any)) != 1 {
		t.Errorf("got %v", v)
	}
	o.act("drain", "", `{"on":true}`, "DRAIN on", 1)
	o.refuse("POST", "jobs", mailKey, `{"text":"x"}`, 503, "draining")
	o.act("drain", "", `{"on":false}`, "DRAIN off", 1)
	o.act("snapshot", "", `{}`, "SNAPSHOT", 1)
	if log := o.get("overview", "")["log"].(map[string]any); log["snapshot_at"] == 0. {
		t.Errorf("no snapshot: got %v", log)
	}
}

// TestHistoryRoute: what happened to a job is told while it lives and when it has
// gone.
func TestHistoryRoute(t *testing.T) {
	o := newOffice(t)
	q := []byte("default/shop/mail")
	job := &engine.Enqueue{Queue: q, Payload: []byte("x")}
	f := &engine.Fetch{Queues: [][]byte{q}, LeaseMs: 60_000}
	if err := o.engine.Do(job, f); err != nil || len(f.Jobs) != 1 {
		t.Fatal(err)
	}
	if err := o.engine.Load(&f.Jobs[0]); err != nil {
		t.Fatal(err)
	}
	if err := o.engine.Do(&engine.Bury{Lease: f.Jobs[0].Lease, Reason: []byte("hopeless")}); err != nil {
		t.Fatal(err)
	}
	id := job.ID.String()
	o.post("jobs/priority", "", `{"ids":["`+id+`"],"priority":5}`)
	o.post("jobs/delete", "", `{"ids":["`+id+`"]}`)
	h := o.get("job/history?id="+id, "")
	var told []string
	for _, e := range h["events"].([]any) {
		e := object(e.(map[string]any))
		told = append(told, fmt.Sprint(e["what"], " ", e["state"], " ", e["attempt"], " ", e["queue"], e["reason"]))
	}
	want := []string{"enqueue ready 0 shop/mail", "lease leased 1 ", "bury dead 1 hopeless", "priority dead 1 ", "delete  1 "}
	if !slices.Equal(told, want) || h["complete"] != true || h["next"] != 0.0 {
		t.Errorf("told %q, want %q (%v)", told, want, h)
	}
	if h := o.get("job/history?id=00000000000000000000000000", ""); len(h["events"].([]any)) != 0 {
		t.Errorf("a job that never was: %v", h)
	}
	for _, query := range []string{"", "?id=nonsense", "?id=" + id + "&from=-1"} {
		if code, reply := o.call("GET", "job/history"+query, "", ""); code != 400 {
			t.Errorf("%q: got %d %v, want 400", query, code, reply)
		}
	}
}

// TestHangUpsAreNoFailures: that nobody waits for a reply any more is nothing that an
// operator must hear of.
func TestHangUpsAreNoFailures(t *testing.T) {
	public, err := lmstfy.New(lmstfy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := admin.New(admin.Options{Lmstfy: public, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.SetEngine(servertest.Open(t, t.TempDir(), engine.Options{}))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	const path = "/api/v1/jobs?queue=default%2Fdefault%2Fq"
	ask(s, "GET", path, func(r *http.Request) { *r = *r.WithContext(gone) })
	if log.Len() > 0 {
		t.Errorf("the log says %s", &log)
	}
	if w := ask(s, "GET", path); w.Code != 200 {
		t.Errorf("who stays gets %d", w.Code)
	}
}

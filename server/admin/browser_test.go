package admin_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"pawl/engine"
	"pawl/state"
)

// script is a payload that must stay text.
const script = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'">`

// openDashboard serves the dashboard of an engine with jobs in every state, for a
// browser.
func openDashboard(t *testing.T) (*browser, *office, string) {
	t.Helper()
	b := openBrowser(t)
	o := newOffice(t)
	base := serveOffice(t, o)
	o.pair.Sample()
	fillEngine(t, o.engine)
	return b, o, base
}

// serveOffice gives the address of the dashboard.
func serveOffice(t *testing.T, o *office) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := o.pair.HTTP()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// TestDashboardInBrowser does everything that the dashboard can, and looks at what
// the engine has then.
func TestDashboardInBrowser(t *testing.T) {
	b, o, base := openDashboard(t)
	e, s := o.engine, o.pair
	for i := range 40 { // delivered and finished, so that there are latencies
		q := []byte("default/default/sms")
		job, f := &engine.Enqueue{Queue: q, Payload: []byte("x")}, &engine.Fetch{Queues: [][]byte{q}, LeaseMs: 60_000}
		if err := e.Do(job, f); err != nil || len(f.Jobs) != 1 {
			t.Fatal(err, len(f.Jobs))
		}
		if err := e.Load(&f.Jobs[0]); err != nil {
			t.Fatal(err)
		}
		if err := e.Do(&engine.Ack{Leases: []state.LeaseID{f.Jobs[0].Lease}}); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			s.Sample()
		}
	}
	s.Sample()

	info := func(key string) engine.QueueView {
		t.Helper()
		q := &engine.QueueInfo{Queue: []byte(key)}
		if err := e.Do(q); err != nil || q.Err() != nil {
			t.Fatal(err, q.Err())
		}
		return q.Info
	}
	const mail, mailPage = "default/default/mail", "/#/queue/default%2Fdefault%2Fmail"

	b.open(base + "/")
	b.text("main h1", "Overview")
	b.measureOpening()
	b.text("main", "Disk and log")
	b.text("main", "delivered to acknowledged")
	b.accessible("overview")
	b.shot("overview-light", 1280, 900, false)
	b.shot("overview-dark", 1280, 900, true)
	b.shot("overview-phone", 390, 844, false)

	b.open(base + "/#/queues")
	b.text("main td", "mail")
	b.accessible("queues")
	b.shot("queues-light", 1280, 700, false)
	b.shot("queues-phone-dark", 390, 844, true)

	b.open(base + mailPage)
	b.text("main h1", "mail")
	b.act("Pause", "QUEUE PAUSE mail", "Pause")
	b.text("main h1", "paused")
	if !info(mail).Paused {
		t.Error("the queue is not paused")
	}
	b.act("Resume", "QUEUE RESUME mail", "Resume")
	b.press("Settings")
	b.fill("max_len", "5000")
	b.text("dialog .preview", "QUEUE SET mail MAXLEN 5000")
	b.shot("settings-light", 1280, 1000, false)
	b.press("Set")
	b.await("the end of the dialog", "!document.querySelector('dialog[open]')")
	if got := info(mail).Settings.MaxLen; got != 5000 {
		t.Errorf("max_len is %d, want 5000", got)
	}

	b.press("New job")
	b.fill("text", script)
	b.text("dialog .preview", "ENQUEUE mail")
	b.press("Enqueue")
	b.text(".toast", "is enqueued")

	b.open(base + mailPage + "/dead")
	b.text("main", "connection refused")
	b.accessible("dead jobs")
	b.shot("dead-light", 1280, 900, false)
	b.act("Redrive these", "Affects 3.", "Make")
	if got := info(mail).Dead; got != 2 {
		t.Errorf("%d dead jobs after the redrive of three of five, want 2", got)
	}
	// The other reason stands first only once the page has been drawn again.
	b.await("the page without those jobs", "[...document.querySelectorAll('main button')].filter(b => b.textContent === 'Delete these').length === 1")
	b.act("Delete these", "JOB DELETE", "Delete")
	if got := info(mail).Dead; got != 0 {
		t.Errorf("%d dead jobs after the deletion, want 0", got)
	}

	b.open(base + mailPage + "/ready?match=%22n%22%3A39")
	b.await("one job that matches", "document.querySelectorAll('main tbody input[type=checkbox]').length === 1")
	b.shot("search-light", 1280, 900, false)

	b.open(base + mailPage + "/delayed")
	b.text("main td", "in ")
	b.eval("document.querySelector('main tbody input[type=checkbox]').click()")
	b.text("main", "1 chosen")
	b.act("Run now", "JOB RUN", "Make")
	if got := info(mail).Delayed; got != 0 {
		t.Errorf("%d delayed jobs, want 0", got)
	}

	page := &engine.QueuePeek{Queue: []byte(mail), Place: 1, Count: 100}
	if err := e.Do(page); err != nil {
		t.Fatal(err)
	}
	id := ""
	for i := range page.Jobs {
		v := &page.Jobs[i]
		if err := e.LoadView(v); err == nil && string(v.Payload) == script {
			id = v.ID.String()
		}
	}
	b.open(base + "/#/job/" + id)
	b.text("main pre", "<script>")
	if title := b.eval("document.title"); strings.Contains(title, "owned") {
		t.Error("a payload became part of the page")
	}
	b.press("hex")
	b.text("main pre", "3c 73 63 72 69 70 74")
	b.accessible("a job")
	b.shot("job-hex-light", 1280, 700, false)
	b.press("Edit payload…")
	b.fill("text", `{"big":12345678901234567890,"a":[1,2,{}]}`)
	b.text("dialog .preview", "JOB PAYLOAD")
	b.press("Replace it")
	b.press("JSON")
	b.text("main pre", `"big": 12345678901234567890`)
	b.shot("job-json-dark", 1280, 700, true)
	b.press("Edit payload…")
	b.fill("as", "hex")
	b.text("dialog .preview", "JOB PAYLOAD")
	b.fill("text", "00 ff f")
	b.text("dialog .preview", "one is missing")
	b.fill("text", "00 ff zz")
	b.text("dialog .preview", "no hexadecimal digit")
	b.fill("text", "00 ff fe 0a")
	b.text("dialog .preview", "<4 bytes>")
	b.shot("edit-hex-light", 1280, 900, false)
	b.press("Replace it")
	b.text("main pre", "00 ff fe 0a")
	b.press("Edit payload…") // no text any more
	b.fill("as", "base64")
	b.await("base64 of what is there", "document.querySelector('#field-text').value === 'AP/+Cg=='")
	b.fill("text", "bm8gbW9yZSB6ZXJvcw==")
	b.press("Replace it")
	b.text("main pre", "no more zeros")
	b.press("Priority…")
	b.fill("priority", "7")
	b.text("dialog .preview", "JOB PRIORITY "+id+" 7")
	b.press("Change")
	b.text("main dd", "7")
	b.press("Move…")
	b.fill("to", "default/default/other")
	b.text("dialog .preview", "JOB MOVE")
	b.press("Move")
	b.text("main dd", "other")
	b.press("Delay…")
	b.text("dialog .preview", "JOB DELAY")
	b.press("Delay")
	b.text("main dd b", "delayed")
	for _, what := range []string{"enqueued", "payload replaced", "priority changed", "moved", "delayed"} {
		b.text("main section:last-of-type", what)
	}
	b.shot("job-history-light", 1280, 1100, false)
	b.shot("job-history-phone-dark", 390, 1400, true)
	b.act("Delete…", "JOB DELETE "+id, "Delete")
	b.text(".toast", "is deleted")
	b.open(base + "/#/job/" + id)
	b.text("main .notice", "no such job any more")
	b.text("main section:last-of-type", "deleted")
	b.text("main section:last-of-type button", "Look again")
	b.accessible("a job that has gone")

	b.open(base + "/#/dead")
	b.text("main h1", "Dead letters")
	b.open(base + "/#/leases")
	b.text("main td", "mail")
	b.accessible("workers")
	b.shot("leases-light", 1280, 700, false)

	b.open(base + "/#/crons")
	b.press("New cron")
	b.fill("name", "nightly")
	b.fill("queue", mail)
	b.fill("spec", "not a spec")
	b.await("a refusal", "document.querySelector('dialog .preview .s-dead')")
	b.fill("spec", "0 3 * * *")
	b.text("dialog .preview", "CRON SET nightly")
	b.press("Set")
	b.text("main td", "nightly")
	b.accessible("crons")
	b.shot("crons-light", 1280, 600, false)
	b.press("Change")
	b.fill("tries", "4")
	b.fill("backoff_ms", "500")
	b.fill("attrs", "team=shop")
	b.text("dialog .preview", `TRIES 4 BACKOFF 500 ATTR team shop`)
	b.shot("cron-form-dark", 1280, 1000, true)
	b.press("Set")
	b.await("the end of the dialog", "!document.querySelector('dialog[open]')")
	crons := &engine.CronList{Namespace: "default/"}
	if err := e.Do(crons); err != nil || len(crons.Crons) != 1 || !strings.Contains(string(crons.Crons[0].Options), "500") {
		t.Errorf("the cron has %+v, want a backoff of 500", crons.Crons)
	}
	b.act("Delete", "CRON DELETE nightly", "Delete it")
	b.text("main td", "No recurring jobs")

	b.open(base + "/#/access")
	b.press("New token")
	b.fill("namespace", "shop")
	b.fill("description", "the shop")
	b.text("dialog .preview", `pawl token create shop "the shop"`)
	b.press("Make it")
	b.text("dialog h2", "The new token")
	b.press("Done")
	b.text("main td", "shop")
	b.press("Limit…")
	b.fill("read", "10")
	b.press("Set")
	b.text("main td", "10 reads")
	b.press("Rotate…")
	b.text("dialog .preview", "pawl token create shop")
	b.press("Make it") // the next dialog may be there at once
	b.text("dialog h2", "The new token")
	b.press("Done")
	b.await("two tokens with the limit", "document.querySelectorAll('main table')[1].innerText.split('10 reads').length === 3")

	b.press("New user")
	b.fill("name", "mailer")
	b.fill("queues", "mail* shop/*")
	b.text("dialog .preview", "ACL SETUSER mailer on -@all +@produce +@work resetqueues ~mail* ~shop/*")
	b.shot("user-form-light", 1280, 1000, false)
	b.press("Make it")
	b.text("dialog h2", "Password of mailer")
	password := b.eval("document.querySelector('dialog pre').innerText")
	b.press("Done")
	worker := redis.NewClient(&redis.Options{Addr: o.addr, Username: "mailer", Password: password, ClientName: "from-the-test"})
	defer worker.Close()
	if err := worker.Ping(t.Context()).Err(); err != nil {
		t.Errorf("with the password that was shown: %v", err)
	}
	b.pressIn("mailer", "Change…")
	b.fill("produce", "false")
	b.text("dialog .preview", "+@work")
	b.press("Change")
	b.await("fewer rights", "[...document.querySelectorAll('main tr')].some((r) => r.innerText.includes('mailer') && !r.innerText.includes('produce'))")
	b.accessible("access")
	b.shot("access-light", 1280, 900, false)
	b.shot("access-phone-dark", 390, 844, true)
	b.pressIn("mailer", "Password…")
	b.text("dialog .preview", "ACL SETUSER mailer resetpass")
	b.press("Make it")
	b.text("dialog h2", "Password of mailer")
	b.press("Done")

	b.open(base + "/#/connections")
	b.text("main td", "from-the-test")
	b.accessible("connections")
	b.shot("connections-light", 1280, 600, false)
	b.pressIn("from-the-test", "Close")
	b.text("dialog .preview", "CLIENT KILL ID")
	b.press("Close it")
	b.await("the end of the dialog", "!document.querySelector('dialog[open]')")

	b.open(base + "/#/access")
	b.pressIn("mailer", "Delete")
	b.text("dialog .preview", "ACL DELUSER mailer")
	b.press("Delete it")
	b.await("the user is gone", "!document.querySelector('dialog[open]') && !document.querySelector('main').innerText.includes('mailer')")
	b.act("Delete", "pawl token delete shop", "Delete it")
	b.await("one token", "document.querySelectorAll('main table')[1].innerText.split('10 reads').length === 2")
	b.act("Delete", "pawl token delete shop", "Delete it")
	b.text("main td", "No tokens")

	b.open(base + mailPage)
	b.act("Purge", "QUEUE PURGE mail STATE ready", "Remove them")
	if got := info(mail).Ready; got != 0 {
		t.Errorf("%d ready jobs after the purge, want 0", got)
	}
	b.open(base + "/#/overview")
	b.act("Drain", "DRAIN on", "Refuse new jobs")
	b.text("#health", "refused by DRAIN")
	b.act("Take new jobs again", "DRAIN off", "Take new jobs")
	b.act("Snapshot now", "SNAPSHOT", "Write it")

	b.mu.Lock()
	defer b.mu.Unlock()
	for _, trouble := range b.trouble {
		if !strings.Contains(trouble, "status of 400") && !strings.Contains(trouble, "status of 404") && !strings.Contains(trouble, "/readyz") { // refusals that were provoked
			t.Errorf("the console: %s", trouble)
		}
	}
}

// fillEngine makes jobs in every state.
func fillEngine(t testing.TB, e *engine.Engine) {
	t.Helper()
	must := func(cmds ...engine.Command) {
		t.Helper()
		if err := e.Do(cmds...); err != nil {
			t.Fatal(err)
		}
		for _, c := range cmds {
			if c.Err() != nil {
				t.Fatal(c.Err())
			}
		}
	}
	mail := []byte("default/default/mail")
	for i := range 5 {
		must(&engine.Enqueue{Queue: mail, Payload: fmt.Appendf(nil, "dead %d", i)})
		f := &engine.Fetch{Queues: [][]byte{mail}, LeaseMs: 60_000}
		must(f)
		reason := "connection refused"
		if i%2 == 1 {
			reason = "no such address"
		}
		must(&engine.Bury{Lease: f.Jobs[0].Lease, Reason: []byte(reason)})
		if err := e.Load(&f.Jobs[0]); err != nil {
			t.Fatal(err)
		}
	}
	must(&engine.Enqueue{Queue: mail, Payload: []byte("leased")})
	f := &engine.Fetch{Queues: [][]byte{mail}, LeaseMs: 3_600_000}
	must(f)
	if err := e.Load(&f.Jobs[0]); err != nil {
		t.Fatal(err)
	}
	must(&engine.Enqueue{Queue: mail, Payload: []byte("delayed"), Delay: 3_600_000})
	var many []engine.Command
	for i := range 40 {
		many = append(many, &engine.Enqueue{Queue: mail, Payload: fmt.Appendf(nil, `{"n":%d}`, i), Priority: int8(i % 3)})
	}
	for i := range 12 {
		many = append(many, &engine.Enqueue{Queue: fmt.Appendf(nil, "default/shop/orders-%d", i), Payload: []byte("x")})
	}
	must(many...)
}

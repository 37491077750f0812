package admin_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/engine"
	"pawl/state"
)

// browser drives headless Chromium over its debugging pipe: messages are JSON
// behind each other with a NUL between.
type browser struct {
	t       *testing.T
	to      *os.File
	session string

	mu      sync.Mutex
	next    int                          // guarded by mu
	replies map[int]chan json.RawMessage // guarded by mu
	trouble []string                     // guarded by mu; console errors, exceptions, policy violations
}

// openBrowser starts Chromium, or skips the test where there is none.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	if os.Getenv("PAWL_E2E") != "1" {
		t.Skip("drives a real browser: set PAWL_E2E=1")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("PAWL_E2E=1 and no chromium")
	}
	fromParent, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, toParent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-extensions", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	cmd.ExtraFiles = []*os.File{fromParent, toParent}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fromParent.Close()
	toParent.Close()
	b := &browser{t: t, to: to, replies: map[int]chan json.RawMessage{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.read(from)
	}()
	t.Cleanup(func() {
		b.session = ""
		b.send("Browser.close", nil)
		to.Close()
		cmd.Wait()
		from.Close()
		<-done
	})
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// read takes replies to who waits for them, and remembers what went wrong.
func (b *browser) read(from *os.File) {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		switch {
		case m.ID != 0:
			if c := b.replies[m.ID]; c != nil {
				if m.Error != nil {
					m.Result = m.Error
				}
				c <- m.Result
				delete(b.replies, m.ID)
			}
		case m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded",
			m.Method == "Runtime.consoleAPICalled" && strings.Contains(string(m.Params), `"type":"error"`):
			b.trouble = append(b.trouble, string(m.Params))
		}
		b.mu.Unlock()
	}
}

func (b *browser) send(method string, params any) chan json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	c := make(chan json.RawMessage, 1)
	b.replies[b.next] = c
	m := map[string]any{"id": b.next, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		b.to.Write(append(text, 0))
	}
	return c
}

func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	select {
	case text := <-b.send(method, params):
		if result != nil {
			if err := json.Unmarshal(text, result); err != nil {
				b.t.Fatalf("%s: %v in %s", method, err, text)
			}
		}
	case <-time.After(30 * time.Second):
		b.t.Fatalf("%s: no reply", method)
	}
}

// eval gives the value of an expression in the page, as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result struct{ Value any }
		Exc    *struct{ Text string } `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &r)
	if r.Exc != nil {
		b.t.Fatalf("%s: %s", expression, r.Exc.Text)
	}
	return fmt.Sprint(r.Result.Value)
}

// await evaluates until the expression is true.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for b.eval("Boolean("+expression+")") != "true" {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: never came; the page says:\n%s", what, b.eval("document.body.innerText"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// text waits until the page, or the part that selector finds, has the text.
func (b *browser) text(selector, want string) {
	b.t.Helper()
	b.await(fmt.Sprintf("%q in %s", want, selector), fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))", selector, want))
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.eval(fmt.Sprintf("(location.href = %q, 0)", url))
}

// press clicks the button of that name, in an open dialog before the page.
func (b *browser) press(name string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll((document.querySelector('dialog[open]') ? 'dialog ' : 'main ') + 'button')].find((e) => e.innerText.trim() === %q && !e.disabled)", name)
	b.await("button "+name, find)
	b.eval(find + ".click()")
}

// pressIn clicks the button of that name in the table row that has the text.
func (b *browser) pressIn(row, name string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('main tr')].filter((r) => r.innerText.includes(%q)).flatMap((r) => [...r.querySelectorAll('button')]).find((e) => e.innerText.trim() === %q)", row, name)
	b.await("button "+name+" of "+row, find)
	b.eval(find + ".click()")
}

// fill sets a field of the open dialog.
func (b *browser) fill(field, value string) {
	b.t.Helper()
	find := fmt.Sprintf("document.querySelector('dialog[open] #field-%s')", field)
	b.await("field "+field, find)
	b.eval(fmt.Sprintf("((e) => { if (e.type === 'checkbox') e.checked = %q === 'true'; else e.value = %q; e.dispatchEvent(new Event('input', { bubbles: true })); })(%s)", value, value, find))
}

// act presses a button, looks at the preview in the dialog, and confirms.
func (b *browser) act(button, preview, confirm string) {
	b.t.Helper()
	b.press(button)
	b.text("dialog .preview", preview)
	b.press(confirm)
	b.await("the end of the dialog", "!document.querySelector('dialog[open]')")
}

// shot keeps a picture in the directory that PAWL_SHOTS names, for people to look
// at.
func (b *browser) shot(name string, width, height int, dark bool) {
	dir := os.Getenv("PAWL_SHOTS")
	if dir == "" {
		return
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	time.Sleep(2500 * time.Millisecond)
	var r struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &r)
	png, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
	b.call("Emulation.clearDeviceMetricsOverride", nil, nil)
}

// maxOverview bounds what the first page may load in all, in bytes.
const maxOverview = 200_000

// measureOpening asserts what the page that is open has loaded, and says how long
// it took until it showed something: that is a matter of the machine.
func (b *browser) measureOpening() {
	b.t.Helper()
	loaded := b.eval(`performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource')).reduce((sum, e) => sum + e.transferSize, 0)`)
	n, err := strconv.ParseFloat(loaded, 64)
	if err != nil || n == 0 || n > maxOverview {
		b.t.Errorf("the overview loads %s bytes (%v), want at most %d", loaded, err, maxOverview)
	}
	b.t.Logf("the overview: %.0f bytes, open after %s ms", n, b.eval(`Math.round(performance.getEntriesByName('drawn')[0].startTime)`))
}

// accessible looks at the page that is open with the eyes of those who cannot see
// it well, or have no mouse: contrast of all text by WCAG AA, a name for
// everything that can be used, and the Tab key leading through all of it in the
// order of the page.
func (b *browser) accessible(page string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		if bad := b.eval(contrastScript); bad != "" {
			b.t.Errorf("%s, %s: too little contrast: %s", page, scheme, bad)
		}
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{}}, nil)
	if bad := b.eval(`[...document.querySelectorAll('a,button,input,select,textarea,summary,svg[role=img]')].filter((e) => e.checkVisibility() &&
		!(e.innerText?.trim() || e.getAttribute('aria-label') || e.labels?.length || e.title || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 120)).join(' | ')`); bad != "" {
		b.t.Errorf("%s: without a name: %s", page, bad)
	}
	// A page that is out of sight is not drawn anew, so it stands still meanwhile.
	b.eval(`(Object.defineProperty(document, 'hidden', { value: true, configurable: true }), document.activeElement.blur(), 0)`)
	defer b.eval(`(delete document.hidden, 0)`)
	want := b.eval(`[...document.querySelectorAll('a[href],button:not(:disabled),input,select,textarea,summary,[tabindex="0"]')].filter((e) => e.checkVisibility()).length`)
	b.eval(`(window.seen = [], window.watched ||= document.addEventListener('focusin', (e) => window.seen.push(e.target)) || true, 0)`)
	n, _ := strconv.Atoi(want)
	for range n {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
	}
	if back := b.eval(`window.seen.filter((e, i) => i > 0 && document.contains(e) && document.contains(window.seen[i - 1]) &&
		window.seen[i - 1].compareDocumentPosition(e) & Node.DOCUMENT_POSITION_PRECEDING).length`); back != "0" && back != "1" { // once round the end
		b.t.Errorf("%s: the Tab key goes back %s times", page, back)
	}
	// The page may draw itself anew in between, so what was seen is counted by name.
	if left := b.eval(`[...document.querySelectorAll('main a[href],main button:not(:disabled),main input,main select,main summary')].filter((e) => e.checkVisibility() &&
		!window.seen.some((s) => s === e || s.outerHTML === e.outerHTML)).map((e) => e.outerHTML.slice(0, 90)).join(' | ')`); left != "" {
		b.t.Errorf("%s: the Tab key does not lead to %s", page, left)
	}
}

// contrastScript lists text whose colour is too near to what is behind it: WCAG
// 2.2 AA wants 4.5, and 3 for large text. What is disabled is excepted there.
const contrastScript = `(() => {
	const parse = (c) => { const [r, g, b, a = 1] = c.match(/[\d.]+/g).map(Number); return [r, g, b, a]; };
	const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; } return [255, 255, 255, 1]; };
	const bad = new Set();
	for (const e of document.querySelectorAll('body *')) {
		const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
		if (!text || !e.checkVisibility() || e.closest(':disabled, .hidden, .skip')) continue;
		const style = getComputedStyle(e), large = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700;
		const color = e instanceof SVGElement ? style.fill : style.color;
		const a = light(parse(color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < (large ? 3 : 4.5)) bad.add(e.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
	}
	return [...bad].join(', ');
})()`

// script is a payload that must stay text.
const script = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'">`

// TestDashboardInBrowser does everything that the dashboard can, and looks at what
// the engine has then.
func TestDashboardInBrowser(t *testing.T) {
	b := openBrowser(t)
	o := newOffice(t)
	e, s := o.engine, o.pair
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := s.HTTP()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	base := "http://" + l.Addr().String()
	s.Sample()
	fillEngine(t, e)
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
	b.pressIn("mailer", "New password…")
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

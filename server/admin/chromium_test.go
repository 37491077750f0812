package admin_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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

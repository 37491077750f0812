package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"pawl/engine"
)

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
	// From the first to the last, while the page is drawn anew as ever. Going on from
	// the last would leave the page for the browser's own controls, and when the
	// browser gives the focus back is its own affair.
	b.eval(`(window.wanted = [...document.querySelectorAll('a[href],button:not(:disabled),input,select,textarea,summary,[tabindex="0"]')].filter((e) => e.checkVisibility()),
		window.seen = [], window.watched ||= document.addEventListener('focusin', (e) => window.seen.push(e.target)) || true, window.wanted[0].focus(), 0)`)
	for i := 0; b.eval(`document.activeElement === window.wanted.at(-1)`) != "true" && i < 200; i++ {
		b.tab()
	}
	if astray := b.eval(`window.wanted.map((e, i) => [e, window.seen[i]]).filter(([e, s]) => e !== s).slice(0, 3)
		.map((pair) => pair.map((e) => e?.outerHTML.slice(0, 90) || 'nothing').join(' <> ')).join(' | ')`); astray != "" {
		b.t.Errorf("%s: the Tab key strays, want <> got: %s", page, astray)
	}
}

func (b *browser) tab() {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
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

// TestFocusStays has the page drawn anew under somebody who works without a mouse.
func TestFocusStays(t *testing.T) {
	b, o, base := openDashboard(t)
	e := o.engine
	on := func(find string) string { // the element, kept in window.on
		b.await("something to put the focus on", find)
		return b.eval(fmt.Sprintf("(window.on = %s, window.on.focus(), window.on.textContent)", find))
	}
	const focus = "(document.activeElement.textContent + ', ' + document.activeElement.tagName)"
	row := func(queue, selector string) string {
		return fmt.Sprintf("[...document.querySelectorAll('main tbody tr')].find((r) => r.innerText.includes(%q))?.querySelector(%q)", queue, selector)
	}

	// A row that changes places takes the focus along.
	b.open(base + "/#/queues?sort=ready")
	on(row("orders-3", "button"))
	b.await("the row behind mail", "document.querySelector('main tbody tr').innerText.startsWith('mail')")
	var more []engine.Command
	for range 100 {
		more = append(more, &engine.Enqueue{Queue: []byte("default/shop/orders-3"), Payload: []byte("x")})
	}
	if err := e.Do(more...); err != nil {
		t.Fatal(err)
	}
	b.await("the row before mail", "document.querySelector('main tbody tr').innerText.includes('orders-3')")
	if b.eval("document.activeElement === window.on") != "true" {
		t.Errorf("its row has moved and the focus is on %s", b.eval(focus))
	}
	on(row("mail", "a"))
	if err := e.Do(&engine.QueueDelete{Queue: []byte("default/shop/orders-3")}); err != nil {
		t.Fatal(err)
	}
	b.await("mail to be the first again", "document.querySelector('main tbody tr').innerText.startsWith('mail')")
	if b.eval("document.activeElement === window.on") != "true" {
		t.Errorf("the row before it has gone and the focus is on %s", b.eval(focus))
	}

	// What has gone leaves the focus to what stands in its place.
	on(row("orders-5", "a"))
	if err := e.Do(&engine.QueueDelete{Queue: []byte("default/shop/orders-5")}); err != nil {
		t.Fatal(err)
	}
	b.await("the end of the row", "!"+row("orders-5", "a"))
	if got := b.eval(focus); !strings.HasSuffix(got, ", A") {
		t.Errorf("its row has gone and the focus is on %s", got)
	}

	// A button keeps its meaning under the finger.
	job := &engine.Enqueue{Queue: []byte("default/default/mail"), Payload: []byte("later"), Delay: 3_600_000}
	if err := e.Do(job); err != nil {
		t.Fatal(err)
	}
	b.open(base + "/#/job/" + job.ID.String())
	b.text("main button", "Run now")
	on("[...document.querySelectorAll('main button')].find((e) => e.innerText === 'Delay…')")
	b.act("Run now", "JOB RUN", "Make")
	b.await("the end of that button", "![...document.querySelectorAll('main button')].some((e) => e.innerText === 'Run now')")
	if got := b.eval(focus); got != "Delay…, BUTTON" {
		t.Errorf("the button before it has gone and the focus is on %s", got)
	}
}

// TestPhoneWidth: on a narrow screen nothing is wider than it, and what one does
// with dead letters and users is in sight.
func TestPhoneWidth(t *testing.T) {
	b, _, base := openDashboard(t)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true}, nil)
	beyond := func(which string) string {
		return b.eval(fmt.Sprintf(`[...document.querySelectorAll(%q)].filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > 391 && !(e.closest('nav') || e.closest('.scroll') && !e.matches('td.acts button')))
			.map((e) => e.outerHTML.slice(0, 90)).join(' | ')`, which))
	}
	for _, page := range []string{"overview", "queues?sort=dead", "dead", "leases", "crons", "connections", "access", "queue/default%2Fdefault%2Fmail/dead"} {
		b.open(base + "/#/" + page)
		b.await(page, "location.hash === document.getElementById('main')?.dataset.shows")
		if out := beyond("body *:not(td.acts button)"); out != "" {
			t.Errorf("%s: beyond the screen: %s", page, out)
		}
		if page != "dead" && page != "access" {
			continue
		}
		b.await("buttons of a row", "document.querySelector('main td.acts button')")
		if out := beyond("td.acts button"); out != "" {
			t.Errorf("%s: beyond the screen: %s", page, out)
		}
	}
}

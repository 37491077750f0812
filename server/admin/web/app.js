// The dashboard: one module, no dependencies. Pages are functions that fetch and
// return elements; the present page is fetched again every two seconds and the
// difference is patched in, so that focus, scrolling and input survive. Text
// reaches the page as text nodes only, never as markup.

const main = document.getElementById('main');
const refreshMs = 2000;
const pageSize = 25;

// ---- elements ----

const svgTags = new Set(['svg', 'path', 'line', 'text', 'g', 'rect', 'circle', 'title']);

// h makes an element. Properties: on* are handlers, booleans are set or left out,
// everything else is an attribute. Children may be strings, elements, lists, null.
function h(tag, props, ...children) {
  const el = svgTags.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  el.handlers = {};
  for (const [name, value] of Object.entries(props || {})) {
    if (name.startsWith('on')) listen(el, name.slice(2), value);
    else if (name === 'checked' || name === 'value') { el[name] = value; el.given = { ...el.given, [name]: value }; }
    else if (value === true) el.setAttribute(name, '');
    else if (value !== false && value != null) el.setAttribute(name, value);
  }
  for (const child of children.flat(9)) if (child != null && child !== false) el.append(child);
  return el;
}

// Handlers are looked up at the event, so that patch can replace them.
function listen(el, type, handler) {
  if (!el.handlers[type]) el.addEventListener(type, (event) => el.handlers[type]?.(event));
  el.handlers[type] = handler;
}

// patch makes old look like fresh with as few changes as it can. The two are alike by alikeness.
function patch(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && name !== 'open') old.removeAttribute(name);
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const type of Object.keys(old.handlers || {})) if (!fresh.handlers?.[type]) old.handlers[type] = null;
  for (const [type, handler] of Object.entries(fresh.handlers || {})) {
    old.handlers ||= {};
    if (handler) listen(old, type, handler);
  }
  for (const [name, value] of Object.entries(fresh.given || {})) if (document.activeElement !== old || name === 'checked') old[name] = value;
  const ours = Map.groupBy(old.childNodes, alikeness);
  let at = old.firstChild; // everything before it is as it shall be
  for (const node of [...fresh.childNodes]) {
    const mine = ours.get(alikeness(node))?.shift();
    if (!mine) { old.insertBefore(node, at); continue; }
    if (mine.contains(document.activeElement)) while (at !== mine) { const other = at; at = at.nextSibling; old.append(other); } // what is moved loses the focus
    else if (mine !== at) old.insertBefore(mine, at);
    patch(mine, node);
    at = mine.nextSibling;
  }
  for (const rest of ours.values()) rest.forEach((node) => node.remove());
}

// alikeness says which child is which in two drawings: a row is known by what it
// is of, a button by its name, so that the focus stays on what somebody means to
// press while others come and go beside it. The rest is known by its order.
const alikeness = (node) => node.nodeName + ' ' + (node.dataset?.key ?? (node.nodeName === 'BUTTON' ? node.textContent : ''));

// redraw patches the page. When what has the focus, or gets it back from the open
// dialog, is gone from it, the focus goes to what stands in its place.
function redraw(fresh) {
  const held = dialog.open ? opener : document.activeElement;
  const usable = () => [...main.querySelectorAll('a[href],button:not(:disabled),input,select,summary,[tabindex="0"]')].filter((el) => el.checkVisibility());
  const place = held !== main && main.contains(held) ? usable().indexOf(held) : -1;
  patch(main, fresh);
  if (place < 0 || (held.isConnected && !held.disabled)) return;
  const heir = usable().slice(0, place + 1).at(-1) || main;
  if (dialog.open) opener = heir; else heir.focus({ preventScroll: true });
}

// ---- the API ----

async function call(method, path, query, body) {
  const url = '/api/v1/' + path + '?' + Object.entries(query || {}).filter(([, v]) => v !== '' && v != null)
    .map(([k, v]) => encodeURIComponent(k) + '=' + (k === 'queue' ? v : encodeURIComponent(v))).join('&');
  const response = await fetch(url, {
    method, cache: 'no-store', credentials: 'same-origin',
    headers: body ? { 'Content-Type': 'application/json' } : {},
    body: body ? JSON.stringify(body) : undefined,
  });
  const reply = await response.json().catch(() => null);
  if (!response.ok) throw Object.assign(new Error(reply?.error?.message || 'the server answered ' + response.status), { status: response.status });
  return reply;
}
const get = (path, query) => call('GET', path, query);
const post = (path, query, body) => call('POST', path, query, body);

// ---- how values read ----

const whole = new Intl.NumberFormat('en');
const count = (n) => whole.format(n);
function short(n) {
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) if (Math.abs(n) >= size) return (n / (unit === 'k' ? 1e3 : size)).toFixed(1) + unit;
  return Math.abs(n) < 10 && n % 1 ? n.toFixed(1) : count(Math.round(n));
}
function bytes(n) {
  let unit = 0;
  while (n >= 1024 && unit < 5) { n /= 1024; unit++; }
  return (unit && n < 100 ? n.toFixed(1) : Math.round(n)) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit];
}
function span(ms) {
  if (ms < 1000) return Math.round(ms) + ' ms';
  const s = ms / 1000;
  if (s < 60) return (s < 10 ? s.toFixed(1) : Math.round(s)) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.round(s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.round((s % 3600) / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.round((s % 86400) / 3600) + ' h';
}
function when(ms) {
  if (!ms) return h('span', { class: 'muted' }, '–');
  const d = ms - Date.now();
  const date = new Date(ms);
  return h('time', { datetime: date.toISOString(), title: date.toISOString() }, d > 0 ? 'in ' + span(d) : span(-d) + ' ago');
}
// exact is a moment to the millisecond, where the order of events matters.
function exact(ms) {
  const date = new Date(ms), two = (n) => String(n).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `;
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
  return h('time', { datetime: date.toISOString(), title: date.toISOString() }, h('span', { class: 'opt' }, day), text);
}
const keyOf = (ref) => decodeURIComponent(ref.replaceAll('+', '%20'));

// ---- charts ----

// chart draws lines over one time axis. series: [{ name, values }].
function chart(title, times, series, format) {
  const room = main.clientWidth - 32, width = Math.max(240, Math.floor(room > 870 ? room / 2 - 33 : room - 27));
  const height = 176, left = 44, bottom = 22, top = 8;
  const max = niceMax(Math.max(0, ...series.flatMap((s) => s.values)));
  const x = (i) => left + (times.length < 2 ? 0 : (i * (width - left)) / (times.length - 1));
  const y = (v) => top + (height - top - bottom) * (1 - v / max);
  const parts = [0, 0.5, 1].map((f) => h('g', null,
    h('line', { class: 'axis', x1: left, x2: width, y1: y(max * f), y2: y(max * f) }),
    h('text', { x: left - 6, y: y(max * f) + 4, 'text-anchor': 'end' }, format(max * f))));
  if (times.length < 2) {
    parts.push(h('text', { x: (left + width) / 2, y: height / 2 - 12, 'text-anchor': 'middle' }, 'the first points come in a few seconds'));
  } else {
    const long = times.at(-1) - times[0];
    for (const f of width > 420 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]) {
      const at = left + f * (width - left);
      parts.push(h('line', { class: 'axis', x1: at, x2: at, y1: height - bottom, y2: height - bottom + 4 }),
        h('text', { x: at, y: height - 5, 'text-anchor': f === 0 ? 'start' : f === 1 ? 'end' : 'middle' }, f === 1 ? 'now' : '−' + span(long * (1 - f))));
    }
    const first = series[0].values;
    parts.push(h('path', { class: 'area c0', d: `M${left} ${y(0)}` + first.map((v, i) => 'L' + x(i).toFixed(1) + ' ' + y(v).toFixed(1)).join('') + `L${width} ${y(0)}Z` }));
  }
  series.forEach((s, n) => parts.push(h('path', { class: 'line c' + n, d: s.values.map((v, i) => (i ? 'L' : 'M') + x(i).toFixed(1) + ' ' + y(v).toFixed(1)).join('') })));
  const key = (i) => h('div', { class: 'key' }, series.map((s, n) => h('span', null, h('i', { class: 'b' + n }), s.name, ' ', h('b', null, s.values.length ? format(s.values.at(i)) : '–'))),
    i !== -1 && h('span', null, new Date(times[i]).toLocaleTimeString()));
  let legend = key(-1);
  const svg = h('svg', {
    viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': title + ': ' + series.map((s) => s.name + ' ' + (s.values.length ? format(s.values.at(-1)) : 'unknown')).join(', '),
    onpointermove: (event) => {
      if (times.length < 2) return;
      const box = event.currentTarget.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * width;
      const i = Math.min(times.length - 1, Math.max(0, Math.round(((at - left) / (width - left)) * (times.length - 1))));
      event.currentTarget.parentNode.querySelector('.key').replaceWith(key(i));
      event.currentTarget.querySelector('.cursor')?.remove();
      event.currentTarget.append(h('g', { class: 'cursor' }, h('line', { x1: x(i), x2: x(i), y1: top, y2: height - bottom }),
        series.map((s, n) => h('circle', { class: 'd' + n, cx: x(i), cy: y(s.values[i]), r: 3 }))));
    },
    onpointerleave: (event) => {
      event.currentTarget.querySelector('.cursor')?.remove();
      event.currentTarget.parentNode.querySelector('.key').replaceWith(key(-1));
    },
  }, parts);
  return h('section', { class: 'card chart' }, h('h2', null, title), svg, legend);
}
function niceMax(v) {
  if (v <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 5, 10].find((m) => m * unit >= v) * unit;
}
function spark(values, name) {
  if (values.length < 2) return h('span', { class: 'muted' }, '–');
  const max = Math.max(1, ...values);
  const d = values.map((v, i) => (i ? 'L' : 'M') + ((i * 90) / (values.length - 1) + 1).toFixed(1) + ' ' + (22 - (20 * v) / max).toFixed(1)).join('');
  return h('svg', { class: 'spark', viewBox: '0 0 92 24', role: 'img', 'aria-label': `${name}: now ${short(values.at(-1))}, most ${short(max)}` }, h('path', { d }));
}

// ---- dialogs ----

const dialog = document.getElementById('dialog');
let opener = null; // has the focus when the dialog is closed

function openDialog(...content) {
  if (!dialog.open && document.activeElement !== document.body) opener = document.activeElement;
  dialog.replaceChildren(...content);
  if (!dialog.open) dialog.showModal();
}
dialog.addEventListener('close', () => opener?.focus({ preventScroll: true }));

function toast(text, bad) {
  const el = h('div', { class: bad ? 'toast bad' : 'toast' }, text);
  const all = document.getElementById('toasts');
  all.append(el);
  while (all.children.length > 3) all.firstChild.remove(); // the newest, or they cover the page
  setTimeout(() => el.remove(), bad ? 12000 : 6000);
}

// ask shows a form for one action. While it is filled in, a dry run says what the
// action would touch and which command does the same; nothing happens before the
// button. fields: [{ name, label, type, value, options, hint, optional }]. changed is
// told of each input, with all of them by name.
function ask({ title, text, fields = [], path, query, body = (v) => v, label, danger, dry = true, done, changed }) {
  const inputs = {};
  const preview = h('div', { class: 'preview small', role: 'status', 'aria-live': 'polite' });
  const submit = h('button', { type: 'submit', class: danger ? 'primary danger' : 'primary' }, label);
  const values = () => {
    const v = {};
    for (const f of fields) {
      const el = inputs[f.name];
      if (f.type === 'file') continue; // changed takes it in
      if (f.type === 'checkbox') { v[f.name] = el.checked; continue; }
      if (el.value === '' && f.optional) continue;
      if (f.type === 'number' && (el.value === '' || !Number.isSafeInteger(Number(el.value)))) throw new Error(f.label + ' is not a whole number');
      v[f.name] = f.type === 'number' ? Number(el.value) : el.value;
    }
    return v;
  };
  let turn = 0;
  const look = async () => {
    if (!dry) return;
    const mine = ++turn;
    let lines;
    const missing = fields.find((f) => !f.optional && !['area', 'checkbox', 'file'].includes(f.type) && inputs[f.name].value === '');
    if (missing) {
      submit.disabled = true;
      preview.replaceChildren(h('span', { class: 'muted' }, `Still to fill in: ${missing.label}.`));
      return;
    }
    try {
      const reply = await post(path, typeof query === 'function' ? query(values()) : query, { ...body(values()), dry_run: true });
      lines = [h('span', null, reply.affected === 1 ? 'Affects 1.' : `Affects ${count(reply.affected)}.`), reply.command ? ' The same by command:' : '', reply.command ? h('pre', null, reply.command) : ''];
      submit.disabled = false;
    } catch (err) {
      lines = [h('span', { class: 's-dead' }, err.message)];
      submit.disabled = true;
    }
    if (mine === turn) preview.replaceChildren(...lines);
  };
  let timer;
  const form = h('form', {
    method: 'dialog',
    oninput: (event) => { changed?.(inputs, event.target); clearTimeout(timer); timer = setTimeout(look, 250); },
    onsubmit: async (event) => {
      event.preventDefault();
      submit.disabled = true;
      try {
        const v = values();
        const reply = await post(path, typeof query === 'function' ? query(v) : query, body(v));
        dialog.close();
        const refused = reply.refused?.length ? `, ${reply.refused.length} refused: ${reply.refused[0].message}` : '';
        if (done) done(reply); else toast(`${title}: ${count(reply.affected ?? 1)} done${refused}`, refused !== '');
        refresh();
      } catch (err) {
        preview.replaceChildren(h('span', { class: 's-dead' }, err.message));
        submit.disabled = false;
      }
    },
  },
  h('h2', { id: 'dialog-title' }, title), text && h('p', null, text),
  h('div', { class: 'fields' }, fields.map((f) => {
    const id = 'field-' + f.name;
    const common = { id, 'aria-describedby': f.hint ? id + '-hint' : null };
    const el = f.type === 'select' ? h('select', common, f.options.map((o) => h('option', { value: o, selected: o === f.value }, o)))
      : f.type === 'area' ? h('textarea', { ...common, rows: fields.length > 3 ? 4 : 9, spellcheck: 'false' }, f.value ?? '')
        : f.type === 'checkbox' ? h('input', { ...common, type: 'checkbox', checked: !!f.value })
          : f.type === 'file' ? h('input', { ...common, type: 'file' })
            : h('input', { ...common, type: f.type === 'number' ? 'number' : 'text', step: '1', value: f.value ?? '', required: !f.optional, autocomplete: 'off', spellcheck: 'false' });
    inputs[f.name] = el;
    return h('label', { class: 'field' + (f.half ? ' half' : ''), for: id }, h('span', null, f.label), el, f.hint && h('span', { id: id + '-hint', class: 'muted small' }, f.hint));
  })),
  preview,
  h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), submit));
  openDialog(form);
  look();
}

// reveal shows a secret that is shown only once, until it is put away.
function reveal(title, text, secret) {
  openDialog(h('h2', { id: 'dialog-title' }, title), h('p', null, text), h('pre', { tabindex: '0', 'aria-label': 'Secret' }, secret),
    h('div', { class: 'actions' }, copyButton(secret, 'Copy', ''), h('button', { type: 'button', class: 'primary', onclick: () => dialog.close() }, 'Done')));
}

const copyButton = (text, label = 'Copy', cls = 'link') => button(label, () => (navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject(new Error('no clipboard')))
  .then(() => toast('Copied.'), () => toast('The browser refuses to copy.', true)), cls);

// ---- pages ----

const pages = {};
const page = { name: '', args: [], query: new URLSearchParams(), state: {} };

// table may be wider than the screen. One with nothing in it that takes the focus
// is given a label, and takes it itself, so that the arrow keys can move it.
const table = (heads, rows, empty, label) => h('div', { class: 'scroll', ...(label && { tabindex: '0', role: 'region', 'aria-label': label }) }, h('table', null,
  h('thead', null, h('tr', null, heads.map((head) => (typeof head === 'string' ? h('th', { scope: 'col' }, head) : head)))),
  h('tbody', null, rows.length ? rows : h('tr', null, h('td', { class: 'empty', colspan: heads.length }, empty)))));
const num = (text, cls = '') => h('th', { scope: 'col', class: 'num ' + cls }, text);
const stat = (name, value, cls = '', href = null, title = null) => h(href ? 'a' : 'div', { class: 'card stat ' + cls, href, title }, h('b', null, value), h('span', { class: 'muted small' }, name));
const tally = (name, n, cls, href) => stat(name, short(n), cls, href, n >= 1e4 ? count(n) : null);
const facts = (pairs) => h('dl', { class: 'facts' }, pairs.filter(Boolean).map(([k, v]) => [h('dt', null, k), h('dd', null, v)]));
const button = (text, onclick, cls = '') => h('button', { type: 'button', class: cls, onclick }, text);
const queueLink = (q) => h('a', { href: '#/queue/' + q.ref }, q.display);
const poolTag = (pool) => pool !== 'default' && h('span', { class: 'tag', title: 'RESP commands need a user of this pool' }, 'pool ' + pool);

pages.overview = async () => {
  const o = await get('overview');
  const times = o.history.map((s) => s.at);
  const line = (name, field) => ({ name, values: o.history.map((s) => s[field]) });
  const l = o.log;
  return [
    h('h1', null, 'Overview'),
    verdict(o),
    h('div', { class: 'grid' },
      tally('ready', o.jobs.ready, 'ready', '#/queues?sort=ready'), tally('delayed', o.jobs.delayed, 'delayed', '#/queues?sort=delayed'),
      tally('leased', o.jobs.leased, 'leased', '#/leases'), tally('dead', o.jobs.dead, o.jobs.dead ? 'dead' : '', '#/dead'),
      stat('oldest ready', o.oldest_ready_ms ? span(o.oldest_ready_ms) : '–', '', '#/queues?sort=age'),
      tally('queues' + (o.paused ? `, ${count(o.paused)} paused` : ''), o.queues, '', '#/queues'),
      tally('fetchers waiting', o.waiting, '', '#/leases'), o.connections < 0 ? stat('connections', '–') : tally('connections', o.connections, '', '#/connections')),
    h('div', { class: 'wide' },
      chart('Jobs a second', times, [line('enqueued', 'enqueued'), line('acknowledged', 'acked'), line('delivered', 'delivered'), line('failed', 'failed')], short),
      chart('Jobs by state', times, [line('ready', 'ready'), line('leased', 'leased'), line('delayed', 'delayed'), line('dead', 'dead')], short),
      chart('Wait for a worker, ms', times, [line('p50', 'wait_p50_ms'), line('p95', 'wait_p95_ms'), line('p99', 'wait_p99_ms')], short),
      chart('Run by a worker, ms', times, [line('p50', 'run_p50_ms'), line('p95', 'run_p95_ms'), line('p99', 'run_p99_ms')], short),
      h('section', { class: 'card' }, h('h2', null, 'Latency, last minute'), latencies([
        ['ready to delivered', o.wait], ['delivered to acknowledged', o.run], ['write and sync of a group', o.sync]]),
      h('p', { class: 'muted small' }, 'Estimated from buckets that double. The same by command: ', h('code', null, 'INFO'), ', ', h('code', null, 'pawl top'))),
      h('section', { class: 'card' }, h('h2', null, 'Disk and log'), facts([
        ['durable up to', 'group ' + count(l.durable_lsn) + (l.oldest_unsynced_ms ? `, oldest change waits ${span(l.oldest_unsynced_ms)}` : '')],
        ['log', `${bytes(l.bytes)} in ${count(l.generations)} generations, ${l.bytes ? Math.round((100 * l.live_bytes) / l.bytes) : 100} % needed`],
        ['free', [bytes(l.disk_free), l.full && h('span', { class: 'tag bad' }, 'full: new jobs are refused')]],
        ['snapshot', [when(l.snapshot_at), l.snapshot_ms ? `, took ${span(l.snapshot_ms)}` : '', l.snapshotting && ', one is under way', l.snapshot_failures > 0 && h('span', { class: 'tag bad' }, `${count(l.snapshot_failures)} failed`)]],
        ['index', bytes(l.memory_bytes) + ' of memory'],
        l.damaged_bodies > 0 && ['damaged', h('span', { class: 'tag bad' }, `${count(l.damaged_bodies)} payloads were rotten`)],
        ['running', `${span(o.uptime_ms)}, version ${o.version || 'unknown'}; the start took ${span(l.recovered_ms)}`],
      ]),
      h('div', { class: 'row actions' },
        button('Snapshot now', () => ask({ title: 'Write a snapshot', path: 'snapshot', label: 'Write it' })),
        o.draining
          ? button('Take new jobs again', () => ask({ title: 'End the drain', path: 'drain', body: () => ({ on: false }), label: 'Take new jobs' }))
          : button('Drain', () => ask({ title: 'Drain', text: 'New jobs are refused until this is ended; those that are here go on.', path: 'drain', body: () => ({ on: true }), label: 'Refuse new jobs', danger: true }), 'danger')))),
    h('p', { class: 'muted small' }, `Since the start: ${count(o.totals.enqueued)} enqueued, ${count(o.totals.delivered)} delivered, ${count(o.totals.acked)} acknowledged, ${count(o.totals.nacked)} failed, ${count(o.totals.expired)} leases ran out, ${count(o.totals.dead)} died, ${count(o.totals.refused)} commands refused.`),
  ];
};

// verdict says at a glance whether all is well, or what is not.
function verdict(o) {
  const l = o.log, bad = [], warn = [];
  if (l.full) bad.push('the disk is full, new jobs are refused');
  if (l.damaged_bodies) bad.push(`${count(l.damaged_bodies)} payloads were rotten on disk`);
  if (l.oldest_unsynced_ms > 1000) bad.push(`the disk is slow: a change waits for ${span(l.oldest_unsynced_ms)}`);
  if (l.snapshot_failures) warn.push(`${count(l.snapshot_failures)} snapshots failed`);
  if (o.draining) warn.push('draining: new jobs are refused');
  if (o.paused) warn.push(o.paused === 1 ? 'a queue is paused' : `${count(o.paused)} queues are paused`);
  if (o.oldest_ready_ms > 10_000 && !o.waiting && !o.jobs.leased) warn.push('jobs are ready and no worker takes any');
  if (o.jobs.dead) warn.push([h('a', { href: '#/dead' }, o.jobs.dead === 1 ? 'a job is dead' : `${count(o.jobs.dead)} jobs are dead`)]);
  const list = [...bad, ...warn];
  return h('p', { class: 'verdict ' + (bad.length ? 'bad' : warn.length ? 'warn' : 'ok') },
    h('b', null, bad.length ? 'Needs help' : warn.length ? 'Serving, look at this' : 'All is well'),
    h('span', null, list.length ? list.map((what, i) => [i ? ' · ' : '', what]) : 'jobs are served, the disk keeps up, nothing is dead'),
    h('span', { class: 'muted small up' }, `up ${span(o.uptime_ms)}, ${o.version || 'unknown version'}`));
}

const latencies = (rows) => h('table', { class: 'plain' },
  h('thead', null, h('tr', null, h('th', { scope: 'col' }, h('span', { class: 'hidden' }, 'What')), num('p50'), num('p95'), num('p99'), num('count', 'opt'))),
  h('tbody', null, rows.map(([what, l]) => h('tr', null, h('th', { scope: 'row' }, what),
    ['p50_ms', 'p95_ms', 'p99_ms'].map((p) => h('td', { class: 'num' }, l.count ? span(l[p]) : '–')), h('td', { class: 'num opt' }, short(l.count))))));

// go changes the query of the present page.
function go(change) {
  const query = new URLSearchParams(page.query);
  for (const [k, v] of Object.entries(change)) v === '' || v == null ? query.delete(k) : query.set(k, v);
  const text = query.toString();
  location.hash = '#/' + [page.name, ...page.args].join('/') + (text ? '?' + text : '');
}

const searchFor = (what, hint, value) => h('label', null, h('span', { class: 'hidden' }, 'Search ' + what),
  h('input', { type: 'search', placeholder: hint, value: value || '', onchange: (e) => go({ match: e.target.value, from: '' }) }));
const poolPick = (pools, current) => pools.length > 1 && h('label', null, h('span', { class: 'hidden' }, 'Pool'),
  h('select', { onchange: (e) => go({ pool: e.target.value, from: '' }) }, h('option', { value: '', selected: !current }, 'all pools'), pools.map((p) => h('option', { value: p, selected: p === current }, p))));

// pager goes through a list; param says in the page's query where it is.
function pager(from, size, total, param = 'from') {
  if (total <= size && !from) return null;
  return h('div', { class: 'row' },
    h('button', { type: 'button', disabled: from === 0, onclick: () => go({ [param]: Math.max(0, from - size) || '' }) }, 'Previous'),
    h('span', { class: 'muted' }, `${count(from + 1)} to ${count(Math.min(from + size, total))} of ${count(total)}`),
    h('button', { type: 'button', disabled: from + size >= total, onclick: () => go({ [param]: from + size }) }, 'Next'));
}

function sortable(name, key, current) {
  return h('th', { scope: 'col', class: 'num' + (key === 'delayed' ? ' opt' : ''), 'aria-sort': current === key ? 'descending' : null }, button(name, () => go({ sort: current === key ? '' : key, from: '' })));
}

pages.queues = async () => {
  const q = page.query, from = Number(q.get('from')) || 0, sort = q.get('sort') || '';
  const list = await get('queues', { pool: q.get('pool'), match: q.get('match'), sort, from, count: 50 });
  return [
    h('div', { class: 'row' }, h('h1', { class: 'grow' }, 'Queues'),
      poolPick(list.pools, q.get('pool')),
      searchFor('queues', 'Search, or a glob', q.get('match')),
      button('New job', () => newJob('default/default/'), 'primary')),
    table(['Queue', sortable('Ready', 'ready', sort), sortable('Leased', 'leased', sort), sortable('Delayed', 'delayed', sort), sortable('Dead', 'dead', sort), sortable('Oldest', 'age', sort), h('th', { scope: 'col', class: 'opt' }, 'Ready, 5 min'), h('th', { scope: 'col', class: 'opt' }, 'Deliveries, 5 min'), h('th', { scope: 'col', class: 'opt' }, h('span', { class: 'hidden' }, 'Actions'))],
      list.queues.map((v) => h('tr', { 'data-key': v.ref },
        h('td', { class: 'name' }, queueLink(v), ' ', poolTag(v.pool), ' ', v.paused && h('span', { class: 'tag warn' }, 'paused')),
        h('td', { class: 'num' }, count(v.ready)), h('td', { class: 'num' }, count(v.leased)), h('td', { class: 'num opt' }, count(v.delayed)),
        h('td', { class: 'num' + (v.dead ? ' s-dead' : '') }, v.dead ? h('a', { class: 's-dead', href: `#/queue/${v.ref}/dead` }, count(v.dead)) : '0'),
        h('td', { class: 'num nowrap' }, v.oldest_ready_ms ? span(v.oldest_ready_ms) : '–'),
        h('td', { class: 'opt' }, spark(v.ready_history, 'ready jobs')), h('td', { class: 'opt' }, spark(v.rate_history, 'deliveries a second')),
        h('td', { class: 'acts opt' }, v.paused ? button('Resume', () => resume(v)) : button('Pause', () => pause(v))))),
      q.get('match') ? 'No queue has such a name.' : 'No queues yet. A queue begins with its first job.'),
    pager(from, 50, list.total),
  ];
};

const name = (q) => q.display + (q.pool === 'default' ? '' : ` of pool ${q.pool}`);
const pause = (q) => ask({ title: `Pause ${name(q)}`, text: 'It goes on taking jobs and hands none out.', path: 'queue/pause', query: { queue: q.ref }, label: 'Pause', fields: [{ name: 'for_ms', label: 'For how many milliseconds; empty is until it is resumed', type: 'number', optional: true }] });
const resume = (q) => ask({ title: `Resume ${name(q)}`, path: 'queue/resume', query: { queue: q.ref }, label: 'Resume' });
const purge = (q, states) => ask({ title: `Purge ${name(q)}`, text: 'The jobs are removed for good.', path: 'queue/purge', query: { queue: q.ref }, label: 'Remove them', danger: true,
  fields: ['ready', 'delayed', 'leased', 'dead'].map((s) => ({ name: s, label: `${s} (${count(q[s])})`, type: 'checkbox', value: states.includes(s) })),
  body: (v) => { const states = Object.keys(v).filter((s) => v[s]); if (!states.length) throw new Error('Choose a state.'); return { states }; } });
const redrive = (q) => ask({ title: `Redrive ${name(q)}`, text: 'Dead jobs go back to ready, the oldest first.', path: 'queue/redrive', query: { queue: q.ref }, label: 'Move them',
  fields: [
    { name: 'count', label: 'How many; empty is all', type: 'number', optional: true },
    { name: 'to', label: 'To another queue, pool/namespace/name; empty is the same', optional: true },
    { name: 'tries', label: 'New number of tries; empty keeps it', type: 'number', optional: true },
    { name: 'ttl_ms', label: 'New time to live in ms; empty keeps it', type: 'number', optional: true },
  ] });
const settingNames = { tries: 'Tries (0 is no limit)', ttl_ms: 'Time to live, ms', backoff_ms: 'Backoff, ms', backoff_max_ms: 'Longest backoff, ms', max_len: 'Most jobs', max_bytes: 'Most payload bytes', max_leased: 'Most leased at a time', rate_count: 'Deliveries', rate_per_ms: 'per so many ms', dead_max: 'Dead jobs kept', dead_for_ms: 'Dead jobs kept for, ms' };
const settings = (q) => ask({ title: `Settings of ${name(q)}`, text: '0 takes a limit away.', path: 'queue/settings', query: { queue: q.ref }, label: 'Set',
  fields: Object.entries(settingNames).map(([n, label]) => ({ name: n, label, type: 'number', half: n !== 'max_leased', value: q.settings[n] })),
  body: (v) => {
    const changed = Object.fromEntries(Object.entries(v).filter(([k]) => v[k] !== q.settings[k]));
    if ('backoff_max_ms' in changed) changed.backoff_ms = v.backoff_ms;
    if ('backoff_ms' in changed) changed.backoff_max_ms = v.backoff_max_ms;
    if ('rate_per_ms' in changed) changed.rate_count = v.rate_count;
    if ('rate_count' in changed) changed.rate_per_ms = v.rate_per_ms;
    return changed;
  } });
// optionFields are the options of ENQUEUE, of a new job and of a recurring one.
const optionFields = (o = {}) => [
  ['delay_ms', 'Delay, ms'], ['ttl_ms', 'Time to live, ms'], ['priority', 'Priority, -128 to 127'], ['tries', 'Tries, 0 is no limit'],
  ['backoff_ms', 'First backoff, ms'], ['backoff_max_ms', 'Longest backoff, ms'],
].map(([name, label]) => ({ name, label, type: 'number', optional: true, half: true, value: o[name] || (o[name] === 0 && ['ttl_ms', 'tries', 'backoff_ms'].includes(name)) ? o[name] : '' })).concat([
  { name: 'unique', label: 'Unique key', optional: true, half: true, value: o.unique },
  { name: 'for_ms', label: 'unique for, ms', type: 'number', optional: true, half: true, value: o.for_ms || '' },
  { name: 'group', label: 'Group', optional: true, half: true, value: o.group },
  { name: 'attrs', label: 'Attributes, name=value, comma between', optional: true, half: true, value: (o.attrs || []).map((a) => `${a.name}=${a.value}`).join(', ') },
]);
function withAttrs({ attrs, ...rest }) {
  if (!attrs) return rest;
  return { ...rest, attrs: attrs.split(',').filter((a) => a.trim()).map((a) => {
    const [, name, value] = /^\s*([^=]+?)\s*=(.*?)\s*$/s.exec(a) || [];
    if (!name) throw new Error(`Attribute ${a.trim()} is not of the form name=value.`);
    return { name, value };
  }) };
}
const newJob = (key) => ask({ title: 'New job', path: 'jobs', label: 'Enqueue',
  fields: [
    { name: 'queue', label: 'Queue, pool/namespace/name', value: key },
    { name: 'text', label: 'Payload', type: 'area', value: '' },
    ...optionFields(),
  ],
  query: (v) => ({ queue: encodeURIComponent(v.queue) }), body: ({ queue, ...rest }) => withAttrs(rest),
  done: (r) => toast(r.duplicate ? `Job ${r.id} with this key is there already.` : `Job ${r.id} is enqueued.`) });

const states = ['ready', 'leased', 'delayed', 'dead'];

pages.queue = async (ref, state = 'ready') => {
  if (!states.includes(state)) state = 'ready';
  const trail = page.state.trail ||= [''];
  const [q, jobs, reasons] = await Promise.all([
    get('queue', { queue: ref }),
    get('jobs', { queue: ref, state, count: pageSize, after: trail.at(-1), match: page.query.get('match') }).catch((err) => { if (trail.length > 1) { page.state.trail = ['']; return { jobs: [], next: '' }; } throw err; }),
    state === 'dead' ? get('dead', { queue: ref }) : null,
  ]);
  const chosen = page.state.chosen ||= new Set();
  for (const id of [...chosen]) if (!jobs.jobs.some((j) => j.id === id)) chosen.delete(id);
  const last = { ready: 'Waiting', leased: 'Lease ends', delayed: 'Due', dead: 'Died' }[state];
  const moment = (j) => when({ ready: j.enqueued_at, leased: j.deadline, delayed: j.due_at, dead: j.died_at }[state]);
  const s = q.settings, set = Object.entries(settingNames).filter(([n]) => s[n]);
  return [
    h('div', { class: 'row' }, h('h1', { class: 'grow' }, q.display, ' ', poolTag(q.pool), ' ', q.paused && h('span', { class: 'tag warn' }, 'paused', q.paused_until ? [', ends ', when(q.paused_until)] : '')),
      button('New job', () => newJob(keyOf(q.ref)), 'primary'),
      q.paused ? button('Resume', () => resume(q)) : button('Pause', () => pause(q)),
      button('Settings', () => settings(q)),
      button('Redrive', () => redrive(q)),
      button('Purge', () => purge(q, [state]), 'danger'),
      button('Delete', () => ask({ title: `Delete ${name(q)}`, text: `The queue, its ${count(q.ready + q.delayed + q.dead)} jobs and its settings are removed for good.`, path: 'queue/delete', query: { queue: ref }, label: 'Delete it', danger: true, done: () => { location.hash = '#/queues'; } }), 'danger')),
    h('div', { class: 'grid' },
      stat('oldest ready', q.oldest_ready_ms ? span(q.oldest_ready_ms) : '–'), stat('payload', bytes(q.bytes)),
      tally('fetchers waiting', q.waiting), stat('next due', q.next_due_ms ? span(q.next_due_ms) : '–'),
      stat('ready, 5 min', spark(q.ready_history, 'ready jobs')), stat('deliveries, 5 min', spark(q.rate_history, 'deliveries a second'))),
    h('details', { class: 'card' }, h('summary', null, 'Totals and settings'),
      facts([...Object.entries(q.totals).map(([k, v]) => [k, count(v)]), ...(set.length ? set.map(([n, label]) => [label, count(s[n])]) : [['settings', 'none']])])),
    h('p', null),
    h('nav', { class: 'tabs', 'aria-label': 'States' }, states.map((t) => h('a', { href: `#/queue/${ref}/${t}`, 'aria-current': t === state ? 'page' : null }, t, ' ', h('span', { class: 's-' + t }, count(q[t]))))),
    reasons && reasonTable(q, reasons),
    h('div', { class: 'row' },
      h('label', { class: 'grow' }, h('span', { class: 'hidden' }, `Search ${state} jobs`), h('input', { type: 'search', class: 'full', placeholder: `Search ${state} jobs: payload, ID, attribute, key, group, reason`, value: page.query.get('match') || '', onchange: (e) => { page.state.trail = ['']; go({ match: e.target.value }); } })),
      page.query.get('match') && h('span', { class: 'muted small' }, `${count(jobs.jobs.length)} of ${count(jobs.scanned || 0)} looked at${jobs.next ? '; there are more pages' : ''}`)),
    bulkBar(q, state, jobs.jobs, chosen),
    table([h('th', { scope: 'col' }, h('input', { type: 'checkbox', 'aria-label': 'Choose all on this page', checked: jobs.jobs.length > 0 && chosen.size === jobs.jobs.length, onchange: (e) => { jobs.jobs.forEach((j) => (e.target.checked ? chosen.add(j.id) : chosen.delete(j.id))); refresh(); } })),
      'Job', num('Priority', 'opt'), num('Attempt'), num('Failures'), 'Enqueued', last, num('Size', 'opt'), h('th', { scope: 'col', class: 'opt' }, state === 'leased' ? 'Lease' : 'Last failure')],
    jobs.jobs.map((j) => h('tr', { 'data-key': j.id },
      h('td', null, h('input', { type: 'checkbox', 'aria-label': 'Choose ' + j.id, checked: chosen.has(j.id), onchange: (e) => { e.target.checked ? chosen.add(j.id) : chosen.delete(j.id); refresh(); } })),
      h('td', { class: 'mono' }, h('a', { href: '#/job/' + j.id }, j.id), j.group && h('span', { class: 'tag' }, 'group ' + j.group)),
      h('td', { class: 'num opt' }, j.priority), h('td', { class: 'num' }, count(j.attempt)), h('td', { class: 'num' }, count(j.failures) + (j.tries ? ' of ' + count(j.tries) : '')),
      h('td', null, when(j.enqueued_at)), h('td', null, moment(j)), h('td', { class: 'num opt' }, bytes(j.bytes)),
      h('td', { class: 'name opt mono small' }, state === 'leased' ? j.lease : h('div', { class: 'clamp', title: j.reason }, j.reason || '–')))),
    page.query.get('match') ? `No ${state} job on this page matches.` : `No ${state} jobs.`),
    h('div', { class: 'row' },
      h('button', { type: 'button', disabled: trail.length < 2, onclick: () => { trail.pop(); refresh(); } }, 'Previous'),
      h('span', { class: 'muted' }, 'page ' + trail.length),
      h('button', { type: 'button', disabled: !jobs.next, onclick: () => { trail.push(jobs.next); refresh(); } }, 'Next')),
  ];
};

function reasonTable(q, r) {
  if (!r.reasons.length) return null;
  const rows = r.reasons.sort((a, b) => b.count - a.count).map((g) => h('tr', null,
    h('td', { class: 'name mono small' }, g.reason || 'no reason given'), h('td', { class: 'num' }, count(g.count)),
    h('td', { class: 'opt' }, when(g.oldest)), h('td', null, when(g.newest)), h('td', { class: 'opt mono small' }, h('a', { href: '#/job/' + g.sample }, g.sample)),
    h('td', { class: 'acts' }, button('Redrive these', () => bulk(q, 'dead', 'run', g.reason)), ' ', button('Delete these', () => bulk(q, 'dead', 'delete', g.reason), 'danger'))));
  return h('section', null, h('h2', null, 'By reason', !r.complete && h('span', { class: 'tag warn' }, `of the oldest ${count(r.scanned)}`)),
    table(['Reason of the last failure', num('Jobs'), h('th', { scope: 'col', class: 'opt' }, 'First died'), 'Last died', h('th', { scope: 'col', class: 'opt' }, 'One of them'), ''], rows, ''));
}

const actionWords = { run: 'Make ready now', delay: 'Delay', priority: 'Change the priority of', move: 'Move', delete: 'Delete' };
const actionFields = {
  run: [], delete: [],
  delay: [{ name: 'delay_ms', label: 'Due in how many milliseconds', type: 'number', value: 60000 }],
  priority: [{ name: 'priority', label: 'Priority, -128 to 127, larger first', type: 'number', value: 0 }],
  move: [{ name: 'to', label: 'To the queue, pool/namespace/name', value: 'default/default/' }],
};
const bulk = (q, state, action, reason) => ask({
  title: `${actionWords[action]} all ${state} jobs of ${name(q)}`, text: reason === undefined ? 'At most 10,000 at a time.' : 'Only those that failed with: ' + (reason || 'no reason given'),
  path: 'jobs/bulk', query: { queue: q.ref }, label: actionWords[action].split(' ')[0], danger: action === 'delete',
  fields: actionFields[action], body: (v) => ({ state, action, reason: reason ?? null, ...v }) });
const some = (ids, action, after) => ask({
  title: `${actionWords[action]} ${ids.length === 1 ? 'job ' + ids[0] : ids.length + ' jobs'}`, path: 'jobs/' + action, label: actionWords[action].split(' ')[0], danger: action === 'delete',
  fields: actionFields[action], body: (v) => ({ ids, ...v }), done: after });

function bulkBar(q, state, jobs, chosen) {
  const actions = state === 'leased' ? ['delete'] : ['run', 'delay', 'priority', 'move', 'delete'].filter((a) => a !== 'run' || state !== 'ready');
  // A search shows some of them, so "all" would be more than what is seen.
  const searching = Boolean(page.query.get('match'));
  const all = jobs.length > 0 && chosen.size === 0 && !searching;
  return h('div', { class: 'row' }, h('span', { class: 'muted' }, chosen.size ? `${chosen.size} chosen:` : all ? `All ${state}:` : searching && jobs.length ? 'Choose jobs to act on them.' : ''),
    (chosen.size || all) && actions.map((a) => button({ run: 'Run now', delay: 'Delay…', priority: 'Priority…', move: 'Move…', delete: 'Delete…' }[a],
      () => (chosen.size ? some([...chosen], a) : bulk(q, state, a)), a === 'delete' ? 'danger' : '')));
}

pages.job = async (id) => {
  const j = await get('job', { id }).catch((err) => { if (err.status === 404) return null; throw err; });
  const told = past(id, j ? [j.state, j.attempt, j.failures, j.priority, j.queue_ref, j.due_at].join() : 'gone');
  if (!j) {
    return [h('h1', { class: 'mono' }, id),
      h('p', { class: 'notice' }, told.done && !told.events.length ? 'There is no such job, and the log says nothing of one.' : 'There is no such job any more: it was finished or removed.'),
      timeline(told)];
  }
  const q = { ref: j.queue_ref, display: j.queue, pool: j.pool };
  const one = (action) => () => some([j.id], action, action === 'delete' ? () => { toast(`Job ${j.id} is deleted.`); location.hash = '#/queue/' + j.queue_ref + '/' + j.state; } : undefined);
  const raw = Uint8Array.from(atob(j.payload || ''), (c) => c.charCodeAt(0));
  const text = utf8(raw);
  return [
    h('div', { class: 'row' }, h('h1', { class: 'grow mono' }, j.id),
      j.state !== 'leased' && [
        j.state !== 'ready' && button('Run now', one('run'), 'primary'), button('Delay…', one('delay')), button('Priority…', one('priority')), button('Move…', one('move')),
        !j.damaged && button('Edit payload…', () => editPayload(j.id, raw, text)),
      ],
      button('Delete…', one('delete'), 'danger')),
    j.damaged && h('p', { class: 'notice bad' }, 'The payload is rotten on disk and is never handed out. pawl check says where.'),
    j.state === 'leased' && h('p', { class: 'notice' }, 'A worker has it. It can only be deleted, which ends the lease.'),
    h('div', { class: 'wide' },
      h('section', { class: 'card' }, h('h2', null, 'Job'), facts([
        ['state', h('b', { class: 's-' + j.state }, j.state)], ['queue', [queueLink(q), ' ', poolTag(j.pool)]],
        ['enqueued', when(j.enqueued_at)], ['priority', String(j.priority)], ['attempt', count(j.attempt)],
        ['failures', count(j.failures) + (j.tries ? ` of ${count(j.tries)}` : ', no limit')],
        j.backoff_ms > 0 && ['backoff', span(j.backoff_ms) + (j.backoff_max_ms ? ', at most ' + span(j.backoff_max_ms) : '')],
        j.due_at > 0 && ['due', when(j.due_at)], j.deadline > 0 && ['lease ends', when(j.deadline)], j.lease && ['lease', h('code', null, j.lease)],
        j.expires_at > 0 && ['expires', when(j.expires_at)], j.died_at > 0 && ['died', when(j.died_at)],
        j.reason && ['last failure', h('code', null, j.reason)], j.unique && ['unique key', h('code', null, j.unique)], j.group && ['group', h('code', null, j.group)],
        ...j.attrs.map((a) => [a.name || '(no name)', h('code', null, a.value)]),
      ]), h('p', { class: 'muted small' }, 'The same by command: ', h('code', null, 'JOB GET ' + j.id))),
      payload(raw, text)),
    timeline(told),
  ];
};

// past is what the log says of a job. Reading the log costs more than a look at
// the job, so it is read again only when the job has changed.
function past(id, mark) {
  const before = page.state.past;
  if (before?.mark === mark && !(before.error && Date.now() > before.again)) return before;
  const own = page.state.past = { mark, events: before?.events || [], complete: before?.complete ?? true, next: 0, done: before?.done };
  lookBack(own, id, 0);
  return own;
}

async function lookBack(own, id, from) {
  own.busy = true;
  try {
    const reply = await get('job/history', { id, from: from || '' });
    Object.assign(own, { events: from ? own.events.concat(reply.events) : reply.events, complete: from ? own.complete : reply.complete, next: reply.next, error: null });
  } catch (err) { own.error = err.message; }
  Object.assign(own, { busy: false, done: true, again: Date.now() + 10_000 });
  if (page.state.past === own) refresh();
}

const eventNames = {
  enqueue: 'enqueued', lease: 'delivered', extend: 'lease extended', ack: 'acknowledged', nack: 'failed', expire: 'lease ran out', release: 'given back untouched',
  due: 'delay over', lapse: 'time to live over', bury: 'buried', damage: 'buried, payload is damaged', redrive: 'redriven', run: 'made ready', delay: 'delayed',
  priority: 'priority changed', payload: 'payload replaced', move: 'moved', delete: 'deleted', purge: 'purged', deadmax: 'removed, too many dead', deadfor: 'removed, dead too long', gap: 'a damaged part of the log',
};

function timeline(told) {
  const rows = told.events.map((e) => h('tr', { 'data-key': e.lsn + '.' + e.index },
    h('td', { class: 'nowrap' }, exact(e.at)),
    h('td', { class: 'nowrap' }, h('span', { class: 'dot s-' + (e.state || 'gone'), 'aria-hidden': 'true' }, '●'), ' ', eventNames[e.what] || e.what),
    h('td', { class: 'opt s-' + e.state }, e.state || '–'), h('td', { class: 'num opt' }, e.attempt || '–'),
    h('td', { class: 'name' }, [
      e.reason && h('code', null, e.reason),
      e.queue && ['queue ', h('code', null, e.queue)],
      (e.what === 'priority' || e.what === 'enqueue' && e.priority) && `priority ${e.priority}`,
      e.until > 0 && [e.state === 'leased' ? 'until ' : 'due ', exact(e.until)],
      e.lease && ['lease ', h('code', null, e.lease)],
    ].filter(Boolean).map((part, i) => [i ? ', ' : '', part]))));
  return h('section', null, h('h2', null, 'History ', told.busy && h('span', { class: 'muted small' }, 'reading the log…')),
    told.error && h('p', { class: 'notice bad' }, told.error),
    told.done && !told.complete && told.events.length > 0 && h('p', { class: 'muted small' }, 'Its beginning is no longer in the log; --keep holds the log longer.'),
    table(['Time', 'What', h('th', { scope: 'col', class: 'opt' }, 'Then'), num('Attempt', 'opt'), 'Details'], rows, told.done ? 'The log says nothing of it any more.' : 'Reading the log…', 'History'),
    told.done && button('Look again', () => { told.mark = null; refresh(); }, 'link'),
    told.next > 0 && !told.busy && button('Read on', () => { lookBack(told, page.args[0], told.next); refresh(); }),
    h('p', { class: 'muted small' }, 'From the log. The same by command: ', h('code', null, 'JOB HISTORY ' + page.args[0]), ', ', h('code', null, 'pawl job history ' + page.args[0])));
}

// ---- bytes in a form that can be edited ----

const bytesAs = {
  text: (raw) => utf8(raw),
  hex: (raw) => [...raw].map((b, i) => (i ? (i % 32 ? ' ' : '\n') : '') + b.toString(16).padStart(2, '0')).join(''),
  base64: (raw) => { let s = ''; for (let i = 0; i < raw.length; i += 8192) s += String.fromCharCode(...raw.subarray(i, i + 8192)); return btoa(s).replace(/.{76}(?=.)/g, '$&\n'); },
};
const bytesFrom = {
  text: (text) => new TextEncoder().encode(text),
  hex: (text) => {
    const digits = text.replace(/\s+/g, '');
    const bad = /[^0-9a-fA-F]/.exec(digits);
    if (bad) throw new Error(`${bad[0]} is no hexadecimal digit.`);
    if (digits.length % 2) throw new Error('A byte is two hexadecimal digits, and one is missing.');
    return Uint8Array.from(digits.match(/../g) || [], (d) => parseInt(d, 16));
  },
  base64: (text) => {
    try { return Uint8Array.from(atob(text.replace(/\s+/g, '')), (c) => c.charCodeAt(0)); } catch { throw new Error('This is not base64.'); }
  },
};

// editPayload edits bytes as text, hex or base64, or takes them from a file.
function editPayload(id, raw, text) {
  let as = text === null ? 'hex' : 'text';
  ask({ title: 'Edit the payload', path: 'jobs/payload', label: 'Replace it',
    fields: [
      { name: 'as', label: 'Written as', type: 'select', options: ['text', 'hex', 'base64'], value: as, half: true },
      { name: 'file', label: 'Or take a file', type: 'file', optional: true, half: true },
      { name: 'text', label: 'Payload', type: 'area', value: bytesAs[as](raw) },
    ],
    changed: async (inputs, input) => {
      if (input === inputs.as) {
        try {
          const now = bytesFrom[as](inputs.text.value);
          const shown = bytesAs[input.value](now);
          if (shown === null) throw new Error('These bytes are no text.');
          inputs.text.value = shown;
          as = input.value;
        } catch (err) { input.value = as; toast(err.message, true); }
      } else if (input === inputs.file && input.files.length) {
        const fresh = new Uint8Array(await input.files[0].arrayBuffer());
        if (as === 'text' && utf8(fresh) === null) as = inputs.as.value = 'hex';
        inputs.text.value = bytesAs[as](fresh);
        inputs.text.dispatchEvent(new Event('input', { bubbles: true }));
      }
    },
    body: (v) => (v.as === 'text' ? { id, text: v.text } : { id, payload: bytesAs.base64(bytesFrom[v.as](v.text)).replaceAll('\n', '') }) });
}

function utf8(raw) {
  try { return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw); } catch { return null; }
}

const shownBytes = 64 << 10;

function payload(raw, text) {
  const json = text !== null && raw.length <= 1 << 20 ? indent(text) : null;
  const kinds = [text !== null && 'text', json !== null && 'JSON', 'hex'].filter(Boolean);
  const kind = kinds.includes(page.state.kind) ? page.state.kind : json !== null ? 'JSON' : kinds[0];
  let body = kind === 'hex' ? hex(raw.subarray(0, shownBytes)) : kind === 'JSON' ? json : text;
  const cut = kind === 'hex' ? raw.length > shownBytes : body.length > shownBytes;
  body = kind === 'hex' ? body : body.slice(0, shownBytes);
  return h('section', { class: 'card' }, h('h2', null, `Payload, ${bytes(raw.length)}`),
    h('div', { class: 'tabs' }, kinds.map((k) => h('button', { type: 'button', 'aria-pressed': String(k === kind), onclick: () => { page.state.kind = k; refresh(); } }, k)),
      button('Download', () => {
        const a = h('a', { download: page.args[0] + '.bin' });
        a.href = URL.createObjectURL(new Blob([raw]));
        a.click();
        URL.revokeObjectURL(a.href);
      })),
    raw.length ? h('pre', { class: kind === 'hex' ? 'hex' : '', tabindex: '0', 'aria-label': 'Payload as ' + kind }, body) : h('p', { class: 'muted' }, 'It is empty.'),
    cut && h('p', { class: 'muted small' }, `Only the first ${bytes(shownBytes)} are shown.`));
}

// indent lays out JSON without reading its numbers, which may be too long for
// JavaScript. It is null for anything that is no object or array.
function indent(text) {
  try { if (typeof JSON.parse(text) !== 'object') return null; } catch { return null; }
  let out = '', depth = 0, inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      out += c;
      if (c === '\\') out += text[++i];
      else if (c === '"') inString = false;
    } else if (c === '"') { out += c; inString = true;
    } else if (c === '{' || c === '[') {
      const rest = text.slice(i + 1).match(/^\s*[}\]]/);
      if (rest) { out += c + rest[0].trim(); i += rest[0].length; } else { out += c + '\n' + '  '.repeat(++depth); }
    } else if (c === '}' || c === ']') out += '\n' + '  '.repeat(--depth) + c;
    else if (c === ',') out += ',\n' + '  '.repeat(depth);
    else if (c === ':') out += ': ';
    else if (!/\s/.test(c)) out += c;
  }
  return out;
}

function hex(raw) {
  const lines = [];
  for (let at = 0; at < raw.length; at += 16) {
    const part = [...raw.subarray(at, at + 16)];
    lines.push(at.toString(16).padStart(8, '0') + '  ' + part.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47) + '  ' + part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '.')).join(''));
  }
  return lines.join('\n');
}

pages.dead = async () => {
  const list = await get('queues', { sort: 'dead', count: 50 });
  const dead = list.queues.filter((q) => q.dead);
  const groups = await Promise.all(dead.slice(0, 8).map((q) => get('dead', { queue: q.ref }).catch(() => null)));
  return [
    h('h1', null, 'Dead letters'),
    table(['Queue', num('Dead'), num('Died since it began', 'opt'), 'Most frequent reasons', ''], dead.map((q, i) => h('tr', { 'data-key': q.ref },
      h('td', { class: 'name' }, h('a', { href: `#/queue/${q.ref}/dead` }, q.display), ' ', poolTag(q.pool)),
      h('td', { class: 'num s-dead' }, count(q.dead)), h('td', { class: 'num opt' }, count(q.totals.dead)),
      h('td', { class: 'name small mono' }, (groups[i]?.reasons || []).sort((a, b) => b.count - a.count).slice(0, 3).map((g) => h('div', { class: 'clamp', title: g.reason }, `${count(g.count)} × ${g.reason || 'no reason given'}`))),
      h('td', { class: 'acts' }, button('Redrive', () => redrive(q)), ' ', button('Purge', () => purge(q, ['dead']), 'danger')))),
    'No dead jobs.'),
    h('p', { class: 'muted small' }, 'The same by command: ', h('code', null, 'QUEUE PEEK queue STATE dead'), ' and ', h('code', null, 'QUEUE REDRIVE queue')),
  ];
};

pages.leases = async () => {
  const [o, list] = await Promise.all([get('overview'), get('queues', { sort: 'leased', count: 50 })]);
  const busy = list.queues.filter((q) => q.leased || q.waiting);
  const jobs = await Promise.all(busy.filter((q) => q.leased).slice(0, 8).map((q) => get('jobs', { queue: q.ref, state: 'leased', count: 10 }).then((r) => r.jobs).catch(() => [])));
  const soonest = jobs.flat().sort((a, b) => a.deadline - b.deadline);
  return [
    h('h1', null, 'Workers and leases'),
    h('div', { class: 'grid' }, tally('leased', o.jobs.leased, 'leased'), tally('fetchers waiting', o.waiting), o.connections < 0 ? stat('connections', '–') : tally('connections', o.connections, '', '#/connections'), tally('leases that ran out', o.totals.expired)),
    table(['Queue', num('Leased'), num('Waiting'), num('Ran out'), h('th', { scope: 'col', class: 'opt' }, 'Deliveries, 5 min')], busy.map((q) => h('tr', { 'data-key': q.ref },
      h('td', { class: 'name' }, h('a', { href: `#/queue/${q.ref}/leased` }, q.display), ' ', poolTag(q.pool)), h('td', { class: 'num' }, count(q.leased)), h('td', { class: 'num' }, count(q.waiting)),
      h('td', { class: 'num' }, count(q.totals.expired)), h('td', { class: 'opt' }, spark(q.rate_history, 'deliveries a second')))), 'No worker has or waits for a job.'),
    h('h2', null, 'Leases of the busiest queues, the soonest to end first'),
    table(['Job', 'Queue', num('Attempt'), 'Lease ends', h('th', { scope: 'col', class: 'opt' }, 'Lease')], soonest.map((j) => h('tr', { 'data-key': j.id },
      h('td', { class: 'mono' }, h('a', { href: '#/job/' + j.id }, j.id)), h('td', { class: 'name' }, j.queue), h('td', { class: 'num' }, count(j.attempt)), h('td', null, when(j.deadline)), h('td', { class: 'opt mono small' }, j.lease))), 'No leases.'),
    h('p', { class: 'muted small' }, 'The same by command: ', h('code', null, 'QUEUE PEEK queue STATE leased'), '. Who waits and works: ', h('a', { href: '#/connections' }, 'connections'), '.'),
  ];
};

pages.connections = async () => {
  const q = page.query, from = Number(q.get('from')) || 0;
  const list = await get('clients', { match: q.get('match'), from, count: 50 });
  return [
    h('div', { class: 'row' }, h('h1', { class: 'grow' }, 'Connections'),
      searchFor('connections', 'Address, name, user, library', q.get('match'))),
    table([num('ID'), 'Address', 'Name', 'User', h('th', { scope: 'col' }, 'Doing'), num('Idle'), num('Age', 'opt'), num('Buffers', 'opt'), h('th', { scope: 'col', class: 'opt' }, 'Library'), ''], list.clients.map((c) => h('tr', { 'data-key': c.id },
      h('td', { class: 'num' }, String(c.id)), h('td', { class: 'mono small' }, c.addr, c.tls && h('span', { class: 'tag' }, 'TLS')), h('td', { class: 'name' }, c.name || '–'),
      h('td', { class: 'name' }, c.user || h('span', { class: 'muted' }, 'not logged in')),
      h('td', { class: 'mono small' }, c.command || '–', ' ', c.waiting && h('span', { class: 'tag' }, 'waits'), c.monitor && h('span', { class: 'tag warn' }, 'monitor')),
      h('td', { class: 'num' }, c.waiting ? '–' : span(c.idle_ms)), h('td', { class: 'num opt' }, span(c.age_ms)), h('td', { class: 'num opt' }, bytes(c.bytes)), h('td', { class: 'opt small' }, c.library || '–'),
      h('td', { class: 'acts' }, button('Close', () => ask({ title: 'Close connection ' + c.id, text: `${c.addr} is cut off. A job that it has stays leased until its deadline; most clients connect again.`, path: 'clients/kill', body: () => ({ id: c.id }), label: 'Close it', danger: true }), 'danger')))),
    q.get('match') ? 'No connection matches.' : 'Nobody is connected over RESP.'),
    pager(from, 50, list.total),
    h('p', { class: 'muted small' }, 'The same by command: ', h('code', null, 'CLIENT LIST'), '. HTTP clients come and go with each request and are not listed.'),
  ];
};

const cronForm = (c) => ask({ title: c ? 'Change ' + c.name : 'New cron', path: 'crons', label: 'Set',
  fields: [
    { name: 'name', label: 'Name', value: c?.name },
    { name: 'queue', label: 'Queue, pool/namespace/name', value: c ? keyOf(c.queue_ref) : 'default/default/' },
    { name: 'spec', label: 'When: minute hour day month weekday', value: c?.spec ?? '0 * * * *', half: true },
    { name: 'zone', label: 'Time zone, as Europe/Berlin; empty is UTC', value: c?.zone, optional: true, half: true },
    ...(c && cronText(c) === null ? [] : [{ name: 'text', label: 'Payload', type: 'area', value: c ? cronText(c) : '' }]),
    { name: 'catchup', label: 'Of slots missed while down, fire', type: 'select', options: ['one', 'none', 'all'], value: c?.catchup ?? 'one' },
    ...optionFields(c?.options),
  ],
  text: c && cronText(c) === null ? `The payload, ${bytes(atob(c.payload).length)}, is not text and stays as it is.` : c && 'Another name makes another cron. The next slot stays as long as the times do.',
  query: (v) => ({ queue: encodeURIComponent(v.queue) }),
  body: ({ queue, ...rest }) => withAttrs(c && cronText(c) === null ? { ...rest, payload: c.payload } : rest) });
const cronText = (c) => utf8(Uint8Array.from(atob(c.payload), (x) => x.charCodeAt(0)));

pages.crons = async () => {
  const q = page.query, from = Number(q.get('from')) || 0;
  const list = await get('crons', { pool: q.get('pool'), match: q.get('match'), from, count: 50 });
  return [
    h('div', { class: 'row' }, h('h1', { class: 'grow' }, 'Cron'), poolPick(list.pools, q.get('pool')), searchFor('crons', 'Name or queue', q.get('match')), button('New cron', () => cronForm(), 'primary')),
    table(['Name', 'When', 'Queue', 'Next', h('th', { scope: 'col', class: 'opt' }, 'Last'), h('th', { scope: 'col', class: 'opt' }, 'Missed'), ''], list.crons.map((c) => h('tr', { 'data-key': c.pool + '/' + c.namespace + '/' + c.name },
      h('td', { class: 'name' }, c.name, ' ', c.namespace !== 'default' && h('span', { class: 'tag' }, c.namespace), ' ', poolTag(c.pool)),
      h('td', null, h('code', null, c.spec), ' ', h('span', { class: 'muted small' }, c.zone || 'UTC')),
      h('td', { class: 'name' }, h('a', { href: '#/queue/' + c.queue_ref }, c.queue)), h('td', null, when(c.next_at)), h('td', { class: 'opt' }, when(c.last_at)), h('td', { class: 'opt' }, c.catchup),
      h('td', { class: 'acts' }, button('Change', () => cronForm(c)), ' ', button('Delete', () => ask({ title: 'Delete ' + c.name, path: 'crons/delete', body: () => ({ pool: c.pool, namespace: c.namespace, name: c.name }), label: 'Delete it', danger: true }), 'danger')))),
    q.get('match') ? 'No cron matches.' : 'No recurring jobs. A cron enqueues one job at each of its times.'),
    pager(from, 50, list.total),
    h('p', { class: 'muted small' }, 'The same by command: ', h('code', null, 'CRON LIST'), ', ', h('code', null, 'CRON SET name "0 3 * * *" queue payload')),
  ];
};

const shownToken = (t) => (t.pool === 'default' ? t.token : t.pool + ':' + t.token);

// successor makes a token like another one, with its limit. The old one goes on
// until it is deleted, so that clients can be told in between.
const successor = (t) => ask({ title: 'A successor for the token', text: 'Makes another token with the same description and limit. Tell the clients, then delete the old one: nothing fails in between.', path: 'tokens', label: 'Make it',
  body: () => ({ pool: t.pool, namespace: t.namespace, description: t.description }),
  done: async (r) => {
    try {
      if (t.limit) await post('limits', {}, { namespace: t.namespace, token: r.token, limit: t.limit });
      reveal('The new token', 'Clients send:', r.token);
    } catch (err) { toast('The token was made, but not its limit: ' + err.message, true); }
  } });

const classNames = { produce: 'enqueue jobs', work: 'fetch and finish jobs', operate: 'look into queues and change them', admin: 'the daemon: users, settings, backups' };

// userForm makes a user (u is null) or changes one.
const userForm = (u, pools) => ask({ title: u ? 'Change ' + u.name : 'New user', path: 'users', label: u ? 'Change' : 'Make it',
  text: u ? 'Holds at once, also for who is connected. The password stays.' : 'A random password is made and shown once.',
  fields: [
    !u && { name: 'name', label: 'Name' },
    { name: 'on', label: 'May log in', type: 'checkbox', value: u ? u.enabled : true },
    ...Object.entries(classNames).map(([c, what]) => ({ name: c, label: `${c}: ${what}`, type: 'checkbox', value: u ? u.classes.includes(c) : ['produce', 'work'].includes(c) })),
    { name: 'queues', label: 'Queues: globs over namespace/queue, blanks between; * is all', value: u ? u.queues.join(' ') : '*', optional: true },
    { name: 'pool', label: 'Pool', type: 'select', options: [...new Set([...pools, u?.pool || 'default'])], value: u?.pool || 'default' },
  ].filter(Boolean),
  body: (v) => ({ name: u ? u.name : v.name, generate: !u, rules: [v.on ? 'on' : 'off', '-@all', ...Object.keys(classNames).filter((c) => v[c]).map((c) => '+@' + c),
    'resetqueues', ...(v.queues || '').split(/\s+/).filter(Boolean).map((g) => '~' + g), 'pool=' + (v.pool === 'default' ? '' : v.pool)] }),
  done: (r) => (r.password ? reveal('Password of ' + r.user.name, 'It is kept as a hash and shown this once:', r.password) : toast(`User ${r.user.name} is changed.`)) });

function userRow(u, pools) {
  const actions = u.configured ? h('span', { class: 'muted small' }, 'changed by its file') : [
    button('Change…', () => userForm(u, pools)), ' ',
    button('Password…', () => ask({ title: 'A new password for ' + u.name, text: 'The old one stops at once; who is logged in stays so. The new one is shown once.', path: 'users', label: 'Make it', body: () => ({ name: u.name, rules: [], generate: true }), done: (r) => reveal('Password of ' + u.name, 'It is kept as a hash and shown this once:', r.password) })), ' ',
    u.name !== 'default' && button('Delete', () => ask({ title: 'Delete ' + u.name, text: u.connected ? `${count(u.connected)} connections are cut off.` : 'Nobody is logged in as this user.', path: 'users/delete', body: () => ({ name: u.name }), label: 'Delete it', danger: true }), 'danger')];
  return h('tr', { 'data-key': u.name },
    h('td', { class: 'name' }, u.name, ' ', !u.enabled && h('span', { class: 'tag' }, 'off'), u.configured && h('span', { class: 'tag' }, 'in the configuration'), u.enabled && u.nopass && h('span', { class: 'tag warn' }, 'no password')),
    h('td', { class: 'small' }, u.classes.length === 4 ? 'everything' : u.classes.join(', ') || 'nothing'),
    h('td', { class: 'mono small name' }, u.queues.map((g) => (g === '*' ? 'all' : g)).join(' ') || 'none', ' ', poolTag(u.pool)),
    h('td', { class: 'num opt' }, u.nopass ? '–' : count(u.passwords)),
    h('td', { class: 'num opt' }, u.connected ? h('a', { href: '#/connections?match=' + encodeURIComponent(u.name) }, count(u.connected)) : '0'),
    h('td', { class: 'acts' }, actions));
}

pages.access = async () => {
  const q = page.query, from = Number(q.get('from')) || 0, usersFrom = Number(q.get('users_from')) || 0;
  const [tokens, users] = await Promise.all([get('tokens', { pool: q.get('pool'), match: q.get('match'), from, count: 50 }), get('users', { from: usersFrom, count: 50 })]);
  return [
    h('h1', null, 'Access'),
    h('div', { class: 'row' }, h('h2', { class: 'grow' }, 'Users of the RESP port'), button('New user', () => userForm(null, tokens.pools), 'primary')),
    table(['Name', 'May', 'Queues', num('Passwords', 'opt'), num('Connected', 'opt'), ''], users.users.map((u) => userRow(u, tokens.pools)), 'This daemon serves no Redis clients.'),
    pager(usersFrom, 50, users.total, 'users_from'),
    h('p', { class: 'muted small' }, 'The same by command: ', h('code', null, 'ACL LIST'), '. Users of the configuration file are changed there and taken by SIGHUP.'),
    h('div', { class: 'row' }, h('h2', { class: 'grow' }, 'Tokens of the HTTP API'), poolPick(tokens.pools, q.get('pool')), searchFor('tokens', 'Namespace or description', q.get('match')), button('New token', () => ask({ title: 'New token', text: 'For one namespace of one pool, over HTTP.', path: 'tokens', label: 'Make it',
      fields: [{ name: 'pool', label: 'Pool', type: 'select', options: tokens.pools, value: 'default' }, { name: 'namespace', label: 'Namespace' }, { name: 'description', label: 'What it is for' }, { name: 'token', label: 'Of your own, 20 characters or more; empty makes one', optional: true }],
      done: (r) => reveal('The new token', 'Clients send:', r.token) }), 'primary')),
    table(['Namespace', 'Token', h('th', { scope: 'col', class: 'opt' }, 'What it is for'), 'Limit', ''], tokens.tokens.map((t) => h('tr', { 'data-key': t.pool + t.namespace + t.token },
      h('td', { class: 'name' }, t.namespace, ' ', poolTag(t.pool)), h('td', { class: 'mono small' }, t.token.slice(0, 6) + '…', ' ', copyButton(shownToken(t))),
      h('td', { class: 'name opt' }, t.description, ' ', t.fixed && h('span', { class: 'tag' }, 'in the configuration')),
      h('td', { class: 'small' }, t.limit ? `${t.limit.read > 0 ? count(t.limit.read) : 'any'} reads, ${t.limit.write > 0 ? count(t.limit.write) : 'any'} writes in ${count(t.limit.interval)} s` : 'none'),
      h('td', { class: 'acts' }, button('Limit…', () => ask({ title: 'Limit the token', text: '0 is no limit on that side.', path: 'limits', label: 'Set',
        fields: [{ name: 'read', label: 'Consumes in a window', type: 'number', value: t.limit?.read ?? 0 }, { name: 'write', label: 'Publishes in a window', type: 'number', value: t.limit?.write ?? 0 }, { name: 'interval', label: 'Window, seconds', type: 'number', value: t.limit?.interval ?? 1 }],
        body: (limit) => ({ namespace: t.namespace, token: shownToken(t), limit }) })), ' ',
      t.limit && [button('No limit', () => ask({ title: 'Take the limit away', path: 'limits/delete', body: () => ({ namespace: t.namespace, token: shownToken(t) }), label: 'Take it away' })), ' '],
      button('Rotate…', () => successor(t)), ' ',
      !t.fixed && button('Delete', () => ask({ title: 'Delete the token', text: 'Clients that use it are refused at once.', path: 'tokens/delete', body: () => ({ namespace: t.namespace, token: shownToken(t) }), label: 'Delete it', danger: true }), 'danger')))),
    q.get('match') || q.get('pool') ? 'No token matches.' : 'No tokens: nobody can use the HTTP API.'),
    pager(from, 50, tokens.total),
    h('p', { class: 'muted small' }, 'The same by command: ', h('code', null, 'pawl token list NAMESPACE')),
  ];
};

// ---- running ----

let turn = 0, timer = 0;

async function refresh() {
  clearTimeout(timer);
  const mine = ++turn;
  let content, failed = false;
  try {
    content = await pages[page.name](...page.args);
  } catch (err) {
    const away = err instanceof TypeError && /fetch|network/i.test(err.message);
    if (away && main.dataset.shows === location.hash) { // what was seen last is better than nothing; the bar above says so
      if (mine === turn) { main.classList.add('stale'); timer = setTimeout(tick, refreshMs); }
      return;
    }
    content = [h('div', { class: 'notice bad', role: 'alert' }, away ? 'The server does not answer.' : err.message, ' ', button('Try again', () => refresh()))];
    delete main.dataset.shows;
    failed = true;
  }
  if (mine !== turn) return;
  redraw(h('main', { id: 'main', tabindex: '-1', 'data-shows': failed ? null : location.hash }, content));
  main.removeAttribute('aria-busy');
  if (!performance.getEntriesByName('drawn').length) performance.mark('drawn');
  timer = setTimeout(tick, refreshMs);
}

function tick() {
  if (document.hidden) timer = setTimeout(tick, refreshMs);
  else refresh();
  health();
}

async function health() {
  const line = document.getElementById('health');
  let text = '';
  try {
    const r = await (await fetch('/readyz', { cache: 'no-store' })).json();
    text = r.reasons.map((x) => x.detail).join(' · ');
  } catch { text = 'The server does not answer. It is asked again every two seconds; what is shown is from before.'; }
  if (line.textContent !== text) line.textContent = text;
}

function route() {
  const [path, query] = (location.hash.slice(2) || 'overview').split('?');
  const [name, ...args] = path.split('/');
  const known = pages[name] ? name : 'overview';
  const same = known === page.name && args.join('/') === page.args.join('/');
  Object.assign(page, { name: known, args, query: new URLSearchParams(query || ''), state: same ? page.state : {} });
  for (const a of document.querySelectorAll('#nav a')) {
    const here = a.getAttribute('href') === '#/' + { queue: 'queues', job: 'queues' }[known] || a.getAttribute('href') === '#/' + known;
    here ? a.setAttribute('aria-current', 'page') : a.removeAttribute('aria-current');
    if (here && !same) a.scrollIntoView({ block: 'nearest', inline: 'center' });
  }
  document.title = (args[0] ? keyOf(args[0]).replace(/^default\/default\//, '') + ' – ' : known + ' – ') + 'Pawl';
  if (dialog.open) dialog.close();
  main.setAttribute('aria-busy', 'true');
  if (!same) { scrollTo(0, 0); opener = main; main.focus({ preventScroll: true }); }
  refresh();
}

document.getElementById('find').addEventListener('submit', (event) => {
  event.preventDefault();
  const id = document.getElementById('find-id').value.trim();
  if (id) location.hash = '#/job/' + encodeURIComponent(id);
});
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && !dialog.open && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    document.getElementById('find-id').focus();
  }
});
document.getElementById('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  try { localStorage.setItem('theme', root.dataset.theme); } catch { /* private windows */ }
});
try { const theme = localStorage.getItem('theme'); if (theme) document.documentElement.dataset.theme = theme; } catch { /* private windows */ }
addEventListener('hashchange', route);
document.addEventListener('visibilitychange', () => { if (!document.hidden) refresh(); });
route();
health();

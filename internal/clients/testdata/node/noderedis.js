'use strict';
// Arguments: the name of the module, port, TLS port, authority's certificate.
const name = process.argv[2];
const { createClient } = require(name);
const scenario = require('./scenario');

async function connect({ port, tls }) {
  const r = createClient({
    username: 'worker', password: 's3cret', name,
    socket: { host: '127.0.0.1', port, ...(tls ? { tls: true, ca: tls.ca } : {}) },
  });
  r.on('error', () => {}); // while the daemon is down
  await r.connect();
  return {
    call: (...words) => r.sendCommand(words),
    pipeline: (commands) => Promise.all(commands.map((c) => r.sendCommand(c))),
    async transaction(commands) {
      const m = r.multi();
      for (const c of commands) m.addCommand(c);
      return m.exec();
    },
    close: () => (r.destroy ? r.destroy() : r.disconnect()), // 4 has no destroy
  };
}

scenario(name, connect).then(() => console.log('done', require(name + '/package.json').version), (e) => { console.error(e); process.exit(1); });

'use strict';
const { createClient } = require('redis');
const scenario = require('./scenario');

async function connect({ port, tls }) {
  const r = createClient({
    username: 'worker', password: 's3cret', name: 'node-redis',
    socket: { host: '127.0.0.1', port, ...(tls ? { tls: true, ca: tls.ca } : {}) },
  });
  r.on('error', () => {}); // while the daemon is down
  await r.connect();
  return {
    call: (...words) => r.sendCommand(words),
    pipeline: (commands) => Promise.all(commands.map((c) => r.sendCommand(c))),
    close: () => r.destroy(),
  };
}

scenario('noderedis', connect).then(() => console.log('done', require('redis/package.json').version), (e) => { console.error(e); process.exit(1); });

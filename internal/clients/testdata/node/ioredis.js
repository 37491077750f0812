'use strict';
const Redis = require('ioredis');
const scenario = require('./scenario');

async function connect({ port, tls }) {
  const r = new Redis({
    host: '127.0.0.1', port, tls, username: 'worker', password: 's3cret',
    connectionName: 'ioredis', maxRetriesPerRequest: null,
  });
  r.on('error', () => {}); // while the daemon is down
  await new Promise((up) => r.once('ready', up)); // after its INFO was answered
  return {
    call: (...words) => r.call(...words),
    async pipeline(commands) {
      const p = r.pipeline();
      for (const c of commands) p.call(...c);
      return (await p.exec()).map(([err, reply]) => { if (err) throw err; return reply; });
    },
    close: () => r.disconnect(),
  };
}

scenario('ioredis', connect).then(() => console.log('done', require('ioredis/package.json').version), (e) => { console.error(e); process.exit(1); });

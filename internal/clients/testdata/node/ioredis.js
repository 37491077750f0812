'use strict';
// Arguments: the name of the module, port, TLS port, authority's certificate.
const name = process.argv[2];
const Redis = require(name);
const scenario = require('./scenario');

function replies(results) {
  return results.map(([err, reply]) => { if (err) throw err; return reply; });
}

async function connect({ port, tls }) {
  const r = new Redis({
    host: '127.0.0.1', port, tls, username: 'worker', password: 's3cret',
    connectionName: name, maxRetriesPerRequest: null,
  });
  r.on('error', () => {}); // while the daemon is down
  await new Promise((up) => r.once('ready', up)); // after its INFO was answered
  return {
    call: (...words) => r.call(...words),
    async pipeline(commands) {
      const p = r.pipeline();
      for (const c of commands) p.call(...c);
      return replies(await p.exec());
    },
    async transaction(commands) {
      const p = r.multi();
      for (const c of commands) p.call(...c);
      return replies(await p.exec());
    },
    close: () => r.disconnect(),
  };
}

scenario(name, connect).then(() => console.log('done', require(name + '/package.json').version), (e) => { console.error(e); process.exit(1); });

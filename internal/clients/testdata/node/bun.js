'use strict';
// The client that is built into Bun. Arguments: port, TLS port, authority's
// certificate.
const { RedisClient } = require('bun');
const scenario = require('./scenario');
const name = 'bun';

async function connect({ port, tls }) {
  const r = new RedisClient(`${tls ? 'rediss' : 'redis'}://worker:s3cret@127.0.0.1:${port}`, tls ? { tls: { ca: tls.ca } } : {});
  r.onconnect = () => r.send('CLIENT', ['SETNAME', name]); // also when it connects again
  await r.connect();
  const call = (...words) => r.send(words[0], words.slice(1));
  const pipeline = (commands) => Promise.all(commands.map((c) => call(...c)));
  return {
    call,
    pipeline,
    transaction: async (commands) => (await pipeline([['MULTI'], ...commands, ['EXEC']])).at(-1),
    close: () => r.close(),
  };
}

scenario(name, connect).then(() => {
  console.log('done', Bun.version);
  process.exit(0);
}, (e) => { console.error(e); process.exit(1); });

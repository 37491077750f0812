'use strict';
// Valkey GLIDE, a core in Rust that began as redis-rs. Arguments: port, TLS port,
// authority's certificate.
const { GlideClient, Batch, Logger } = require('@valkey/valkey-glide');
const scenario = require('./scenario');
const name = 'glide';

// Otherwise every refusal that the caller is told of is a warning too.
Logger.init('error');

// batch sends commands at once, as a transaction if it is one.
async function batch(r, atomic, commands) {
  const b = new Batch(atomic);
  for (const c of commands) b.customCommand(c);
  return (await r.exec(b, true)).map(flat);
}

// flat is a reply with an array of names and values where GLIDE has a list of
// pairs, which it makes of a map.
function flat(reply) {
  if (!Array.isArray(reply) || reply.length === 0 || reply[0] === null || typeof reply[0] !== 'object' || !('key' in reply[0])) return reply;
  return reply.flatMap(({ key, value }) => [key, value]);
}

async function connect({ port, tls }) {
  const r = await GlideClient.createClient({
    addresses: [{ host: '127.0.0.1', port }],
    credentials: { username: 'worker', password: 's3cret' },
    clientName: name,
    requestTimeout: 40000, // above WAIT
    useTLS: Boolean(tls),
    ...(tls ? { advancedConfiguration: { tlsAdvancedConfiguration: { rootCertificates: tls.ca } } } : {}),
  });
  return {
    call: async (...words) => flat(await r.customCommand(words)),
    pipeline: (commands) => batch(r, false, commands),
    transaction: (commands) => batch(r, true, commands),
    close: () => r.close(),
  };
}

scenario(name, connect).then(() => {
  console.log('done', require('./node_modules/@valkey/valkey-glide/package.json').version);
  process.exit(0);
}, (e) => { console.error(e); process.exit(1); });

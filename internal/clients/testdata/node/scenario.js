'use strict';
// What every client must be able to do. connect(tls) gives an object with
// call(...words), pipeline([[...words]]) and close().
const assert = require('node:assert');
const readline = require('node:readline');

const [port, tlsPort, authority] = process.argv.slice(2);

function pairs(reply) {
  const out = {};
  for (let i = 0; i < reply.length; i += 2) out[String(reply[i])] = reply[i + 1];
  return out;
}

async function scenario(name, connect) {
  const ca = require('node:fs').readFileSync(authority);
  const plain = () => connect({ port: Number(port) });
  const r = await plain();
  assert.equal(String(await r.call('PING')), 'PONG');
  assert.equal(String(await r.call('ACL', 'WHOAMI')), 'worker');

  const job = pairs(await r.call('ENQUEUE', name, 'hello'));
  assert.equal(String(job.task_id).length, 26);
  const got = pairs(await r.call('FETCH', name, '60000'));
  assert.equal(String(got.payload), 'hello');
  assert.equal(String(await r.call('ACK', String(got.lease_id))), 'OK');
  await assert.rejects(r.call('ACK', String(got.lease_id)), /lease does not exist/);

  const blocked = await plain();
  const waiting = blocked.call('FETCH', name, '60000', 'WAIT', '30000');
  for (;;) {
    const info = pairs(await r.call('QUEUE', 'INFO', name));
    if (Number(info.waiting) === 1) break;
  }
  await r.call('ENQUEUE', name, 'late');
  assert.equal(String(pairs(await waiting).payload), 'late');

  const many = [];
  for (let i = 0; i < 10000; i++) many.push(['ENQUEUE', name + '-many', String(i)]);
  assert.equal((await r.pipeline(many)).length, 10000);
  assert.equal(Number(pairs(await r.call('MOXY.STATS', name + '-many')).ready), 10000);

  const secure = await connect({ port: Number(tlsPort), tls: { ca } });
  assert.equal(String(await secure.call('PING')), 'PONG');
  await secure.close();
  await blocked.close();

  console.log('restart');
  const lines = readline.createInterface({ input: process.stdin });
  await new Promise((go) => lines.once('line', go));
  lines.close();
  let first;
  for (let i = 0; first === undefined && i < 200; i++) {
    try {
      first = pairs(await r.call('ENQUEUE', name + '-after', 'x', 'UNIQUE', 'k'));
    } catch (e) {
      await new Promise((go) => setTimeout(go, 50));
    }
  }
  const again = pairs(await r.call('ENQUEUE', name + '-after', 'x', 'UNIQUE', 'k'));
  assert.equal(String(again.task_id), String(first.task_id));
  assert.equal(Number(again.duplicate), 1);
  await r.close();
}

module.exports = scenario;

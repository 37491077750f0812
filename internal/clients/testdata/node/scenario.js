'use strict';
// What every client must be able to do. connect({port, tls}) gives an object
// with call(...words), pipeline([[...words]]), transaction([[...words]]) and
// close(). Each step is printed once it has passed.
const assert = require('node:assert');
const readline = require('node:readline');

const [port, tlsPort, authority] = process.argv.slice(-3);

// pairs is a reply of names and values as an object. With RESP3, QUEUE INFO is
// a map already.
function pairs(reply) {
  if (!Array.isArray(reply)) return reply;
  const out = {};
  for (let i = 0; i < reply.length; i += 2) out[String(reply[i])] = reply[i + 1];
  return out;
}

function passed(step) { console.log('step', step); }

// life takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits.
async function life(queue, r, waiter) {
  const job = pairs(await r.call('ENQUEUE', queue, 'hello'));
  assert.equal(String(job.task_id).length, 26);
  const got = pairs(await r.call('FETCH', queue, '60000'));
  assert.equal(String(got.payload), 'hello');
  assert.equal(String(await r.call('ACK', String(got.lease_id))), 'OK');
  await assert.rejects(r.call('ACK', String(got.lease_id)), /lease does not exist/);
  assert.equal(await r.call('FETCH', queue, '60000'), null);

  const waiting = waiter.call('FETCH', queue, '60000', 'WAIT', '30000');
  for (;;) {
    const info = pairs(await r.call('QUEUE', 'INFO', queue));
    if (Number(info.waiting) === 1) break;
  }
  await r.call('ENQUEUE', queue, 'late');
  const late = pairs(await waiting);
  assert.equal(String(late.payload), 'late');
  assert.equal(String(await r.call('ACK', String(late.lease_id))), 'OK');
}

async function scenario(name, connect) {
  const ca = require('node:fs').readFileSync(authority);
  const plain = () => connect({ port: Number(port) });
  const r = await plain();
  assert.equal(String(await r.call('PING')), 'PONG');
  assert.equal(String(await r.call('ACL', 'WHOAMI')), 'worker');
  assert.equal(String(await r.call('CLIENT', 'GETNAME')), name);
  passed('login');

  const waiter = await plain();
  await life(name, r, waiter);
  await waiter.close();
  passed('enqueue');
  passed('wait');
  passed('ack');

  const many = [];
  for (let i = 0; i < 10000; i++) many.push(['ENQUEUE', name + '-many', String(i)]);
  assert.equal((await r.pipeline(many)).length, 10000);
  assert.equal(Number(pairs(await r.call('MOXY.STATS', name + '-many')).ready), 10000);
  passed('pipeline');

  const both = await r.transaction([['ENQUEUE', name + '-tx', 'a'], ['ENQUEUE', name + '-tx', 'b']]);
  assert.equal(both.length, 2);
  passed('transaction');

  const secure = () => connect({ port: Number(tlsPort), tls: { ca } });
  const a = await secure();
  const b = await secure();
  await life(name, a, b);
  await a.close();
  await b.close();
  passed('tls');

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
  assert.equal(String(await r.call('CLIENT', 'GETNAME')), name);
  await r.close();
  passed('restart');
}

module.exports = scenario;

# redis-py's asyncio client, which aioredis became. Arguments: port, TLS port, file
# of the authority's certificate. Each step is printed once it has passed.
import asyncio
import sys

import redis.asyncio as redis
from redis import __version__

port, tls_port, authority = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
# A wait of 30 s needs a read time-out above it.
login = dict(host="127.0.0.1", username="worker", password="s3cret", client_name="aio", socket_timeout=40)


def passed(step):
    print("step", step, flush=True)


def pairs(reply):
    return dict(zip(reply[::2], reply[1::2]))


async def life(r, queue):
    """Takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits."""
    name, job = await r.execute_command("ENQUEUE", queue, b"\x00\r\n\xff")
    assert name == b"task_id" and len(job) == 26
    got = pairs(await r.execute_command("FETCH", queue, 60000))
    assert got[b"payload"] == b"\x00\r\n\xff" and got[b"task_id"] == job
    assert await r.execute_command("ACK", got[b"lease_id"]) == b"OK"
    try:
        await r.execute_command("ACK", got[b"lease_id"])
        raise SystemExit("a second ACK was taken")
    except redis.ResponseError as e:
        assert str(e) == "lease does not exist", e
    assert await r.execute_command("FETCH", queue, 60000) is None

    waiter = asyncio.create_task(r.execute_command("FETCH", queue, 60000, "WAIT", 30000))
    while pairs(await r.execute_command("QUEUE", "INFO", queue))[b"waiting"] == 0:
        pass
    await r.execute_command("ENQUEUE", queue, "late")
    late = pairs(await waiter)
    assert late[b"payload"] == b"late"
    assert await r.execute_command("ACK", late[b"lease_id"]) == b"OK"


async def main():
    r = redis.Redis(port=port, **login)
    assert await r.ping() is True
    assert await r.execute_command("ACL WHOAMI") in (b"worker", "worker")
    assert await r.client_getname() in (b"aio", "aio")
    assert int((await r.info())["redis_version"].split(".")[0]) >= 6
    passed("login")

    await life(r, "aio")
    for step in "enqueue", "wait", "ack":
        passed(step)

    p = r.pipeline(transaction=False)
    for i in range(10000):
        p.execute_command("ENQUEUE", "aio-many", i)
    assert len({job for _, job in await p.execute()}) == 10000
    passed("pipeline")

    p = r.pipeline(transaction=True)
    p.execute_command("ENQUEUE", "aio-tx", "a")
    p.execute_command("ENQUEUE", "aio-tx", "b")
    assert len(await p.execute()) == 2
    passed("transaction")

    secure = redis.Redis(port=tls_port, ssl=True, ssl_ca_certs=authority, **login)
    await life(secure, "aio-tls")
    await secure.close()
    passed("tls")

    print("restart", flush=True)
    sys.stdin.readline()
    # The connections are dead. A resend must not enqueue twice: that is what UNIQUE is for.
    for attempt in range(100):
        try:
            first = await r.execute_command("ENQUEUE", "aio-after", "x", "UNIQUE", "k")
            break
        except (redis.ConnectionError, redis.TimeoutError):
            continue
    again = await r.execute_command("ENQUEUE", "aio-after", "x", "UNIQUE", "k")
    assert again[1] == first[1] and again[3] == 1, (first, again)
    assert pairs(await r.execute_command("MOXY.STATS", "aio-many"))[b"ready"] == 10000
    await r.close()
    passed("restart")


asyncio.run(main())
print("done", __version__, flush=True)

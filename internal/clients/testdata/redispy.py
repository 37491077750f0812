# redis-py. Arguments: its parser of replies, PythonParser or HiredisParser, port,
# TLS port, file of the authority's certificate. Each step is printed once it has
# passed.
import sys
import threading

import redis

parser, port, tls_port, authority = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
# A wait of 30 s needs a read time-out above it.
login = dict(host="127.0.0.1", username="worker", password="s3cret", socket_timeout=40)


def client(**to):
    # Which parser it takes by itself depends on what is installed.
    return redis.Redis(connection_pool=redis.ConnectionPool(parser_class=getattr(redis.connection, parser), **login, **to))


def passed(step):
    print("step", step, flush=True)


def pairs(reply):
    # With RESP3, the default from redis-py 8 on, QUEUE INFO is a map already.
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


def life(r, queue):
    """Takes jobs from ENQUEUE to ACK, one of them by a FETCH that waits."""
    name, job = r.execute_command("ENQUEUE", queue, b"\x00\r\n\xff")
    assert name == b"task_id" and len(job) == 26
    got = pairs(r.execute_command("FETCH", queue, 60000))
    assert got[b"payload"] == b"\x00\r\n\xff" and got[b"task_id"] == job
    assert r.execute_command("ACK", got[b"lease_id"]) == b"OK"
    try:
        r.execute_command("ACK", got[b"lease_id"])
        raise SystemExit("a second ACK was taken")
    except redis.ResponseError as e:
        assert str(e) == "lease does not exist", e
    assert r.execute_command("FETCH", queue, 60000) is None

    waited = []
    waiter = threading.Thread(
        target=lambda: waited.append(pairs(r.execute_command("FETCH", queue, 60000, "WAIT", 30000))))
    waiter.start()
    while pairs(r.execute_command("QUEUE", "INFO", queue))[b"waiting"] == 0:
        pass
    r.execute_command("ENQUEUE", queue, "late")
    waiter.join()
    assert waited[0][b"payload"] == b"late"
    assert r.execute_command("ACK", waited[0][b"lease_id"]) == b"OK"


r = client(port=port, client_name="redispy")
assert r.ping() is True
assert r.execute_command("ACL WHOAMI") in (b"worker", "worker")
assert r.client_getname() in (b"redispy", "redispy")
assert int(r.info()["redis_version"].split(".")[0]) >= 6
assert any(c["name"] == "redispy" for c in r.client_list())
passed("login")

life(r, "py")
passed("enqueue")
passed("wait")
passed("ack")

p = r.pipeline(transaction=False)
for i in range(10000):
    p.execute_command("ENQUEUE", "py-many", i)
assert len({job for _, job in p.execute()}) == 10000
assert pairs(r.execute_command("MOXY.STATS", "py-many"))[b"ready"] == 10000
passed("pipeline")

p = r.pipeline(transaction=True)
p.execute_command("ENQUEUE", "py-tx", "a")
p.execute_command("ENQUEUE", "py-tx", "b")
assert len(p.execute()) == 2
passed("transaction")

life(client(port=tls_port, connection_class=redis.SSLConnection, ssl_ca_certs=authority), "py-tls")
passed("tls")

print("restart", flush=True)
sys.stdin.readline()
# The connection is dead. A resend must not enqueue twice: that is what UNIQUE is for.
for attempt in range(100):
    try:
        first = r.execute_command("ENQUEUE", "py-after", "x", "UNIQUE", "k")
        break
    except (redis.ConnectionError, redis.TimeoutError):
        continue
again = r.execute_command("ENQUEUE", "py-after", "x", "UNIQUE", "k")
assert again[1] == first[1] and again[3] == 1, (first, again)
assert pairs(r.execute_command("MOXY.STATS", "py-after"))[b"ready"] == 1
passed("restart")
print("done", redis.__version__, flush=True)

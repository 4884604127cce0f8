"""redis-py against a server: python peer.py PORT 2|3."""

import sys
import threading

import redis

port, protocol = int(sys.argv[1]), int(sys.argv[2])
r = redis.Redis(port=port, protocol=protocol, decode_responses=True, socket_timeout=10)


def check(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


def strings():
    check(r.set("s", "v", ex=100), True)
    check(r.set("s", "w", nx=True), None)
    check(r.get("s"), "v")
    assert 95 <= r.ttl("s") <= 100
    check(r.mset({"a": 1, "b": 2}), True)
    check(r.mget("a", "b", "none"), ["1", "2", None])
    check(r.incrby("a", 41), 42)
    check(r.incrbyfloat("f", 1.5), 1.5)
    check(r.setrange("s", 1, "xy"), 3)
    check(r.getrange("s", 0, -1), "vxy")
    check(r.setbit("bits", 7, 1), 0)
    check(r.bitcount("bits"), 1)
    check(r.getdel("s"), "vxy")
    check(r.delete("a", "b", "none"), 2)


def hashes():
    check(r.hset("h", mapping={"a": "1", "b": "2"}), 2)
    check(r.hgetall("h"), {"a": "1", "b": "2"})
    check(r.hmget("h", "a", "none"), ["1", None])
    check(r.hincrbyfloat("h", "a", 0.5), 1.5)
    check(dict(r.hscan_iter("h")), {"a": "1.5", "b": "2"})
    check(len(r.hrandfield("h", 2, withvalues=True)), 4 if protocol == 2 else 2)


def lists():
    check(r.rpush("l", 1, 2, 3), 3)
    check(r.lrange("l", 0, -1), ["1", "2", "3"])
    check(r.lmove("l", "m", "LEFT", "RIGHT"), "1")
    check(r.lpos("l", "3"), 1)
    check(r.blpop("l", 1), pair("l", "2"))
    check(r.blpop("empty", 0.05), None)
    other = redis.Redis(port=port, protocol=protocol)
    timer = threading.Timer(0.05, lambda: other.rpush("later", "x"))
    timer.start()
    check(r.blpop("later", 10), pair("later", "x"))
    timer.join()
    check(r.lmpop(2, "none", "l", direction="LEFT", count=5), ["l", ["3"]])


def pair(key, value):
    """RESP2 callers get a tuple, RESP3 callers the list as it came."""
    return (key, value) if protocol == 2 else [key, value]


def sets():
    check(r.sadd("s1", "a", "b", "c"), 3)
    check(r.sadd("s2", "b", "c", "d"), 3)
    check(r.sinter("s1", "s2"), {"b", "c"})
    check(r.sunionstore("s3", "s1", "s2"), 4)
    check(r.smismember("s1", ["a", "d"]), [1, 0])
    check(set(r.sscan_iter("s3")), {"a", "b", "c", "d"})


def sorted_sets():
    check(r.zadd("z", {"a": 1, "b": 2.5, "c": 3}), 3)
    check(r.zadd("z", {"a": 5}, gt=True, ch=True), 1)
    check(r.zscore("z", "b"), 2.5)
    check(r.zrank("z", "a"), 2)
    scored = r.zrange("z", 0, -1, withscores=True)
    check([tuple(entry) for entry in scored], [("b", 2.5), ("c", 3.0), ("a", 5.0)])
    check(r.zrangebyscore("z", "(2.5", "+inf"), ["c", "a"])
    popped = r.zpopmin("z")
    check(list(popped[0]) if isinstance(popped[0], (list, tuple)) else list(popped), ["b", 2.5])
    check(r.zunionstore("zu", {"z": 2}), 2)
    check(dict(r.zscan_iter("zu")), {"c": 6.0, "a": 10.0})


def pipelines_and_transactions():
    with r.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"p:{number}", number)
        check(pipe.execute(), [True] * 1000)
    with r.pipeline() as pipe:
        pipe.watch("p:1")
        value = int(pipe.get("p:1"))
        pipe.multi()
        pipe.set("p:1", value + 1)
        pipe.get("p:1")
        check(pipe.execute(), [True, "2"])
    with r.pipeline() as pipe:
        pipe.watch("p:1")
        r.set("p:1", "changed")
        pipe.multi()
        pipe.set("p:1", "lost")
        try:
            pipe.execute()
            raise AssertionError("EXEC succeeded although a watched key had changed")
        except redis.WatchError:
            pass
    check(r.transaction(lambda pipe: (pipe.multi(), pipe.incr("n")), "n"), [1])


def pubsub():
    p = r.pubsub()
    p.subscribe("news")
    p.psubscribe("n*")
    check(p.get_message(timeout=10)["type"], "subscribe")
    check(p.get_message(timeout=10)["type"], "psubscribe")
    check(r.publish("news", "hello"), 2)
    got = sorted(p.get_message(timeout=10)["type"] for _ in range(2))
    check(got, ["message", "pmessage"])
    check(r.pubsub_numsub("news")[0][1], 1)
    p.unsubscribe()
    p.punsubscribe()
    p.close()


def keys():
    check({key for key in r.scan_iter("p:*", count=50)}, {f"p:{n}" for n in range(1000)})
    check(r.type("h"), "hash")
    check(r.rename("h", "h2"), True)
    check(r.expire("h2", 100, nx=True), True)
    check(r.persist("h2"), True)
    check(r.copy("h2", "h3"), True)
    check(r.object("encoding", "n"), "int")
    check(r.exists("h2", "h3", "h"), 2)


def server():
    assert r.client_id() > 0
    check(r.client_setname("peer"), True)
    check(r.client_getname(), "peer")
    assert r.info("server")["redis_version"]
    check(r.config_get("maxmemory"), {"maxmemory": "0"})
    assert any(client["name"] == "peer" for client in r.client_list())
    assert r.command_count() > 100
    assert r.dbsize() > 1000
    check(r.execute_command("HELLO", protocol)["proto" if protocol == 3 else 4]
          if protocol == 3 else r.execute_command("HELLO", 2)[5], protocol)
    try:
        r.execute_command("NOSUCH")
        raise AssertionError("an unknown command was accepted")
    except redis.ResponseError as error:
        assert str(error).startswith("unknown command"), error


r.flushall()
for test in [strings, hashes, lists, sets, sorted_sets, pipelines_and_transactions, pubsub, keys, server]:
    try:
        test()
    except Exception as error:
        raise SystemExit(f"{test.__name__} (RESP{protocol}): {type(error).__name__}: {error}") from error
print("ok")

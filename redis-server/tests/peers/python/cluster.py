"""redis-py's cluster client, while slots move and primaries change, until there is a key `done`: python cluster.py PORT."""

import sys

from redis.cluster import RedisCluster

r = RedisCluster(host="127.0.0.1", port=int(sys.argv[1]), decode_responses=True, socket_timeout=10)


def check(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


names = [f"py:{number}" for number in range(100)]
values = {name: None for name in names}
turn = 0
while not r.exists("done"):
    turn += 1
    for name in names:
        check(r.get(name), values[name])
        values[name] = f"{name} {turn}"
        check(r.set(name, values[name]), True)
    check(r.mset({"{py}a": turn, "{py}b": -turn}), True)
    check(r.mget("{py}a", "{py}b"), [str(turn), str(-turn)])
    check(r.eval("return {redis.call('get', KEYS[1]), KEYS[2]}", 2, "{py}a", "{py}b"), [str(turn), "{py}b"])
    with r.pipeline() as pipeline:
        for name in names:
            pipeline.get(name)
        check(pipeline.execute(), list(values.values()))
for name in names:
    check(r.get(name), values[name])
print(f"ok, {turn} turns")

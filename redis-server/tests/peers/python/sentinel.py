"""redis-py behind a Sentinel, while primaries change, until there is a key `done`: python sentinel.py PORT."""

import sys
import time

from redis import RedisError
from redis.sentinel import Sentinel

sentinel = Sentinel([("127.0.0.1", int(sys.argv[1]))], socket_timeout=2)
r = sentinel.master_for("first", socket_timeout=2, decode_responses=True)
turn = kept = failed = 0
while True:
    try:
        if r.exists("done"):
            break
        value = int(r.get("py") or 0)
        assert kept <= value <= turn, f"a replica had {kept} of {turn}, and there is {value}"
        turn += 1
        with r.pipeline(transaction=False) as pipeline:
            pipeline.set("py", turn).execute_command("WAIT", 1, 1000)
            if pipeline.execute()[1] >= 1:
                kept = turn
    except RedisError:
        failed += 1
        time.sleep(0.05)
print(f"ok, {turn} turns, {failed} failed")

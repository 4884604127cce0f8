"""Celery with a Redis server as broker and as store of results: peer.py PORT. Prints what has come of it, and "ok"."""

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone

os.environ["REDIS_PORT"] = sys.argv[1]

from celery import chain, chord, group  # noqa: E402

from tasks import add, app, fail, reports, succeeds_third, total  # noqa: E402

WAIT = 60


def get(result):
    return result.get(timeout=WAIT)


def rounds():
    print("add", [get(result) for result in [add.delay(n, n) for n in range(50)]] == [2 * n for n in range(50)])
    print("group", get(group(add.s(n, 1) for n in range(20)).apply_async()))
    print("chain", get(chain(add.s(1, 2), add.s(10), add.s(100)).apply_async()))
    print("chord", get(chord((add.s(n, n) for n in range(10)), total.s()).apply_async()))
    print("chord of chords", get(chord((chord((add.s(n, n), add.s(1, 1)), total.s()) for n in range(3)), total.s())()))
    failed = fail.delay("as asked")
    print("fail", failed.get(timeout=WAIT, propagate=False), failed.status)
    print("retry", get(succeeds_third.delay()))
    print("custom state", get(reports.delay()))
    print("countdown", get(add.apply_async((3, 4), countdown=0.2)))
    eta = datetime.now(timezone.utc) + timedelta(seconds=0.2)
    print("eta", get(add.apply_async((5, 6), eta=eta)))
    print("priorities", [get(add.apply_async((n, 0), priority=n)) for n in (9, 0, 5, 3)])
    late = add.apply_async((1, 1), expires=-1)
    print("expired", late.get(timeout=WAIT, propagate=False).__class__.__name__, late.status)
    revoked = add.apply_async((1, 1), countdown=600)
    revoked.revoke()
    print("revoked", revoked.get(timeout=WAIT, propagate=False).__class__.__name__)
    result = add.delay(1, 1)
    get(result)
    result.forget()
    print("forgotten", app.AsyncResult(result.id).status)
    print("ping", [list(answer.values()) for answer in app.control.ping(timeout=2)])
    inspect = app.control.inspect(timeout=2)
    print("registered", sorted(next(iter(inspect.registered().values()))))
    print("purged", app.control.purge())


def main():
    command = [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool", "threads", "--concurrency", "4"]
    command += ["--loglevel", "ERROR", "--hostname", "peer@localhost"]
    worker = subprocess.Popen(command, stdout=sys.stderr)
    try:
        rounds()
    finally:
        worker.terminate()
        try:
            worker.wait(WAIT)
        except subprocess.TimeoutExpired:
            worker.kill()
    print("ok")


main()

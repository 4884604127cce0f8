"""Stands for the package of this name, which starts containers: the server runs already, at the port that SEARCH_SUITE_PORT names."""

import os

HOST = "127.0.0.1"


def port():
    return int(os.environ["SEARCH_SUITE_PORT"])

#!/bin/sh
# redisvl's own tests, of the version that requirements.txt names: its source distribution holds them. The packages serve the tests of
# langgraph-checkpoint-redis and of Redis OM, too.
set -e
python3 -m venv venv
venv/bin/pip install --quiet --requirement requirements.txt
venv/bin/pip download --quiet --no-deps --no-binary redisvl "$(grep '^redisvl==' requirements.txt)"
mkdir suite
tar xzf redisvl-*.tar.gz --strip-components 1 -C suite

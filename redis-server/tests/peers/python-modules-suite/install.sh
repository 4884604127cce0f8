#!/bin/sh
# redis-py's own tests, of the version that requirements.txt names: its source distribution holds them.
set -e
python3 -m venv venv
venv/bin/pip install --quiet --requirement requirements.txt
venv/bin/pip download --quiet --no-deps --no-binary redis "$(grep '^redis==' requirements.txt)"
mkdir suite
tar xzf redis-*.tar.gz --strip-components 1 -C suite

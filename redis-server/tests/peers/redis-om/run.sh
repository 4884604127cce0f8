#!/bin/sh
# run.sh: the tests that want a server. One line for each: its state, its file and its name.
NODE_OPTIONS="--require ../port.cjs" node_modules/.bin/vitest run --dir spec/functional --no-threads --reporter json --outputFile results.json >&2
exec node ../results.cjs

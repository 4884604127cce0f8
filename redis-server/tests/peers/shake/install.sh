#!/bin/sh
# RedisShake, from a git repository of it: the proxy of Go modules has no package of it.
set -e
git -C "$REDIS_SHAKE_REPOSITORY" archive HEAD | tar x
go build -o redis-shake ./cmd/redis-shake

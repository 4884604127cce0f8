#!/bin/sh
# checkout.sh REPOSITORY TAG FOLDER: tests that no package has.
set -e
rm -rf "$3"
mkdir "$3"
git -C "$1" archive "$2" | tar x -C "$3"
cd "$3"
# Redis OM makes its modules and tests for blocking calls from the others.
if [ -e make_sync.py ]; then
    PATH="../venv/bin:$PATH" ../venv/bin/python make_sync.py
fi

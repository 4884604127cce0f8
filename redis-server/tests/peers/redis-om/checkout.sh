#!/bin/sh
# checkout.sh REPOSITORY COMMIT FOLDER: tests that no package has, and what they call.
set -e
rm -rf "$3"
mkdir "$3"
git -C "$1" archive "$2" | tar x -C "$3"
cd "$3"
npm ci --silent --no-audit --no-fund

#!/bin/sh
# Redis' own tests of vector sets, from Debian's newest source package of Redis. apt has lists of its own here, so that the machine's
# configuration stays as it is.
set -e
python3 -m venv venv
venv/bin/pip install --quiet --requirement requirements.txt
archive=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/$' | head -n 1)
echo "deb-src ${archive:-http://deb.debian.org/debian/} sid main" > sources.list
mkdir -p lists/partial
apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$PWD/lists" "$@"
}
apt update
apt source --download-only redis
mkdir suite
tar xzf redis_*.orig.tar.gz --strip-components 3 -C suite --wildcards '*/modules/vector-sets/test.py' '*/modules/vector-sets/tests/*'
rm -r lists redis_*
# It adds 20,000 vectors one by one, which takes minutes without optimization.
rm suite/tests/large_scale.py

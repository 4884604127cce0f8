#!/bin/sh
# The newest Redis and Valkey that Debian has source packages of, built without TLS and with libc's allocator, so that a C compiler suffices. apt has
# lists of its own here, so that the machine's configuration stays as it is.
set -e
archive=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/$' | head -n 1)
echo "deb-src ${archive:-http://deb.debian.org/debian/} sid main" > sources.list
mkdir -p lists/partial
apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$PWD/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$PWD/lists" "$@"
}
apt update
for name in redis valkey; do
    apt source --download-only "$name"
    dpkg-source --no-check -x "$name"_*.dsc "$name"
    make --silent -C "$name" -j2 MALLOC=libc BUILD_TLS=no OPTIMIZATION=-O1 > "$name.log" 2>&1 || { tail "$name.log"; exit 1; }
    cp "$name/src/$name-server" .
    rm -r "$name" "$name"_*
done
rm -r lists

#!/bin/bash
# Installs the package gritstone-redis beside Debian's redis-server in a Debian of its own, boots that (systemd-nspawn), and looks at start, upgrade, reboot,
# crash and removal. Needs root, debootstrap, systemd-container, and the packages of `cargo xtask deploy --deb`.
#   bash deploy/debian/trial.sh target/deploy/deb
set -euo pipefail
packages=$(realpath "$1")
root=$(mktemp -d)
debian=$root/debian
expected() { [[ "$2" == *"$3"* ]] || { echo "$1: expected $3, got: $2"; exit 1; }; echo "ok: $1"; }
# The first process of the Debian that this script has booted: the machine's own systemd must never be taken for it.
leader() {
    local container
    container=$(pgrep --parent "${machine:-0}" systemd-nspawn) && pgrep --parent "$container" --exact systemd || true
}
inside() { nsenter --target "$(leader)" --all "$@"; }
state() { inside systemctl is-active gritstone-redis || true; }
ask() { inside bash -c "exec 3<>/dev/tcp/127.0.0.1/$1; printf '%s\r\n' '$2' >&3; timeout 1 cat <&3" || true; }
boot() {
    setsid timeout --signal KILL 300 systemd-nspawn --directory "$debian" --boot --register=no --keep-unit --private-network --console=pipe \
        </dev/null >"$root/boot.log" 2>&1 &
    machine=$!
    for _ in $(seq 120); do
        sleep 0.5
        [[ -z $(leader) || $(state 2>/dev/null) != active ]] || return 0
    done
    echo "the service does not start"; cat "$root/boot.log"; exit 1
}
halt() {
    inside systemctl poweroff >/dev/null 2>&1 || true
    for _ in $(seq 60); do [[ -n $(leader) ]] || return 0; sleep 0.5; done
    echo "the machine does not halt"; exit 1
}
trap '[[ -z $(leader) ]] || kill -KILL "$(leader)"; rm -rf "$root"' EXIT

debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,adduser,redis-server bookworm "$debian" >"$root/debootstrap.log"
cp "$packages"/gritstone-redis_*.deb "$debian/srv/first.deb"
# The same package with a higher version is an upgrade.
dpkg-deb --raw-extract "$debian/srv/first.deb" "$root/next"
sed --in-place 's/^Version: .*/Version: 99.0-1/' "$root/next/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip --build "$root/next" "$debian/srv/next.deb" >/dev/null

chroot "$debian" dpkg --install /srv/first.deb >/dev/null
boot
expected "it runs, and says that it is ready" "$(inside systemctl show gritstone-redis --property StatusText)" "Ready to accept connections"
expected "it runs as a user of its own" "$(inside systemctl show gritstone-redis --property User)" gritstone-redis
expected "it serves" "$(ask 6380 'SET kept yes')" +OK
expected "Debian's server runs beside it" "$(ask 6379 'INFO server')" "redis_version:7.0"
expected "it is another server" "$(ask 6380 'INFO memory')" "mem_allocator:mimalloc"
inside sed --in-place 's/^# maxmemory 1gb/maxmemory 1gb/' /etc/gritstone/redis.conf
inside dpkg --install /srv/next.deb >/dev/null
sleep 2
expected "an upgrade restarts it" "$(state)" active
expected "an upgrade keeps data" "$(ask 6380 'GET kept')" yes
expected "an upgrade keeps the configuration" "$(ask 6380 'CONFIG GET maxmemory')" 1073741824
halt
boot
expected "a reboot keeps data" "$(ask 6380 'GET kept')" yes
expected "Debian's server runs, too" "$(ask 6379 PING)" +PONG
inside systemctl kill --signal KILL gritstone-redis
sleep 3
expected "it comes back after a crash" "$(state)" active
expected "a crash keeps data" "$(ask 6380 'GET kept')" yes
inside dpkg --remove gritstone-redis >/dev/null
expected "removal stops it" "$(state)" inactive
expected "removal leaves data" "$(inside ls /var/lib/gritstone-redis/appendonlydir)" appendonly.aof.manifest
expected "removal leaves the configuration" "$(inside ls /etc/gritstone)" redis.conf
expected "Debian's server is untouched" "$(ask 6379 PING)" +PONG
inside dpkg --install /srv/next.deb >/dev/null
sleep 2
expected "the data is there again" "$(ask 6380 'GET kept')" yes
inside dpkg --purge gritstone-redis >/dev/null
expected "a purge leaves data" "$(inside ls /var/lib/gritstone-redis/appendonlydir)" appendonly.aof.manifest
halt

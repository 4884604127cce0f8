#!/bin/sh
# Programs that talk to Redis, as Debian packages them, below this folder with what they need: the tests start them, and no service
# of the machine comes of it.
set -e
programs="prometheus-redis-exporter haproxy nutcracker syslog-ng-core syslog-ng-mod-redis"
libraries="liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 libivykis0 libnet1 libhiredis0.14 libwrap0 libjson-c5 libpcre3"
apt-get download $programs $libraries || { apt-get update && apt-get download $programs $libraries; }
for package in *.deb; do dpkg --extract "$package" .; done
rm ./*.deb

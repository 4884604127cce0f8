#!/bin/sh
# valkey-glide's own tests for Go as a program, `suite/suite`: the module holds them, and its core as a library for C.
set -e
module=github.com/valkey-io/valkey-glide/go/v2
go mod download $module
mkdir suite
program=$PWD/suite/suite
cd "$(go list -m -f '{{.Dir}}' $module)"
go test -c -o "$program" ./integTest

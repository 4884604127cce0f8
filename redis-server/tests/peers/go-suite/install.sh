#!/bin/sh
# go-redis' own tests as a program, `suite/suite`: of a copy of the module with hook_test.go beside them. They name the server's
# address in constants, and their options leave the protocol open.
set -e
module=github.com/redis/go-redis/v9
go mod download $module
cp -r "$(go list -m -f '{{.Dir}}' $module)" suite
chmod -R u+w suite
cp hook_test.go suite
cd suite
sed -i 's/redisStackPort = "6379"/redisStackPort = serverPort/; s/^\t\tDB: *0,$/\t\tDB: 0, Protocol: serverProtocol,/' main_test.go
sed -i 's/Addr: *":6379"/Addr: ":" + serverPort/' example_test.go
grep -q 'redisStackPort = serverPort' main_test.go
grep -q 'Protocol: serverProtocol' main_test.go
grep -q 'serverPort' example_test.go
go test -c -o suite .

module peers

go 1.25.0

tool google.golang.org/protobuf/cmd/protoc-gen-go

require (
	connectrpc.com/connect v1.21.1
	google.golang.org/protobuf v1.36.12
)

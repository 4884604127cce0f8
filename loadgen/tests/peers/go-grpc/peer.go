// A genuine gRPC server: the greeter, and every kind of stream, described by reflection. It has no generated code: messages
// are dynamic, by the definitions beside it.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

var _ = gzip.Name

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func field(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *descriptorpb.FieldDescriptorProto {
	label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
	return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &kind, Label: &label}
}

func message(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
	return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
}

func method(name, input, output string, up, down bool) *descriptorpb.MethodDescriptorProto {
	return &descriptorpb.MethodDescriptorProto{
		Name: &name, InputType: &input, OutputType: &output, ClientStreaming: &up, ServerStreaming: &down,
	}
}

func file(path, pkg string, messages []*descriptorpb.DescriptorProto, service string, methods ...*descriptorpb.MethodDescriptorProto) protoreflect.FileDescriptor {
	described := &descriptorpb.FileDescriptorProto{
		Name: &path, Package: &pkg, Syntax: proto.String("proto3"), MessageType: messages,
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: &service, Method: methods}},
	}
	found := must(protodesc.NewFile(described, nil))
	if err := protoregistry.GlobalFiles.RegisterFile(found); err != nil {
		must(0, err)
	}
	return found
}

const text, number, blob = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT64, descriptorpb.FieldDescriptorProto_TYPE_BYTES

var greeter = file("helloworld.proto", "helloworld", []*descriptorpb.DescriptorProto{
	message("HelloRequest", field("name", 1, text)), message("HelloReply", field("message", 1, text)),
}, "Greeter", method("SayHello", ".helloworld.HelloRequest", ".helloworld.HelloReply", false, false))

var streams = file("streams.proto", "streams", []*descriptorpb.DescriptorProto{
	message("Number", field("value", 1, number), field("padding", 2, blob)),
}, "Streams",
	method("Sum", ".streams.Number", ".streams.Number", true, false),
	method("Count", ".streams.Number", ".streams.Number", false, true),
	method("Double", ".streams.Number", ".streams.Number", true, true),
	method("Fail", ".streams.Number", ".streams.Number", false, true))

func hello(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	request := dynamicpb.NewMessage(greeter.Messages().ByName("HelloRequest"))
	if err := decode(request); err != nil {
		return nil, err
	}
	name := request.Get(request.Descriptor().Fields().ByName("name")).String()
	if values, _ := metadata.FromIncomingContext(ctx); len(values.Get("x-suffix")) > 0 {
		name += values.Get("x-suffix")[0]
	}
	reply := dynamicpb.NewMessage(greeter.Messages().ByName("HelloReply"))
	reply.Set(reply.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString("Hello "+name))
	return reply, nil
}

var numbers = streams.Messages().ByName("Number")
var valueField, paddingField = numbers.Fields().ByName("value"), numbers.Fields().ByName("padding")

func receive(stream grpc.ServerStream) (int64, int, error) {
	request := dynamicpb.NewMessage(numbers)
	err := stream.RecvMsg(request)
	return request.Get(valueField).Int(), len(request.Get(paddingField).Bytes()), err
}

func send(stream grpc.ServerStream, value int64, padding int) error {
	reply := dynamicpb.NewMessage(numbers)
	reply.Set(valueField, protoreflect.ValueOfInt64(value))
	if padding > 0 {
		reply.Set(paddingField, protoreflect.ValueOfBytes([]byte(strings.Repeat("x", padding))))
	}
	return stream.SendMsg(reply)
}

func sum(_ any, stream grpc.ServerStream) error {
	var total int64
	for {
		value, _, err := receive(stream)
		if err == io.EOF {
			return send(stream, total, 0)
		}
		if err != nil {
			return err
		}
		total += value
	}
}

func count(_ any, stream grpc.ServerStream) error {
	most, padding, err := receive(stream)
	for value := int64(1); err == nil && value <= most; value++ {
		err = send(stream, value, padding)
	}
	return err
}

func double(_ any, stream grpc.ServerStream) error {
	for {
		value, padding, err := receive(stream)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = send(stream, 2*value, padding)
		}
		if err != nil {
			return err
		}
	}
}

func fail(_ any, stream grpc.ServerStream) error {
	messages, _, err := receive(stream)
	for value := int64(0); err == nil && value < messages; value++ {
		err = send(stream, value, 0)
	}
	return status.Error(codes.NotFound, "no such number: 100 %")
}

func main() {
	options := []grpc.ServerOption{grpc.MaxConcurrentStreams(64)}
	if len(os.Args) > 2 {
		pair := must(tls.LoadX509KeyPair(os.Args[1], os.Args[2]))
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "helloworld.Greeter", HandlerType: (*any)(nil), Metadata: "helloworld.proto",
		Methods: []grpc.MethodDesc{{MethodName: "SayHello", Handler: hello}},
	}, nil)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "streams.Streams", HandlerType: (*any)(nil), Metadata: "streams.proto",
		Streams: []grpc.StreamDesc{
			{StreamName: "Sum", Handler: sum, ClientStreams: true},
			{StreamName: "Count", Handler: count, ServerStreams: true},
			{StreamName: "Double", Handler: double, ClientStreams: true, ServerStreams: true},
			{StreamName: "Fail", Handler: fail, ServerStreams: true},
		},
	}, nil)
	reflection.Register(server)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr())
	// The server ends with the test that started it.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	must(0, server.Serve(listener))
}

// grpc-go's greeter as its documentation shows it, with a stream of replies beside it.
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"google.golang.org/grpc"

	pb "peers/helloworld"
)

type greeter struct {
	pb.UnimplementedGreeterServer
}

func (greeter) SayHello(_ context.Context, in *pb.HelloRequest) (*pb.HelloReply, error) {
	return &pb.HelloReply{Message: "Hello " + in.GetName()}, nil
}

func (greeter) SayHelloManyTimes(in *pb.HelloManyTimesRequest, stream grpc.ServerStreamingServer[pb.HelloReply]) error {
	for range in.GetCount() {
		if err := stream.Send(&pb.HelloReply{Message: "Hello " + in.GetName()}); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	place := flag.String("listen", "127.0.0.1:50051", "where to listen")
	flag.Parse()
	listener, err := net.Listen("tcp", *place)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterGreeterServer(server, greeter{})
	log.Fatal(server.Serve(listener))
}

// connect-go's handlers on net/http, which answer gRPC too, as its documentation shows them.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"

	"connectrpc.com/connect"

	pb "peers/helloworld"
)

func sayHello(_ context.Context, in *connect.Request[pb.HelloRequest]) (*connect.Response[pb.HelloReply], error) {
	return connect.NewResponse(&pb.HelloReply{Message: "Hello " + in.Msg.GetName()}), nil
}

func sayHelloManyTimes(
	_ context.Context, in *connect.Request[pb.HelloManyTimesRequest], stream *connect.ServerStream[pb.HelloReply],
) error {
	for range in.Msg.GetCount() {
		if err := stream.Send(&pb.HelloReply{Message: "Hello " + in.Msg.GetName()}); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	place := flag.String("listen", "127.0.0.1:50051", "where to listen")
	flag.Parse()
	const one, many = "/helloworld.Greeter/SayHello", "/helloworld.Greeter/SayHelloManyTimes"
	http.Handle(one, connect.NewUnaryHandler(one, sayHello))
	http.Handle(many, connect.NewServerStreamHandler(many, sayHelloManyTimes))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Addr: *place, Protocols: protocols}
	log.Fatal(server.ListenAndServe())
}

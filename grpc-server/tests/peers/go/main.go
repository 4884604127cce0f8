// A client on grpc-go: every kind of call over cleartext and TLS. Arguments: address, TLS address, certificate. Or `extremes`, an
// address and a time, or `serve`.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "peers/helloworld"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func expect(found, expected any) {
	if found != expected {
		log.Fatalf("found %v, expected %v", found, expected)
	}
}

func main() {
	switch os.Args[1] {
	case "extremes":
		extremes(os.Args[2], must(time.ParseDuration(os.Args[3])))
		return
	case "serve":
		serve()
	}
	tls := must(credentials.NewClientTLSFromFile(os.Args[3], "localhost"))
	check(os.Args[1], insecure.NewCredentials())
	check(os.Args[2], tls)
	fmt.Println("ok")
}

func check(address string, security credentials.TransportCredentials) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	connection := must(grpc.NewClient(address, grpc.WithTransportCredentials(security)))
	defer connection.Close()
	greeter := pb.NewGreeterClient(connection)

	expect(must(greeter.SayHello(ctx, &pb.HelloRequest{Name: "Ann"})).GetMessage(), "Hello Ann")
	long := strings.Repeat("n", 1_000_000)
	expect(must(greeter.SayHello(ctx, &pb.HelloRequest{Name: long})).GetMessage(), "Hello "+long)
	packed := must(greeter.SayHello(ctx, &pb.HelloRequest{Name: long}, grpc.UseCompressor(gzip.Name)))
	expect(packed.GetMessage(), "Hello "+long)

	many := must(greeter.SayHelloManyTimes(ctx, &pb.HelloManyTimesRequest{Name: "Ann", Count: 10_000}))
	expect(replies(many.Recv), 10_000)

	toAll := must(greeter.SayHelloToAll(ctx))
	for _, name := range []string{"Ann", "Bob"} {
		must(0, toAll.Send(&pb.HelloRequest{Name: name}))
	}
	expect(must(toAll.CloseAndRecv()).GetMessage(), "Hello Ann, Bob")

	toEach := must(greeter.SayHelloToEach(ctx))
	for number := range 100 {
		name := fmt.Sprint(number)
		must(0, toEach.Send(&pb.HelloRequest{Name: name}))
		expect(must(toEach.Recv()).GetMessage(), "Hello "+name)
	}
	must(0, toEach.CloseSend())
	expect(replies(toEach.Recv), 0)

	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	slow := must(greeter.SayHelloManyTimes(short, &pb.HelloManyTimesRequest{Name: "Ann", Count: 10, PauseMs: 30_000}))
	for err := error(nil); ; {
		if _, err = slow.Recv(); err != nil {
			expect(status.Code(err), codes.DeadlineExceeded)
			break
		}
	}

	health := must(grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{}))
	expect(health.GetStatus(), grpc_health_v1.HealthCheckResponse_SERVING)
	unknown := connection.Invoke(ctx, "/helloworld.Greeter/Nothing", &pb.HelloRequest{}, &pb.HelloReply{})
	expect(status.Code(unknown), codes.Unimplemented)
}

// Counts replies until the end.
func replies(receive func() (*pb.HelloReply, error)) int {
	for count := 0; ; count++ {
		if _, err := receive(); err == io.EOF {
			return count
		} else if err != nil {
			log.Fatal(err)
		}
	}
}

// Honest clients at their fastest, and grpc-go's own server to compare with.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	pb "peers/helloworld"
)

// How many calls are under way at one time where more than one is.
const atOnce = 50

// Runs every row against a server for that long each, and prints how many answers came.
func extremes(address string, each time.Duration) {
	rows := []struct {
		name string
		run  func(pb.GreeterClient, context.Context) int64
	}{
		{"ping-pong on a stream", pingPong},
		{"short calls", shortCalls},
		{"every second call cancelled", cancelled},
		{"streams left behind their first answer", left},
		{"uploads that the server ends", uploads},
	}
	for _, row := range rows {
		connection := must(grpc.NewClient(address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			// The least that grpc-go allows is ten seconds.
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Second, PermitWithoutStream: true})))
		ctx, cancel := context.WithTimeout(context.Background(), each)
		fmt.Printf("%s\t%d\n", row.name, row.run(pb.NewGreeterClient(connection), ctx))
		cancel()
		connection.Close()
	}
}

// Says whether the time is up; any other error is the server's fault.
func isOver(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	if ctx.Err() == nil && status.Code(err) != codes.DeadlineExceeded {
		log.Fatalf("cut off: %v", err)
	}
	return true
}

func pingPong(greeter pb.GreeterClient, ctx context.Context) (count int64) {
	stream := must(greeter.SayHelloToEach(ctx))
	for {
		if isOver(ctx, hidden(stream.Send(&pb.HelloRequest{Name: "Ann"}), stream)) {
			return
		}
		if _, err := stream.Recv(); isOver(ctx, err) {
			return
		}
		count++
	}
}

// Send says no more than that the stream is over; why, Recv says.
func hidden(err error, stream grpc.BidiStreamingClient[pb.HelloRequest, pb.HelloReply]) error {
	if err == io.EOF {
		_, err = stream.Recv()
	}
	return err
}

// Has calls made by many at one time until the time is up.
func many(ctx context.Context, call func() (int64, error)) int64 {
	var count atomic.Int64
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for ctx.Err() == nil {
				answers, err := call()
				if isOver(ctx, err) {
					return
				}
				count.Add(answers)
			}
		})
	}
	all.Wait()
	return count.Load()
}

func shortCalls(greeter pb.GreeterClient, ctx context.Context) int64 {
	return many(ctx, func() (int64, error) {
		_, err := greeter.SayHello(ctx, &pb.HelloRequest{Name: "Ann"})
		return 1, err
	})
}

func cancelled(greeter pb.GreeterClient, ctx context.Context) int64 {
	return many(ctx, func() (int64, error) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		if rand.Intn(2) == 0 {
			go cancel()
		}
		_, err := greeter.SayHello(inner, &pb.HelloRequest{Name: "Ann"})
		if status.Code(err) == codes.Canceled {
			return 0, nil
		}
		return 1, err
	})
}

func left(greeter pb.GreeterClient, ctx context.Context) int64 {
	return many(ctx, func() (int64, error) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := greeter.SayHelloManyTimes(inner, &pb.HelloManyTimesRequest{Name: "Ann", Count: 1000})
		if err != nil {
			return 0, err
		}
		_, err = stream.Recv()
		return 1, err
	})
}

// The first message is too large, so that the server ends the call while others are on their way.
func uploads(greeter pb.GreeterClient, ctx context.Context) int64 {
	large := strings.Repeat("n", 5_000_000)
	return many(ctx, func() (int64, error) {
		stream, err := greeter.SayHelloToAll(ctx)
		if err != nil {
			return 0, err
		}
		if rand.Intn(50) == 0 {
			_ = stream.Send(&pb.HelloRequest{Name: large})
		}
		for range 50 {
			if stream.Send(&pb.HelloRequest{Name: "Ann"}) != nil {
				break
			}
		}
		_, err = stream.CloseAndRecv()
		if code := status.Code(err); code == codes.OutOfRange || code == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max") {
			err = nil
		}
		return 1, err
	})
}

// grpc-go's own server of the same service, until its input ends.
func serve() {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := grpc.NewServer()
	pb.RegisterGreeterServer(server, greeter{})
	fmt.Println(listener.Addr())
	log.Fatal(server.Serve(listener))
}

type greeter struct{ pb.UnimplementedGreeterServer }

func (greeter) SayHello(_ context.Context, request *pb.HelloRequest) (*pb.HelloReply, error) {
	return &pb.HelloReply{Message: "Hello " + request.GetName()}, nil
}

func (greeter) SayHelloManyTimes(request *pb.HelloManyTimesRequest, stream grpc.ServerStreamingServer[pb.HelloReply]) error {
	for range request.GetCount() {
		if err := stream.Send(&pb.HelloReply{Message: "Hello " + request.GetName()}); err != nil {
			return err
		}
	}
	return nil
}

func (greeter) SayHelloToAll(stream grpc.ClientStreamingServer[pb.HelloRequest, pb.HelloReply]) error {
	names := []string{}
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&pb.HelloReply{Message: "Hello " + strings.Join(names, ", ")})
		}
		if err != nil {
			return err
		}
		names = append(names, request.GetName())
	}
}

func (greeter) SayHelloToEach(stream grpc.BidiStreamingServer[pb.HelloRequest, pb.HelloReply]) error {
	for {
		request, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.HelloReply{Message: "Hello " + request.GetName()}); err != nil {
			return err
		}
	}
}

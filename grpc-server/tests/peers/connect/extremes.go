// Honest clients on connect-go at their fastest, and its own server to compare with.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type text = wrapperspb.StringValue

func cleartext() *http.Protocols {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return protocols
}

// Runs every row against a server for that long each, over one connection of HTTP/2, and prints how many answers came.
func extremes(address string, each time.Duration) {
	for _, row := range []struct {
		name string
		run  func(*connect.Client[text, text], *connect.Client[text, text], context.Context) int64
	}{{"ping-pong on a stream", pingPong}, {"short calls", shortCalls}, {"every second call cancelled", cancelled}} {
		client := &http.Client{Transport: &http.Transport{Protocols: cleartext()}}
		unary := connect.NewClient[text, text](client, at("http://"+address, "SayHello"))
		stream := connect.NewClient[text, text](client, at("http://"+address, "SayHelloToEach"))
		ctx, cancel := context.WithTimeout(context.Background(), each)
		fmt.Printf("%s\t%d\n", row.name, row.run(unary, stream, ctx))
		cancel()
	}
}

// Says whether the time is up; any other error is the server's fault.
func isOver(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() == nil && connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		log.Fatalf("cut off: %v", err)
	}
	return err != nil
}

func pingPong(_, client *connect.Client[text, text], ctx context.Context) (count int64) {
	stream := client.CallBidiStream(ctx)
	for ; ; count++ {
		// Why it is over, Receive says.
		_ = stream.Send(wrapperspb.String("Ann"))
		if _, err := stream.Receive(); isOver(ctx, err) {
			return
		}
	}
}

// Has calls made by many at one time until the time is up.
func many(ctx context.Context, call func() (int64, error)) int64 {
	var count atomic.Int64
	var all sync.WaitGroup
	for range 50 {
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

func shortCalls(client, _ *connect.Client[text, text], ctx context.Context) int64 {
	return many(ctx, func() (int64, error) {
		_, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String("Ann")))
		return 1, err
	})
}

func cancelled(client, _ *connect.Client[text, text], ctx context.Context) int64 {
	return many(ctx, func() (int64, error) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		if rand.Intn(2) == 0 {
			go cancel()
		}
		_, err := client.CallUnary(inner, connect.NewRequest(wrapperspb.String("Ann")))
		if connect.CodeOf(err) == connect.CodeCanceled {
			return 0, nil
		}
		return 1, err
	})
}

// connect-go's own server of the same methods, until it is ended.
func serve() {
	hello := func(name string) *text { return wrapperspb.String("Hello " + name) }
	mux := http.NewServeMux()
	mux.Handle(at("", "SayHello"), connect.NewUnaryHandler(at("", "SayHello"),
		func(_ context.Context, request *connect.Request[text]) (*connect.Response[text], error) {
			return connect.NewResponse(hello(request.Msg.Value)), nil
		}))
	mux.Handle(at("", "SayHelloToEach"), connect.NewBidiStreamHandler(at("", "SayHelloToEach"),
		func(_ context.Context, stream *connect.BidiStream[text, text]) error {
			for {
				request, err := stream.Receive()
				if err != nil {
					if strings.Contains(err.Error(), "EOF") {
						return nil
					}
					return err
				}
				if err := stream.Send(hello(request.Value)); err != nil {
					return err
				}
			}
		}))
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr())
	log.Fatal((&http.Server{Handler: mux, Protocols: cleartext()}).Serve(listener))
}

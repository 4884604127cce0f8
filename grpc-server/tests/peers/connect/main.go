// A client on connect-go: every kind of call, in JSON and in protocol buffers, over HTTP/1.1 and HTTP/2, cleartext and TLS.
// Arguments: address, TLS address, certificate. Or `extremes`, an address and a time, or `serve`.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Messages in JSON, without definitions.
type object map[string]any

type jsonCodec struct{}

func (jsonCodec) Name() string                         { return "json" }
func (jsonCodec) Marshal(message any) ([]byte, error)  { return json.Marshal(message) }
func (jsonCodec) Unmarshal(bytes []byte, to any) error { return json.Unmarshal(bytes, to) }

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

func failed(err error, code connect.Code) {
	var found *connect.Error
	if !errors.As(err, &found) {
		log.Fatalf("no error of Connect: %v", err)
	}
	expect(found.Code(), code)
}

func at(base, method string) string { return base + "/helloworld.Greeter/" + method }

func inJSON(client *http.Client, base string, streams bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	call := func(method string) *connect.Client[object, object] {
		return connect.NewClient[object, object](client, at(base, method), connect.WithCodec(jsonCodec{}))
	}
	reply := must(call("SayHello").CallUnary(ctx, connect.NewRequest(&object{"name": "Ann"})))
	expect((*reply.Msg)["message"], "Hello Ann")
	_, err := call("SayHello").CallUnary(ctx, connect.NewRequest(&object{"name": 1}))
	failed(err, connect.CodeInvalidArgument)
	_, err = call("SayNothing").CallUnary(ctx, connect.NewRequest(&object{}))
	failed(err, connect.CodeUnimplemented)

	many := must(call("SayHelloManyTimes").CallServerStream(ctx, connect.NewRequest(&object{"name": "Ann", "count": 3})))
	count := 0
	for many.Receive() {
		expect((*many.Msg())["message"], "Hello Ann")
		count++
	}
	expect(many.Err(), nil)
	expect(count, 3)
	many = must(call("SayHelloManyTimes").CallServerStream(ctx, connect.NewRequest(&object{"name": "Ann", "count": 2000000})))
	expect(many.Receive(), false)
	failed(many.Err(), connect.CodeInvalidArgument)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	many, err = call("SayHelloManyTimes").CallServerStream(short, connect.NewRequest(&object{"name": "Ann", "count": 3, "pauseMs": 5000}))
	if err == nil {
		for many.Receive() {
		}
		err = many.Err()
	}
	failed(err, connect.CodeDeadlineExceeded)

	all := call("SayHelloToAll").CallClientStream(ctx)
	for _, name := range []string{"Ann", "Bob"} {
		expect(all.Send(&object{"name": name}), nil)
	}
	expect((*must(all.CloseAndReceive()).Msg)["message"], "Hello Ann, Bob")
	if !streams {
		return
	}
	each := call("SayHelloToEach").CallBidiStream(ctx)
	for _, name := range []string{"Ann", "Bob"} {
		expect(each.Send(&object{"name": name}), nil)
		expect((*must(each.Receive()))["message"], "Hello "+name)
	}
	expect(each.CloseRequest(), nil)
	_, err = each.Receive()
	expect(errors.Is(err, io.EOF), true)
}

// A message with a string as its first field is one of StringValue.
func inProto(client *http.Client, base string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, options := range [][]connect.ClientOption{nil, {connect.WithSendGzip()}} {
		call := func(method string) *connect.Client[wrapperspb.StringValue, wrapperspb.StringValue] {
			return connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](client, at(base, method), options...)
		}
		reply := must(call("SayHello").CallUnary(ctx, connect.NewRequest(wrapperspb.String("Ann"))))
		expect(reply.Msg.Value, "Hello Ann")
		all := call("SayHelloToAll").CallClientStream(ctx)
		expect(all.Send(wrapperspb.String("Ann")), nil)
		expect(must(all.CloseAndReceive()).Msg.Value, "Hello Ann")
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
	pool := x509.NewCertPool()
	expect(pool.AppendCertsFromPEM(must(os.ReadFile(os.Args[3]))), true)
	config := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	for _, way := range []struct {
		base      string
		transport *http.Transport
		isHTTP2   bool
	}{
		{"http://" + os.Args[1], &http.Transport{}, false},
		{"http://" + os.Args[1], &http.Transport{Protocols: cleartext()}, true},
		{"https://" + os.Args[2], &http.Transport{TLSClientConfig: config}, false},
		{"https://" + os.Args[2], &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}, true},
	} {
		client := &http.Client{Transport: way.transport}
		inJSON(client, way.base, way.isHTTP2)
		inProto(client, way.base)
	}
	fmt.Println("ok")
}

"""Honest clients on grpcio at their fastest. Arguments: address, seconds of each row; or `serve`: grpcio's own server."""

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

import helloworld_pb2_grpc
from helloworld_pb2 import HelloManyTimesRequest, HelloReply, HelloRequest

ANN = HelloRequest(name="Ann")


def ping_pong(greeter, end):
    def requests():
        while time.monotonic() < end:
            yield ANN

    return sum(1 for _ in greeter.SayHelloToEach(requests()))


def short_calls(greeter, end):
    count = 0
    while time.monotonic() < end:
        calls = [greeter.SayHello.future(ANN) for _ in range(50)]
        count += sum(call.result().message == "Hello Ann" for call in calls)
    return count


def cancelled(greeter, end):
    count = 0
    while time.monotonic() < end:
        calls = [greeter.SayHello.future(ANN) for _ in range(50)]
        for call in calls:
            if random.random() < 0.5:
                call.cancel()
            elif call.result().message == "Hello Ann":
                count += 1
    return count


def left(greeter, end):
    count = 0
    while time.monotonic() < end:
        stream = greeter.SayHelloManyTimes(HelloManyTimesRequest(name="Ann", count=1000))
        count += next(stream).message == "Hello Ann"
        stream.cancel()
    return count


class Greeter(helloworld_pb2_grpc.GreeterServicer):
    def SayHello(self, request, context):
        return HelloReply(message="Hello " + request.name)

    def SayHelloManyTimes(self, request, context):
        for _ in range(request.count):
            yield HelloReply(message="Hello " + request.name)

    def SayHelloToEach(self, requests, context):
        for request in requests:
            yield HelloReply(message="Hello " + request.name)


if sys.argv[1] == "serve":
    server = grpc.server(ThreadPoolExecutor(60))
    helloworld_pb2_grpc.add_GreeterServicer_to_server(Greeter(), server)
    print(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
    server.start()
    server.wait_for_termination()

address, seconds = sys.argv[1], float(sys.argv[2])
for name, run in [
    ("ping-pong on a stream", ping_pong),
    ("short calls", short_calls),
    ("every second call cancelled", cancelled),
    ("streams left behind their first answer", left),
]:
    # The least time between pings, and windows as small as HTTP/2 lets a client have them.
    options = [
        ("grpc.keepalive_time_ms", 100),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.lookahead_bytes", 1024),
    ]
    with grpc.insecure_channel(address, options) as channel:
        print(f"{name}\t{run(helloworld_pb2_grpc.GreeterStub(channel), time.monotonic() + seconds)}", flush=True)

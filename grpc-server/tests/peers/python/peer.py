"""A client on grpcio: every kind of call over cleartext and TLS. Arguments: address, TLS address, certificate."""

import sys
from pathlib import Path

import grpc

from helloworld_pb2 import HelloManyTimesRequest, HelloRequest
from helloworld_pb2_grpc import GreeterStub


def check(channel):
    greeter = GreeterStub(channel)
    assert greeter.SayHello(HelloRequest(name="Ann"), timeout=60).message == "Hello Ann"
    long = "n" * 1_000_000
    assert greeter.SayHello(HelloRequest(name=long), timeout=60).message == "Hello " + long
    packed = greeter.SayHello(HelloRequest(name=long), timeout=60, compression=grpc.Compression.Gzip)
    assert packed.message == "Hello " + long

    many = greeter.SayHelloManyTimes(HelloManyTimesRequest(name="Ann", count=10_000), timeout=60)
    assert sum(reply.message == "Hello Ann" for reply in many) == 10_000
    names = [HelloRequest(name=name) for name in ("Ann", "Bob")]
    assert greeter.SayHelloToAll(iter(names), timeout=60).message == "Hello Ann, Bob"
    each = greeter.SayHelloToEach(iter(names), timeout=60)
    assert [reply.message for reply in each] == ["Hello Ann", "Hello Bob"]

    slow = greeter.SayHelloManyTimes(HelloManyTimesRequest(name="Ann", count=10, pause_ms=30_000), timeout=0.2)
    assert code(lambda: list(slow)) == grpc.StatusCode.DEADLINE_EXCEEDED
    unknown = channel.unary_unary("/helloworld.Greeter/Nothing")
    assert code(lambda: unknown(b"", timeout=60)) == grpc.StatusCode.UNIMPLEMENTED


def code(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    raise AssertionError("the call succeeded")


plain, tls, certificate = sys.argv[1:]
with grpc.insecure_channel(plain) as channel:
    check(channel)
credentials = grpc.ssl_channel_credentials(Path(certificate).read_bytes())
options = [("grpc.ssl_target_name_override", "localhost")]
with grpc.secure_channel(tls, credentials, options) as channel:
    check(channel)
print("ok")

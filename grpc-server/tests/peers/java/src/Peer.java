// A client on grpc-java: every kind of call over cleartext and TLS. Arguments: address, TLS address, certificate.
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import helloworld.GreeterGrpc;
import helloworld.GreeterGrpc.GreeterBlockingStub;
import helloworld.GreeterGrpc.GreeterStub;
import helloworld.Helloworld.HelloManyTimesRequest;
import helloworld.Helloworld.HelloReply;
import helloworld.Helloworld.HelloRequest;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.io.File;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

public class Peer {
    static final List<String> NAMES = List.of("Ann", "Bob");

    static void same(Object got, Object expected) {
        if (!got.equals(expected)) {
            throw new AssertionError(String.format("%.200s instead of %.200s", got, expected));
        }
    }

    static HelloRequest named(String name) {
        return HelloRequest.newBuilder().setName(name).build();
    }

    static HelloManyTimesRequest manyTimes(int count, int pause) {
        return HelloManyTimesRequest.newBuilder().setName("Ann").setCount(count).setPauseMs(pause).build();
    }

    /** Answers of a call with all names. */
    static List<String> greet(Function<StreamObserver<HelloReply>, StreamObserver<HelloRequest>> call) {
        List<String> messages = new ArrayList<>();
        CompletableFuture<List<String>> all = new CompletableFuture<>();
        StreamObserver<HelloRequest> requests = call.apply(new StreamObserver<HelloReply>() {
            public void onNext(HelloReply reply) { messages.add(reply.getMessage()); }
            public void onError(Throwable error) { all.completeExceptionally(error); }
            public void onCompleted() { all.complete(messages); }
        });
        NAMES.forEach(name -> requests.onNext(named(name)));
        requests.onCompleted();
        return all.join();
    }

    static Status.Code failure(Runnable call) {
        try {
            call.run();
        } catch (StatusRuntimeException error) {
            return error.getStatus().getCode();
        }
        throw new AssertionError("the call succeeded");
    }

    static void check(ManagedChannel channel) {
        GreeterBlockingStub greeter = GreeterGrpc.newBlockingStub(channel);
        GreeterStub streams = GreeterGrpc.newStub(channel).withDeadlineAfter(60, SECONDS);
        same(greeter.sayHello(named("Ann")).getMessage(), "Hello Ann");
        String name = "n".repeat(1_000_000);
        same(greeter.sayHello(named(name)).getMessage(), "Hello " + name);
        same(greeter.withCompression("gzip").sayHello(named(name)).getMessage(), "Hello " + name);

        int count = 0;
        for (Iterator<HelloReply> many = greeter.sayHelloManyTimes(manyTimes(10_000, 0)); many.hasNext(); count++) {
            same(many.next().getMessage(), "Hello Ann");
        }
        same(count, 10_000);
        same(greet(streams::sayHelloToAll), List.of("Hello Ann, Bob"));
        same(greet(streams::sayHelloToEach), List.of("Hello Ann", "Hello Bob"));

        GreeterBlockingStub hasty = greeter.withDeadlineAfter(200, MILLISECONDS);
        same(failure(() -> hasty.sayHelloManyTimes(manyTimes(10, 30_000)).forEachRemaining(reply -> { })),
            Status.Code.DEADLINE_EXCEEDED);
        MethodDescriptor<HelloRequest, HelloReply> unknown = GreeterGrpc.getSayHelloMethod().toBuilder()
            .setFullMethodName("helloworld.Greeter/Nothing").build();
        same(failure(() -> ClientCalls.blockingUnaryCall(channel, unknown, CallOptions.DEFAULT, named("Ann"))),
            Status.Code.UNIMPLEMENTED);
        channel.shutdownNow();
    }

    public static void main(String[] servers) throws Exception {
        check(NettyChannelBuilder.forTarget(servers[0]).usePlaintext().build());
        check(NettyChannelBuilder.forTarget(servers[1]).overrideAuthority("localhost")
            .sslContext(GrpcSslContexts.forClient().trustManager(new File(servers[2])).build()).build());
        System.out.println("ok");
    }
}

// Honest clients on grpc-java at their fastest. Arguments: address, seconds of each row; or `serve`: grpc-java's own server.
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import helloworld.GreeterGrpc;
import helloworld.GreeterGrpc.GreeterStub;
import helloworld.Helloworld.HelloManyTimesRequest;
import helloworld.Helloworld.HelloReply;
import helloworld.Helloworld.HelloRequest;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

public class Extremes {
    static final HelloRequest ANN = HelloRequest.newBuilder().setName("Ann").build();
    static final HelloManyTimesRequest MANY = HelloManyTimesRequest.newBuilder().setName("Ann").setCount(1000).build();
    static final int AT_ONCE = 50;

    /** A row: calls that begin anew until the time is up. */
    static final class Row {
        final GreeterStub greeter;
        final long end;
        final AtomicLong answers = new AtomicLong();
        final CountDownLatch running;
        final AtomicReference<Throwable> failure = new AtomicReference<>();

        Row(GreeterStub greeter, double seconds, int atOnce) {
            this.greeter = greeter;
            this.end = System.nanoTime() + (long) (seconds * 1e9);
            this.running = new CountDownLatch(atOnce);
        }

        boolean isOver() { return System.nanoTime() >= end; }

        void call(boolean cancels, boolean streams) {
            if (isOver()) {
                running.countDown();
                return;
            }
            Context.CancellableContext context = Context.ROOT.withCancellation();
            boolean givesUp = cancels && ThreadLocalRandom.current().nextBoolean();
            StreamObserver<HelloReply> observer = new StreamObserver<>() {
                public void onNext(HelloReply reply) {
                    answers.incrementAndGet();
                    if (streams) context.cancel(null);
                }
                public void onError(Throwable error) {
                    if ((givesUp || streams) && Status.fromThrowable(error).getCode() == Status.Code.CANCELLED) {
                        call(cancels, streams);
                    } else {
                        failure.compareAndSet(null, error);
                        running.countDown();
                    }
                }
                public void onCompleted() { call(cancels, streams); }
            };
            context.run(() -> {
                if (streams) greeter.sayHelloManyTimes(MANY, observer);
                else greeter.sayHello(ANN, observer);
            });
            if (givesUp) context.cancel(null);
        }

        void pingPong() {
            AtomicReference<StreamObserver<HelloRequest>> requests = new AtomicReference<>();
            requests.set(greeter.sayHelloToEach(new StreamObserver<>() {
                public void onNext(HelloReply reply) {
                    answers.incrementAndGet();
                    if (isOver()) requests.get().onCompleted();
                    else requests.get().onNext(ANN);
                }
                public void onError(Throwable error) {
                    failure.compareAndSet(null, error);
                    running.countDown();
                }
                public void onCompleted() { running.countDown(); }
            }));
            requests.get().onNext(ANN);
        }
    }

    interface Start { void on(Row row); }

    static void run(String name, String address, double seconds, int atOnce, Start start) throws Exception {
        // The least time between pings that grpc-java allows is ten seconds; the windows are a kilobyte.
        ManagedChannel channel = NettyChannelBuilder.forTarget(address).usePlaintext()
            .keepAliveTime(100, MILLISECONDS).keepAliveWithoutCalls(true).flowControlWindow(1024).build();
        Row row = new Row(GreeterGrpc.newStub(channel), seconds, atOnce);
        for (int number = 0; number < atOnce; number++) start.on(row);
        if (!row.running.await(60, SECONDS)) throw new AssertionError(name + " hangs");
        if (row.failure.get() != null) throw new AssertionError(name, row.failure.get());
        System.out.println(name + "\t" + row.answers);
        channel.shutdownNow();
    }

    static class Greeter extends GreeterGrpc.GreeterImplBase {
        static HelloReply hello(String name) { return HelloReply.newBuilder().setMessage("Hello " + name).build(); }

        @Override public void sayHello(HelloRequest request, StreamObserver<HelloReply> replies) {
            replies.onNext(hello(request.getName()));
            replies.onCompleted();
        }

        @Override public void sayHelloManyTimes(HelloManyTimesRequest request, StreamObserver<HelloReply> replies) {
            for (int left = request.getCount(); left > 0 && !Context.current().isCancelled(); left--) {
                replies.onNext(hello(request.getName()));
            }
            if (!Context.current().isCancelled()) replies.onCompleted();
        }

        @Override public StreamObserver<HelloRequest> sayHelloToEach(StreamObserver<HelloReply> replies) {
            return new StreamObserver<>() {
                public void onNext(HelloRequest request) { replies.onNext(hello(request.getName())); }
                public void onError(Throwable error) { }
                public void onCompleted() { replies.onCompleted(); }
            };
        }
    }

    public static void main(String[] words) throws Exception {
        if (words[0].equals("serve")) {
            Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0)).addService(new Greeter()).build();
            System.out.println("127.0.0.1:" + server.start().getPort());
            server.awaitTermination();
        }
        double seconds = Double.parseDouble(words[1]);
        run("ping-pong on a stream", words[0], seconds, 1, Row::pingPong);
        run("short calls", words[0], seconds, AT_ONCE, row -> row.call(false, false));
        run("every second call cancelled", words[0], seconds, AT_ONCE, row -> row.call(true, false));
        run("streams left behind their first answer", words[0], seconds, AT_ONCE, row -> row.call(false, true));
        System.exit(0);
    }
}

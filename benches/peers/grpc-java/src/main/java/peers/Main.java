package peers;

import com.google.protobuf.Message;
import helloworld.Helloworld.HelloManyTimesRequest;
import helloworld.Helloworld.HelloReply;
import helloworld.Helloworld.HelloRequest;
import io.grpc.InsecureServerCredentials;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;

/**
 * grpc-java's greeter on Netty, with a stream of replies beside it. The registries lack the plugin that writes the service's base
 * class: what it would say of the methods is said here.
 */
public final class Main {
    private static final String SERVICE = "helloworld.Greeter";

    private static void sayHello(HelloRequest request, StreamObserver<HelloReply> observer) {
        observer.onNext(greeting(request.getName()));
        observer.onCompleted();
    }

    private static void sayHelloManyTimes(HelloManyTimesRequest request, StreamObserver<HelloReply> observer) {
        var call = (ServerCallStreamObserver<HelloReply>) observer;
        int[] left = {request.getCount()};
        // No more than the client takes: what is written beyond that would be kept in memory.
        call.setOnReadyHandler(() -> {
            while (left[0] > 0 && call.isReady()) {
                call.onNext(greeting(request.getName()));
                left[0] -= 1;
            }
            if (left[0] == 0) {
                left[0] = -1;
                call.onCompleted();
            }
        });
    }

    private static HelloReply greeting(String name) {
        return HelloReply.newBuilder().setMessage("Hello " + name).build();
    }

    private static <T extends Message> MethodDescriptor<T, HelloReply> method(String name, MethodType type, T request) {
        return MethodDescriptor.<T, HelloReply>newBuilder()
            .setType(type)
            .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, name))
            .setRequestMarshaller(ProtoUtils.marshaller(request))
            .setResponseMarshaller(ProtoUtils.marshaller(HelloReply.getDefaultInstance()))
            .build();
    }

    /** {@code --listen ADDRESS} */
    public static void main(String[] words) throws Exception {
        String[] place = words[1].split(":");
        var address = new InetSocketAddress(place[0], Integer.parseInt(place[1]));
        var one = method("SayHello", MethodType.UNARY, HelloRequest.getDefaultInstance());
        var many = method("SayHelloManyTimes", MethodType.SERVER_STREAMING, HelloManyTimesRequest.getDefaultInstance());
        var service = ServerServiceDefinition.builder(SERVICE)
            .addMethod(one, ServerCalls.asyncUnaryCall(Main::sayHello))
            .addMethod(many, ServerCalls.asyncServerStreamingCall(Main::sayHelloManyTimes))
            .build();
        NettyServerBuilder.forAddress(address, InsecureServerCredentials.create())
            .addService(service)
            // As its documentation advises where no handler blocks: no thread but the connection's has part in a call.
            .directExecutor()
            .build()
            .start()
            .awaitTermination();
    }
}

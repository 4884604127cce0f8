//! The four kinds of calls.

use grpc_server::greeter::pb::{HelloManyTimesRequest, HelloReply, HelloRequest};
use tonic::{Code, Streaming};

use crate::support::{Server, run};

fn hello(name: &str) -> HelloRequest {
    HelloRequest { name: name.to_owned() }
}

async fn all(mut replies: Streaming<HelloReply>) -> Vec<String> {
    let mut messages = Vec::new();
    while let Some(HelloReply { message }) = replies.message().await.unwrap() {
        messages.push(message);
    }
    messages
}

#[test]
fn every_kind_of_call() {
    run(async {
        let server = Server::start();
        let mut greeter = server.greeter().await;
        let reply = greeter.say_hello(hello("Ann")).await.unwrap();
        assert_eq!(reply.into_inner().message, "Hello Ann");

        let names = tokio_stream::iter(["Ann", "Bob", "Cleo"].map(hello));
        let reply = greeter.say_hello_to_all(names).await.unwrap();
        assert_eq!(reply.into_inner().message, "Hello Ann, Bob, Cleo");

        let many = HelloManyTimesRequest { name: "Ann".to_owned(), count: 3, pause_ms: 0 };
        let replies = greeter.say_hello_many_times(many.clone()).await.unwrap();
        assert_eq!(all(replies.into_inner()).await, ["Hello Ann"; 3]);
        let slowly = HelloManyTimesRequest { pause_ms: 5, ..many };
        let replies = greeter.say_hello_many_times(slowly.clone()).await.unwrap();
        assert_eq!(all(replies.into_inner()).await, ["Hello Ann"; 3]);

        let names = tokio_stream::iter(["Ann", "Bob"].map(hello));
        let replies = greeter.say_hello_to_each(names).await.unwrap();
        assert_eq!(all(replies.into_inner()).await, ["Hello Ann", "Hello Bob"]);

        let too_many = HelloManyTimesRequest { count: 1_000_001, ..slowly };
        let error = greeter.say_hello_many_times(too_many).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    });
}

#[test]
fn messages_of_every_size() {
    run(async {
        let server = Server::start();
        let mut greeter = server.greeter().await;
        for size in [0, 1, 126, 127, 128, 16_383, 16_384, 70_000, 3_000_000] {
            let reply = greeter.say_hello(hello(&"x".repeat(size))).await.unwrap();
            assert_eq!(reply.into_inner().message.len(), size + 6);
        }
        // More than the windows and send buffers hold at one time.
        let many = HelloManyTimesRequest { name: "x".repeat(10_000), count: 1000, pause_ms: 0 };
        let replies = greeter.say_hello_many_times(many).await.unwrap();
        assert_eq!(all(replies.into_inner()).await.len(), 1000);
        let error = greeter.say_hello(hello(&"x".repeat(5_000_000))).await.unwrap_err();
        assert_eq!(error.code(), Code::OutOfRange, "{error}");
    });
}

#[test]
fn unknown_methods_and_services_return_unimplemented() {
    run(async {
        let server = Server::start();
        let mut client = tonic::client::Grpc::new(server.channel().await);
        for path in ["/helloworld.Greeter/Nothing", "/helloworld.Nobody/SayHello", "/", "/x", "/helloworld.Greeter"] {
            client.ready().await.unwrap();
            let codec = tonic_prost::ProstCodec::<HelloRequest, HelloReply>::default();
            let path = http::uri::PathAndQuery::from_static(path);
            let error = client.unary(tonic::Request::new(hello("Ann")), path, codec).await.unwrap_err();
            assert_eq!(error.code(), Code::Unimplemented);
        }
    });
}

//! The effect of a handler that blocks its thread, on the worker and away from it:
//! `cargo run --release -p grpc-server --example grpc-blocking -- 127.0.0.1:50051 [apart]`. It naps when it is to greet "nap".

use std::pin::Pin;
use std::thread::sleep;
use std::time::Duration;

use grpc_server::greeter::pb::greeter_server::{Greeter, GreeterServer};
use grpc_server::greeter::pb::{HelloManyTimesRequest, HelloReply, HelloRequest};
use grpc_server::{Options, Routes, serve};
use server_runtime::shutdown_on_signals;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

#[derive(Clone)]
struct Napping;

type Replies = Pin<Box<dyn Stream<Item = Result<HelloReply, Status>> + Send>>;

#[tonic::async_trait]
impl Greeter for Napping {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let name = request.into_inner().name;
        if name == "nap" {
            sleep(Duration::from_millis(100));
        }
        Ok(Response::new(HelloReply { message: format!("Hello {name}") }))
    }

    type SayHelloManyTimesStream = Replies;
    type SayHelloToEachStream = Replies;

    async fn say_hello_many_times(&self, _: Request<HelloManyTimesRequest>) -> Result<Response<Replies>, Status> {
        Err(Status::unimplemented("one name, one greeting"))
    }

    async fn say_hello_to_all(&self, _: Request<Streaming<HelloRequest>>) -> Result<Response<HelloReply>, Status> {
        Err(Status::unimplemented("one name, one greeting"))
    }

    async fn say_hello_to_each(&self, _: Request<Streaming<HelloRequest>>) -> Result<Response<Replies>, Status> {
        Err(Status::unimplemented("one name, one greeting"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words.next().ok_or("usage: grpc-blocking ADDRESS [apart]")?;
    let service = GreeterServer::new(Napping);
    let routes = match words.next().as_deref() {
        Some("apart") => Routes::new().add_blocking_service(service),
        _ => Routes::new().add_service(service),
    };
    let running = serve(routes, Options::listening(address.parse()?))?;
    shutdown_on_signals(&running)?;
    println!("listening on {}", running.local_addrs()[0]);
    running.wait();
    Ok(())
}

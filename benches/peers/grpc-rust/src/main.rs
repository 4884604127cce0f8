//! tonic's greeter as its documentation shows it, with a stream of replies beside it.

use std::pin::Pin;

use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloManyTimesRequest, HelloReply, HelloRequest};

mod helloworld {
    tonic::include_proto!("helloworld");
}

struct MyGreeter;

type Replies = Pin<Box<dyn Stream<Item = Result<HelloReply, Status>> + Send>>;

#[tonic::async_trait]
impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        let message = format!("Hello {}", request.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }

    type SayHelloManyTimesStream = Replies;

    async fn say_hello_many_times(
        &self,
        request: Request<HelloManyTimesRequest>,
    ) -> Result<Response<Replies>, Status> {
        let HelloManyTimesRequest { name, count, .. } = request.into_inner();
        let replies = tokio_stream::iter(0..count).map(move |_| Ok(HelloReply { message: format!("Hello {name}") }));
        Ok(Response::new(Box::pin(replies)))
    }

    async fn say_hello_to_all(&self, _: Request<Streaming<HelloRequest>>) -> Result<Response<HelloReply>, Status> {
        Err(Status::unimplemented("it is not measured"))
    }

    type SayHelloToEachStream = Replies;

    async fn say_hello_to_each(&self, _: Request<Streaming<HelloRequest>>) -> Result<Response<Replies>, Status> {
        Err(Status::unimplemented("it is not measured"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = std::env::args().nth(2).ok_or("expected --listen ADDRESS")?;
    Server::builder().add_service(GreeterServer::new(MyGreeter)).serve(place.parse()?).await?;
    Ok(())
}

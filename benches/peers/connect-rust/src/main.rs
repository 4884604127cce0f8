//! connectrpc's server, which answers gRPC too, as its documentation shows it, with a stream of replies beside it.

use std::sync::Arc;

use connectrpc::{
    ConnectError, RequestContext, Response, Router, Server, ServiceRequest, ServiceResult, ServiceStream, StreamMessage,
};
use futures_util::stream;

use proto::helloworld::{Greeter, HelloManyTimesRequest, HelloReply, HelloRequest};

mod proto {
    connectrpc::include_generated!();
}

struct MyGreeter;

fn greeting(name: &str) -> HelloReply {
    HelloReply { message: format!("Hello {name}"), ..Default::default() }
}

impl Greeter for MyGreeter {
    async fn say_hello(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, HelloRequest>,
    ) -> ServiceResult<HelloReply> {
        Response::ok(greeting(request.name))
    }

    async fn say_hello_many_times(
        &self,
        _: RequestContext,
        request: ServiceRequest<'_, HelloManyTimesRequest>,
    ) -> ServiceResult<ServiceStream<HelloReply>> {
        let (name, count) = (request.name.to_owned(), request.count);
        Response::stream_ok(stream::iter((0..count).map(move |_| Ok(greeting(&name)))))
    }

    async fn say_hello_to_all(
        &self,
        _: RequestContext,
        _: ServiceStream<StreamMessage<HelloRequest>>,
    ) -> ServiceResult<HelloReply> {
        Err(ConnectError::unimplemented("it is not measured"))
    }

    async fn say_hello_to_each(
        &self,
        _: RequestContext,
        _: ServiceStream<StreamMessage<HelloRequest>>,
    ) -> ServiceResult<ServiceStream<HelloReply>> {
        Err(ConnectError::unimplemented("it is not measured"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let place = std::env::args().nth(2).ok_or("expected --listen ADDRESS")?;
    let router = Router::new().add_service(Arc::new(MyGreeter));
    Server::new(router).serve(place.parse()?).await?;
    Ok(())
}

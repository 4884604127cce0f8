//! `helloworld.Greeter`: the service of gRPC's examples, with the other kinds of calls beside it.

use std::pin::Pin;
use std::time::Duration;

use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};

use pb::{HelloManyTimesRequest, HelloReply, HelloRequest};

/// Code generated from `helloworld.proto`.
pub mod pb {
    #![allow(missing_docs, clippy::all, reason = "made by a program")]
    #![allow(clippy::allow_attributes_without_reason, clippy::too_many_lines, reason = "made by a program")]

    tonic::include_proto!("helloworld");

    /// The definition itself, as reflection tells it: an encoded `FileDescriptorSet`.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/helloworld.bin"));
}

/// Greetings of one call at most.
const MAX_COUNT: u32 = 1_000_000;

/// Between two greetings at most.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Bytes of the names that one greeting holds at most.
const MAX_NAMES: usize = 64 * 1024;

/// The greeter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greeter;

/// Greetings as they come.
type Replies = Pin<Box<dyn Stream<Item = Result<HelloReply, Status>> + Send>>;

/// The greeting of the published examples. One allocation of the right size.
fn hello(name: &str) -> HelloReply {
    let mut message = String::with_capacity("Hello ".len() + name.len());
    message.push_str("Hello ");
    message.push_str(name);
    HelloReply { message }
}

#[tonic::async_trait]
impl pb::greeter_server::Greeter for Greeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        Ok(Response::new(hello(&request.get_ref().name)))
    }

    type SayHelloManyTimesStream = Replies;

    async fn say_hello_many_times(&self, request: Request<HelloManyTimesRequest>) -> Result<Response<Replies>, Status> {
        let HelloManyTimesRequest { name, count, pause_ms } = request.into_inner();
        let pause = Duration::from_millis(pause_ms.into());
        if count > MAX_COUNT || pause > MAX_PAUSE {
            return Err(Status::invalid_argument(format!(
                "{count} greetings every {pause:?} are too much: at most {MAX_COUNT}, every {MAX_PAUSE:?}"
            )));
        }
        let replies = tokio_stream::iter(0..count).map(move |_| Ok(hello(&name)));
        let replies: Replies = if pause.is_zero() { Box::pin(replies) } else { Box::pin(replies.throttle(pause)) };
        Ok(Response::new(replies))
    }

    async fn say_hello_to_all(
        &self,
        request: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<HelloReply>, Status> {
        let (mut requests, mut names) = (request.into_inner(), String::new());
        while let Some(HelloRequest { name }) = requests.message().await? {
            if names.len() + name.len() > MAX_NAMES {
                return Err(Status::resource_exhausted(format!("the names have more than {MAX_NAMES} bytes")));
            }
            if !names.is_empty() {
                names.push_str(", ");
            }
            names.push_str(&name);
        }
        Ok(Response::new(hello(&names)))
    }

    type SayHelloToEachStream = Replies;

    async fn say_hello_to_each(&self, request: Request<Streaming<HelloRequest>>) -> Result<Response<Replies>, Status> {
        let replies = request.into_inner().map(|request| request.map(|HelloRequest { name }| hello(&name)));
        Ok(Response::new(Box::pin(replies)))
    }
}

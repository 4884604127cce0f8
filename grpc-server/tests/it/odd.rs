//! A greeter that does what a test wants of it, by the name that it is to greet.

use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use grpc_server::greeter::pb::greeter_server::Greeter;
use grpc_server::greeter::pb::{HelloManyTimesRequest, HelloReply, HelloRequest};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// A greeter that does what it is told.
#[derive(Clone, Default)]
pub(crate) struct Odd {
    /// Handlers that were dropped before they were done.
    pub(crate) dropped: Arc<AtomicUsize>,
    /// Messages of streams that were taken, and one that waits to be.
    pub(crate) sent: Arc<AtomicUsize>,
    /// Whether handlers that block may go on.
    pub(crate) gate: Arc<(Mutex<bool>, Condvar)>,
    /// Handlers that have begun.
    pub(crate) begun: Arc<AtomicUsize>,
    /// Grows when a handler begins to nap, and when it has: odd in between.
    pub(crate) naps: Arc<AtomicUsize>,
}

/// Counts when it is dropped.
struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[tonic::async_trait]
impl Greeter for Odd {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        self.begun.fetch_add(1, Relaxed);
        let peer = request.remote_addr();
        let certificates = request.peer_certs().map_or(0, |certificates| certificates.len());
        let message = match request.into_inner().name.as_str() {
            "never" => {
                let _dropped = OnDrop(Arc::clone(&self.dropped));
                std::future::pending().await
            }
            "slow" => {
                tokio::time::sleep(Duration::from_millis(300)).await;
                "slow".to_owned()
            }
            "slower" => {
                tokio::time::sleep(Duration::from_millis(1500)).await;
                "slower".to_owned()
            }
            "block" => {
                let (may_go, changed) = &*self.gate;
                drop(changed.wait_while(may_go.lock().unwrap(), |may_go| !*may_go).unwrap());
                "blocked".to_owned()
            }
            "nap" => {
                self.naps.fetch_add(1, SeqCst);
                std::thread::sleep(Duration::from_millis(100));
                self.naps.fetch_add(1, SeqCst);
                "napped".to_owned()
            }
            "panic" => panic!("as the test wants it"),
            "late panic" => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                panic!("as the test wants it")
            }
            "error" => return Err(Status::data_loss("a message with % and ü")),
            "peer" => format!("{} {certificates}", peer.unwrap().ip()),
            name => format!("Hello {name}"),
        };
        Ok(Response::new(HelloReply { message }))
    }

    type SayHelloManyTimesStream = ReceiverStream<Result<HelloReply, Status>>;

    async fn say_hello_many_times(
        &self,
        request: Request<HelloManyTimesRequest>,
    ) -> Result<Response<Self::SayHelloManyTimesStream>, Status> {
        let HelloManyTimesRequest { name, count, pause_ms } = request.into_inner();
        let (sender, replies) = tokio::sync::mpsc::channel(1);
        let (dropped, sent) = (OnDrop(Arc::clone(&self.dropped)), Arc::clone(&self.sent));
        tokio::spawn(async move {
            for _ in 0..count {
                if sender.send(Ok(HelloReply { message: name.clone() })).await.is_err() {
                    return drop(dropped);
                }
                sent.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_millis(pause_ms.into())).await;
            }
            std::mem::forget(dropped);
        });
        Ok(Response::new(ReceiverStream::new(replies)))
    }

    async fn say_hello_to_all(&self, _: Request<Streaming<HelloRequest>>) -> Result<Response<HelloReply>, Status> {
        Err(Status::unimplemented("not needed"))
    }

    type SayHelloToEachStream = ReceiverStream<Result<HelloReply, Status>>;

    async fn say_hello_to_each(
        &self,
        _: Request<Streaming<HelloRequest>>,
    ) -> Result<Response<Self::SayHelloToEachStream>, Status> {
        Err(Status::unimplemented("not needed"))
    }
}

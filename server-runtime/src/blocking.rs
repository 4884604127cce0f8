//! Handlers that compute or block, away from the threads that serve connections.

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tower_layer::Layer;
use tower_service::Service;

/// Has what is below it run on threads of its own: [`Blocking`] as a layer.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockingLayer;

impl<S> Layer<S> for BlockingLayer {
    type Service = Blocking<S>;

    fn layer(&self, service: S) -> Blocking<S> {
        Blocking::new(service)
    }
}

/// A service each of whose calls has a thread of its own, from the call until its future is done.
///
/// A worker serves many connections, and polls their handlers itself. So a handler that computes for more than some hundred
/// microseconds, or waits without `await`, holds all of them up. Below this layer it holds up nobody; it costs two
/// hand-overs between threads. A worker has 64 such threads, which it shares with `spawn_blocking`; further calls
/// wait for one. A call whose caller has gone ends at its next `await`. Bodies of responses are polled by the worker.
#[derive(Clone, Debug)]
pub struct Blocking<S>(S);

impl<S> Blocking<S> {
    /// The same service, on other threads.
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S, R> Service<R> for Blocking<S>
where
    S: Service<R> + Clone + Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BlockingCall<S::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // The one that is ready is the one to be called.
        let next = self.0.clone();
        let mut service = std::mem::replace(&mut self.0, next);
        let (caller, mut gone) = oneshot::channel::<()>();
        let handle = Handle::current();
        let task = spawn_blocking(move || {
            handle.block_on(async move {
                tokio::select! {
                    biased;
                    _ = poll_fn(|cx| Pin::new(&mut gone).poll(cx)) => None,
                    answer = async { service.call(request).await } => Some(answer),
                }
            })
        });
        BlockingCall { task, _caller: caller }
    }
}

/// A call on another thread.
#[derive(Debug)]
pub struct BlockingCall<T, E> {
    task: JoinHandle<Option<Result<T, E>>>,
    /// Tells the other thread by its end that nobody waits any more.
    _caller: oneshot::Sender<()>,
}

impl<T, E> Future for BlockingCall<T, E> {
    type Output = Result<T, E>;

    /// # Panics
    /// When the call has, as if it had been made here.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match ready!(Pin::new(&mut self.task).poll(cx)) {
            Ok(Some(answer)) => Poll::Ready(answer),
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime ends, and this future with it.
            Ok(None) | Err(_) => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::Ready;
    use std::thread::{ThreadId, current};

    use super::*;

    /// Tells on which thread it is called.
    #[derive(Clone)]
    struct Where;

    impl Service<bool> for Where {
        type Response = ThreadId;
        type Error = Infallible;
        type Future = Ready<Result<ThreadId, Infallible>>;

        fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, panics: bool) -> Self::Future {
            assert!(!panics, "as the test wants it");
            std::future::ready(Ok(current().id()))
        }
    }

    #[tokio::test]
    async fn calls_have_threads_of_their_own() {
        let mut service = BlockingLayer.layer(Where);
        assert_ne!(service.call(false).await, Ok(current().id()));
        let panicked = tokio::spawn(service.call(true)).await;
        assert!(panicked.unwrap_err().is_panic());
        drop(service.call(false));
        assert_ne!(service.call(false).await, Ok(current().id()));
    }
}

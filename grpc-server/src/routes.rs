//! Which service answers which path.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use server_runtime::Blocking;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, StdError as BoxError};
use tonic::server::NamedService;
use tower_layer::Layer;
use tower_service::Service;

use crate::engine::Inbound;

/// A service's answer: the type that tonic's generated services return, so that nothing is boxed a second time.
pub(crate) type Answer = BoxFuture<Response<Body>, Infallible>;

/// The services of a server.
#[derive(Clone, Default)]
pub struct Routes {
    services: Vec<(&'static str, Box<dyn Handler>)>,
}

impl Routes {
    /// No service yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One service more: a server that tonic generated, with its interceptors and limits. A later service replaces an
    /// earlier one of the same name.
    #[must_use]
    pub fn add_service<S, B>(self, service: S) -> Self
    where
        S: Service<Request<Inbound>, Response = Response<B>, Error = Infallible>,
        S: NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.put(S::NAME, Box::new(service))
    }

    /// The same for one whose handlers compute or block: each call has a thread of its own, so that it holds up no other call of
    /// its worker. See [`Blocking`].
    #[must_use]
    pub fn add_blocking_service<S, B>(self, service: S) -> Self
    where
        S: Service<Request<Inbound>, Response = Response<B>, Error = Infallible>,
        S: NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.put(S::NAME, Box::new(Blocking::new(service)))
    }

    /// A layer around every service that was added before: authentication, tracing, measuring. Its own answers go to
    /// the client as they are. Services that the options add (health, reflection) stay outside, so that probes need no
    /// token. To have them inside, add services of your own.
    ///
    /// ```
    /// # use grpc_server::{Routes, greeter::{Greeter, pb::greeter_server::GreeterServer}};
    /// use tonic::service::InterceptorLayer;
    ///
    /// let routes = Routes::new().add_service(GreeterServer::new(Greeter)).layer(InterceptorLayer::new(|call: tonic::Request<()>| {
    ///     match call.metadata().get("authorization") {
    ///         Some(token) if token == "Bearer secret" => Ok(call),
    ///         _ => Err(tonic::Status::unauthenticated("a token is missing, or is not the right one")),
    ///     }
    /// }));
    /// ```
    #[must_use]
    pub fn layer<L, S, B>(self, layer: L) -> Self
    where
        L: Layer<AnyService, Service = S>,
        S: Service<Request<Inbound>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let wrap = |(name, service)| (name, Box::new(layer.layer(AnyService(service))) as Box<dyn Handler>);
        Self { services: self.services.into_iter().map(wrap).collect() }
    }

    fn put(mut self, name: &'static str, service: Box<dyn Handler>) -> Self {
        self.services.retain(|(known, _)| *known != name);
        self.services.push((name, service));
        self
    }

    /// The services' full names, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.services.iter().map(|(name, _)| *name)
    }

    /// The service of a path such as `/helloworld.Greeter/SayHello`, by its place.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        let (name, _) = path.strip_prefix('/')?.split_once('/')?;
        self.services.iter().position(|(known, _)| *known == name)
    }

    /// Whether calls of the service at a place go on until their client ends them: those that watch and ask do.
    pub(crate) fn is_endless(&self, at: usize) -> bool {
        let name = self.services[at].0;
        name.starts_with("grpc.health.") || name.starts_with("grpc.reflection.")
    }

    /// Calls the service at a place that [`Routes::find`] gave.
    pub(crate) fn call(&mut self, at: usize, request: Request<Inbound>) -> Answer {
        self.services[at].1.answer(request)
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// One of the services of [`Routes`], as [a layer](Routes::layer) gets it. It is always ready.
#[derive(Clone)]
pub struct AnyService(Box<dyn Handler>);

impl fmt::Debug for AnyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyService")
    }
}

impl Service<Request<Inbound>> for AnyService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Inbound>) -> Answer {
        self.0.answer(request)
    }
}

/// A service without its type.
trait Handler: Send + Sync {
    fn answer(&mut self, request: Request<Inbound>) -> Answer;
    fn boxed_clone(&self) -> Box<dyn Handler>;
}

impl<S, B> Handler for S
where
    S: Service<Request<Inbound>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn answer(&mut self, request: Request<Inbound>) -> Answer {
        // Generated services are always ready; those below a layer may not be.
        if self.poll_ready(&mut Context::from_waker(Waker::noop())).is_pending() {
            let mut service = self.clone();
            return Box::pin(async move {
                poll_fn(|cx| service.poll_ready(cx)).await?;
                Ok(service.call(request).await?.map(Body::new))
            });
        }
        let mut future = Some(self.call(request));
        // Generated services return the very type that is wanted: then this is a move.
        if let Some(answer) = (&mut future as &mut dyn Any).downcast_mut::<Option<Answer>>() {
            return answer.take().expect("it was put there just now");
        }
        let future = future.expect("it was put there just now");
        Box::pin(async move { Ok(future.await?.map(Body::new)) })
    }

    fn boxed_clone(&self) -> Box<dyn Handler> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Handler> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

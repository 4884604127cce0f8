//! Trailers of answers that are no errors.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::Bytes;
use grpc_server::Inbound;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::BodyExt as _;
use tonic::body::Body;
use tonic::codegen::BoxFuture;
use tonic::server::NamedService;
use tower_service::Service;

/// A call's trailers besides its status: an extension of the response.
#[derive(Clone)]
pub(super) struct Trailers(pub(super) HeaderMap);

/// Sends [`Trailers`]. tonic itself lets a handler send trailers of errors only.
#[derive(Clone)]
pub(super) struct WithTrailers<S>(pub(super) S);

impl<S: NamedService> NamedService for WithTrailers<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Inbound>> for WithTrailers<S>
where
    S: Service<http::Request<Inbound>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Inbound>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async {
            let mut response = answer.await?;
            let Some(Trailers(more)) = response.extensions_mut().remove::<Trailers>() else { return Ok(response) };
            let add = move |frame: Frame<Bytes>| match frame.into_trailers() {
                Ok(mut trailers) => {
                    trailers.extend(more.clone());
                    Frame::trailers(trailers)
                }
                Err(frame) => frame,
            };
            Ok(response.map(|body| Body::new(body.map_frame(add))))
        })
    }
}

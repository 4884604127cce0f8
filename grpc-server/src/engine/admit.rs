//! Whether a call is let in, and to whom.

use std::rc::Rc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method as Verb, Request, Response, StatusCode};
use http2::shared::TooLarge;
use tonic::Status;
use tonic::body::Body;

use super::call::{Method, Stage, Trace, unpanicked};
use super::connect;
use super::inbound::Inbound;
use super::metadata;
use super::origin::Origin;
use super::timeout;
use super::web::{self, Outcome};
use super::worker::{Found, OTHER};
use crate::tuning;

/// A call that can begin.
pub(super) struct Admitted {
    pub(super) stage: Stage,
    pub(super) method: Method,
    /// How long it may take.
    pub(super) timeout: Option<Duration>,
    /// Whether it ends by itself.
    pub(super) is_endless: bool,
    pub(super) trace: Option<Box<Trace>>,
}

impl Admitted {
    /// One that is no call and ends here.
    pub(super) fn answered(response: Response<Body>) -> Self {
        Self { timeout: Some(tuning::REFUSAL), ..Self::refused(Stage::Refusing(Box::new(response))) }
    }

    fn refused(stage: Stage) -> Self {
        Self { stage, method: Method::Known(OTHER), timeout: None, is_endless: false, trace: None }
    }
}

/// Looks at a request and gives it to its service. A call that was translated tells its outcome elsewhere.
pub(super) fn admit(origin: &Rc<Origin>, request: Request<Inbound>) -> (Admitted, Option<Outcome>) {
    let is_grpc = request.headers().get(CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
    if is_grpc && request.method() == Verb::POST {
        return (admit_call(origin, request), None);
    }
    admit_translated(origin, request)
}

/// The same for what is not gRPC itself.
pub(super) fn admit_translated(origin: &Rc<Origin>, request: Request<Inbound>) -> (Admitted, Option<Outcome>) {
    match (&origin.worker.options.web, origin.worker.definitions()) {
        _ if is_large(&request) && request.method() == Verb::OPTIONS => (Admitted::answered(large()), None),
        (_, Some(definitions)) if connect::is_connect(definitions, &request) => {
            connect::admit(origin, definitions, request)
        }
        (Some(web), _) if web::is_web(&request) => web::admit(origin, web, request),
        _ if is_large(&request) => (Admitted::answered(large()), None),
        _ => (Admitted::answered(not_grpc(request.method())), None),
    }
}

/// Whether a request has more fields than it may have: those that are here are the first of them.
pub(super) fn is_large<B>(request: &Request<B>) -> bool {
    request.extensions().get::<TooLarge>().is_some()
}

/// The status of a call with too much metadata, in gRPC and its translations.
pub(super) fn too_large(origin: &Origin) -> Status {
    let most = origin.worker.options.limits.headers;
    Status::resource_exhausted(format!("the metadata is larger than {most} bytes"))
}

/// The answer to a request of no protocol that has a word for it (RFC 6585 section 5).
fn large() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    response
}

/// Gives what is a call to its service.
pub(super) fn admit_call(origin: &Rc<Origin>, mut request: Request<Inbound>) -> Admitted {
    let worker = &origin.worker;
    if is_large(&request) {
        return Admitted::refused(Stage::refused(too_large(origin)));
    }
    let wanted = match metadata::check(request.headers()).and_then(|()| timeout::of(request.headers())) {
        Ok(wanted) => wanted,
        Err(status) => return Admitted::refused(Stage::refused(status)),
    };
    let timeout = match (wanted, worker.options.timeouts.call) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, most) => wanted.or(most),
    };
    let path = request.uri().path();
    let trace = worker.is_traced().then(|| Box::new(Trace { path: path.into(), timeout }));
    let (service, method) = match worker.find(path) {
        Found::Known { service, method } => (service, Method::Known(method)),
        Found::New { service } => (service, Method::New(path.into())),
        Found::Nothing => {
            let stage = Stage::refused(Status::unimplemented(format!("there is no service for {path}")));
            return Admitted { trace, ..Admitted::refused(stage) };
        }
    };
    if worker.is_full() {
        worker.figures().shed.add(1);
        let method = match method {
            Method::Known(method) => method,
            Method::New(_) => OTHER,
        };
        let stage = Stage::refused(Status::resource_exhausted("too many calls at one time"));
        return Admitted { stage, method: Method::Known(method), timeout, is_endless: false, trace };
    }
    origin.end.tell(request.extensions_mut());
    let is_endless = worker.is_endless(service);
    // Interceptors run here.
    let stage = match unpanicked(|| worker.call(service, request)) {
        Ok(answer) => Stage::Handling(answer),
        Err(status) => {
            worker.figures().panics.add(1);
            Stage::refused(status)
        }
    };
    Admitted { stage, method, timeout, is_endless, trace }
}

/// The answer to what is HTTP, but no gRPC.
pub(super) fn not_grpc(verb: &Verb) -> Response<Body> {
    let body = if verb == Verb::HEAD { Body::empty() } else { Body::new("This is a gRPC server.\n".to_owned()) };
    let mut response = Response::new(body);
    if verb == Verb::POST {
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    } else {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

/// `application/grpc`, with a format that services here have (`+proto`), and parameters behind it. Another one is answered with
/// status 415 (gRPC over HTTP/2, "Requests").
fn is_grpc(kind: &[u8]) -> bool {
    let Some(rest) = kind.strip_prefix(b"application/grpc") else { return false };
    let rest = rest.strip_prefix(b"+proto").unwrap_or(rest);
    matches!(rest.first(), None | Some(b';'))
}

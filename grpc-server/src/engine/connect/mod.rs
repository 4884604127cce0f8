//! The Connect protocol (<https://connectrpc.com/docs/protocol>), over HTTP/1.1 and HTTP/2, translated to gRPC's: bare messages
//! for unary calls, the same envelopes for streams, JSON where the definitions are known, and errors as JSON.

mod body;
mod codec;
mod coding;
mod error;
mod get;

use std::rc::Rc;

use http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, TE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, Response, StatusCode};
use tokio::time::{Instant, sleep_until};
use tonic::body::Body;
use tonic::{Code, Status};

use self::body::{Bounds, FromStream, ToJsonStream, ToStream, ToUnary, envelope, first};
pub(crate) use self::codec::Definitions;
use self::codec::{Codec, Json, Method};
use self::coding::Coding;
pub use self::get::ConnectGet;
use super::admit::{Admitted, admit_call, is_large, too_large};
use super::call::Stage;
use super::inbound::Inbound;
use super::origin::Origin;
use super::web::{self, Bounded, Outcome};
use super::worker::Found;
use crate::routes::Answer;

const CONNECT_TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");
const CONNECT_CONTENT_ENCODING: HeaderName = HeaderName::from_static("connect-content-encoding");
const CONNECT_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("connect-accept-encoding");
const CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The prefix of trailers' names that a unary answer has in its head.
const TRAILER: &str = "trailer-";

/// How a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    codec: Codec,
    is_stream: bool,
}

impl Form {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let name = kind.split(';').next().unwrap_or_default().trim().strip_prefix("application/")?;
        let (name, is_stream) = match name.strip_prefix("connect+") {
            Some(name) => (name, true),
            None => (name, false),
        };
        Some(Self { codec: Codec::of(name)?, is_stream })
    }

    fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match (self.codec, self.is_stream) {
            (Codec::Proto, false) => "application/proto",
            (Codec::Json, false) => "application/json",
            (Codec::Proto, true) => "application/connect+proto",
            (Codec::Json, true) => "application/connect+json",
        })
    }
}

/// Whether a request is one of the Connect protocol: by POST it says so, and by GET its method has to be one that changes nothing.
pub(super) fn is_connect<B>(definitions: &Definitions, request: &Request<B>) -> bool {
    let is_safe = || definitions.method(request.uri().path()).is_some_and(|method| method.is_safe);
    Form::of(request.headers()).is_some() || (request.method() == Verb::GET && is_safe())
}

/// Looks at a request and gives it, translated, to its service. Its answer keeps its deadline by itself.
pub(super) fn admit(
    origin: &Rc<Origin>,
    definitions: &Definitions,
    request: Request<Inbound>,
) -> (Admitted, Option<Outcome>) {
    let Ok(page) = origin.worker.options.web.as_ref().map(|web| web.allows(request.headers())).transpose() else {
        return (Admitted::answered(plain(StatusCode::FORBIDDEN)), None);
    };
    let known = definitions.method(request.uri().path());
    let is_get = request.method() == Verb::GET;
    let form = match accepted(&request, known.as_ref()) {
        Ok(form) => form,
        Err(response) => return (Admitted::answered(*response), None),
    };
    if is_large(&request) {
        return (Admitted::answered(refused(form, &too_large(origin))), None);
    }
    if matches!(origin.worker.find(request.uri().path()), Found::Nothing) {
        let status = Status::unimplemented(format!("there is no service for {}", request.uri().path()));
        let mut response = error::response(&status);
        // Clients read UNIMPLEMENTED from this as well, and proxies in front of servers read nothing else.
        *response.status_mut() = StatusCode::NOT_FOUND;
        return (Admitted::answered(response), None);
    }
    origin.worker.figures().connect.add(1);
    let outcome = Outcome::new();
    let most = origin.worker.options.limits.message;
    let request = if is_get { get::unfolded(request, form) } else { Ok(request) };
    let (request, json) = match request.and_then(|request| translated(request, form, known, most)) {
        Ok(translated) => translated,
        Err(status) => {
            outcome.set(status.code());
            return (Admitted::answered(refused(form, &status)), Some(outcome));
        }
    };
    let mut admitted = admit_call(origin, request);
    let stage = std::mem::replace(&mut admitted.stage, Stage::Over);
    let end = admitted.timeout.take().and_then(|timeout| Instant::now().checked_add(timeout));
    let noted = outcome.clone();
    let answer: Answer = Box::pin(async move {
        let mut timer = end.map(|end| Box::pin(sleep_until(end)));
        let response = match stage {
            Stage::Handling(answer) => web::bounded(answer, &mut timer).await,
            Stage::Refusing(response) | Stage::Answering(response) => *response,
            Stage::Sending(_) | Stage::Over => Status::internal("there is no answer").into_http(),
        };
        if let Some(code) = response.headers().get(Status::GRPC_STATUS) {
            noted.set(Code::from_bytes(code.as_bytes()));
        }
        let response = response.map(|body| Bounded::new(body, timer, noted));
        let mut response =
            if form.is_stream { stream(form, json, response) } else { unary(form, json, response).await };
        if is_get {
            // A cache has to know what the answer depends on.
            response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
        }
        if let Some(page) = page {
            web::allow(page, response.headers_mut());
        }
        Ok(response)
    });
    (Admitted { stage: Stage::Handling(answer), ..admitted }, Some(outcome))
}

/// How a request is written, if that goes with its method; otherwise the answer that says what would.
fn accepted<B>(request: &Request<B>, known: Option<&Method>) -> Result<Form, Box<Response<Body>>> {
    let unsupported = || Box::new(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    let is_safe = known.is_some_and(|known| known.is_safe);
    let form = match *request.method() {
        Verb::POST => Form::of(request.headers()),
        Verb::GET if is_safe => get::form(request),
        _ => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED);
            let allowed = if is_safe { "GET, POST" } else { "POST" };
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            return Err(Box::new(response));
        }
    };
    let form = form.ok_or_else(unsupported)?;
    if known.is_some_and(|known| known.is_stream != form.is_stream) { Err(unsupported()) } else { Ok(form) }
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// The request as gRPC has it, and how its answers are translated, if they are. Messages of more bytes are refused.
fn translated(
    mut request: Request<Inbound>,
    form: Form,
    known: Option<Method>,
    most: usize,
) -> Result<(Request<Inbound>, Option<Json>), Status> {
    let headers = request.headers_mut();
    if let Some(version) = headers.remove(CONNECT_VERSION).filter(|version| version != "1") {
        return Err(Status::invalid_argument(format!("the version of the protocol is {version:?}; expected 1")));
    }
    let (content, accept) = match form.is_stream {
        true => (CONNECT_CONTENT_ENCODING, CONNECT_ACCEPT_ENCODING),
        false => (CONTENT_ENCODING, ACCEPT_ENCODING),
    };
    let (content, accept) = (headers.remove(content), headers.remove(accept));
    let coding = content.filter(|coding| coding != "identity");
    let is_packed = coding.is_some();
    let takes_many = known.as_ref().is_none_or(|known| known.takes_many);
    let json = match (form.codec, known) {
        (Codec::Proto, _) => None,
        (Codec::Json, Some(known)) => {
            let coding = coding.as_ref().map(Coding::of).transpose()?;
            Some((known.types.request(coding, most), known.types.answer()))
        }
        (Codec::Json, None) => {
            return Err(Status::unimplemented("there is no definition for this, and so no JSON"));
        }
    };
    if json.is_none() {
        headers.extend(coding.map(|coding| (GRPC_ENCODING, coding)));
    }
    headers.extend(accept.map(|accept| (GRPC_ACCEPT_ENCODING, accept)));
    if let Some(time) = headers.remove(CONNECT_TIMEOUT) {
        headers.insert(GRPC_TIMEOUT, timeout(&time)?);
    }
    for name in [CONTENT_LENGTH, CONTENT_ENCODING, ACCEPT_ENCODING] {
        headers.remove(name);
    }
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let (asked, answers) = json.unzip();
    let bounds = Bounds { message: most, takes_many };
    let request = request.map(|body| {
        Inbound::from(match (form.is_stream, asked) {
            (false, json) => Body::new(ToUnary::new(body, json, is_packed, most)),
            (true, None) => Body::new(ToStream::new(body, bounds)),
            (true, Some(json)) => Body::new(ToJsonStream::new(body, json, bounds)),
        })
    });
    Ok((request, answers))
}

/// Milliseconds, at most ten digits, as gRPC writes them, at most eight.
fn timeout(time: &HeaderValue) -> Result<HeaderValue, Status> {
    let digits = time.to_str().ok().filter(|text| text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit()));
    let millis: Option<u64> = digits.and_then(|text| text.parse().ok());
    let millis = millis.ok_or_else(|| {
        Status::invalid_argument(format!("connect-timeout-ms is {time:?}; expected up to ten digits"))
    })?;
    let text = if millis < 100_000_000 { format!("{millis}m") } else { format!("{}S", millis / 1000) };
    Ok(HeaderValue::try_from(text).expect("digits and a letter"))
}

/// The answer to a call that was not made.
fn refused(form: Form, status: &Status) -> Response<Body> {
    if !form.is_stream {
        return error::response(status);
    }
    let end = envelope(body::END, &error::end(Some(status), &HeaderMap::new()));
    let mut response = Response::new(Body::new(first(end)));
    response.headers_mut().insert(CONTENT_TYPE, form.media_type());
    response
}

/// The head of an answer as Connect has it: without what is gRPC's own. Also the coding of its messages.
fn metadata(headers: &HeaderMap) -> (HeaderMap, Option<HeaderValue>) {
    let mut metadata = headers.clone();
    let coding = metadata.remove(GRPC_ENCODING).filter(|coding| coding != "identity");
    for name in [CONTENT_TYPE, GRPC_ACCEPT_ENCODING] {
        metadata.remove(name);
    }
    error::NAMES.iter().for_each(|name| drop(metadata.remove(*name)));
    (metadata, coding)
}

/// How answers are translated that are compressed like this.
fn coded(json: Option<Json>, coding: Option<&HeaderValue>) -> Result<Option<Json>, Status> {
    let Some(json) = json else { return Ok(None) };
    Ok(Some(json.coded(coding.map(Coding::of).transpose()?)))
}

/// A stream's answer: its messages stay in their envelopes, and its trailers come as one more.
fn stream(form: Form, json: Option<Json>, response: Response<Bounded>) -> Response<Body> {
    let (head, body) = response.into_parts();
    let (mut headers, coding) = metadata(&head.headers);
    let json = match coded(json, coding.as_ref()) {
        Ok(json) => json,
        Err(status) => return refused(form, &status),
    };
    headers.insert(CONTENT_TYPE, form.media_type());
    headers.extend(coding.map(|coding| (CONNECT_CONTENT_ENCODING, coding)));
    // A call that has ended at once has its status in its head.
    let ended = Status::from_header_map(&head.headers).map(|status| error::end(Some(&status), &HeaderMap::new()));
    let mut response = Response::new(Body::new(FromStream::new(body, json, ended)));
    *response.headers_mut() = headers;
    response
}

/// A unary answer: its message is its body, its trailers are in its head.
async fn unary(form: Form, json: Option<Json>, response: Response<Bounded>) -> Response<Body> {
    let (head, body) = response.into_parts();
    let (mut headers, coding) = metadata(&head.headers);
    let (message, trailers) = match Status::from_header_map(&head.headers) {
        Some(_) => (None, head.headers),
        None => {
            let (message, trailers) = body::collect(body).await;
            for (name, value) in &metadata(&trailers).0 {
                if let Ok(name) = HeaderName::try_from(format!("{TRAILER}{name}")) {
                    headers.append(name, value.clone());
                }
            }
            (message, trailers)
        }
    };
    let status = Status::from_header_map(&trailers).unwrap_or_else(|| Status::unknown("the call has no status"));
    let answered = match (status.code(), message) {
        (Code::Ok, Some((flags, bytes))) => coded(json, coding.as_ref()).and_then(|json| match json {
            Some(json) => Ok((flags, json.answer(flags, bytes)?)),
            None => Ok((flags, bytes)),
        }),
        (Code::Ok, None) => Err(Status::unimplemented("a unary call has no message for its answer")),
        _ => Err(status),
    };
    let mut response = match answered {
        Ok((flags, bytes)) => {
            headers.insert(CONTENT_TYPE, form.media_type());
            if let Some(coding) = coding.filter(|_| flags & body::PACKED != 0) {
                headers.insert(CONTENT_ENCODING, coding);
            }
            Response::new(Body::new(first(bytes)))
        }
        Err(status) => error::response(&status),
    };
    // Of a name that is there already, such as the content type of an error, none is added.
    let said = response.headers().clone();
    for (name, value) in headers.iter().filter(|(name, _)| !said.contains_key(*name)) {
        response.headers_mut().append(name, value.clone());
    }
    response
}

/// The definitions of all methods, which calls in JSON need.
///
/// # Errors
/// When a descriptor set is none.
pub(crate) fn definitions(sets: &[&'static [u8]]) -> Result<Definitions, server_runtime::Error> {
    Definitions::of(sets).map_err(|error| server_runtime::Error::Flags(format!("Connect: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_times() {
        fn form(kind: &str) -> Option<(Codec, bool)> {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_str(kind).ok()?)]);
            Form::of(&headers).map(|form| (form.codec, form.is_stream))
        }
        assert_eq!(form("application/json; charset=utf-8"), Some((Codec::Json, false)));
        assert_eq!(form("application/proto"), Some((Codec::Proto, false)));
        assert_eq!(form("application/connect+proto"), Some((Codec::Proto, true)));
        for other in ["application/grpc", "application/grpc+json", "application/connect+xml", "text/plain", ""] {
            assert_eq!(form(other), None, "{other}");
        }
        let time = |text: &'static str| timeout(&HeaderValue::from_static(text)).ok();
        assert_eq!(time("250"), Some(HeaderValue::from_static("250m")));
        assert_eq!(time("9999999999"), Some(HeaderValue::from_static("9999999S")));
        for wrong in ["", "x", "-1", "10000000000", "1.5"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }
}

//! `/v1`: commands in, replies out.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use xxhash_rust::xxh3::xxh3_128;

use super::access::Rules;
use super::answer::{METHODS, Refusal, set_type, status_of};
use super::commands::Kind;
use super::format::{Format, RESP_TYPE};
use super::request::{self, Batch};
use super::subscribe::{self, Topics};
use super::{Api, cors};
use crate::redis::Answer;
use crate::redis::budget::{Share, UNCOUNTED};
use crate::redis::reply::{Element, Elements};
use crate::redis::wire::put_command;
use serve::conditional::tagged;

/// The path of transactions; no command of Redis is called so.
const TRANSACTION: &str = "transaction";

/// The path that judges commands and sends none; no command of Redis is called so either.
const ALLOWED: &str = "allowed";

/// `/v1/{COMMAND}/{arg}/…`, `POST /v1/transaction` and `POST /v1/allowed`.
pub(super) async fn path(State(api): State<Api>, request: Request<Body>) -> Response {
    if request.method() == Method::OPTIONS {
        return cors::preflight(State(api), request).await;
    }
    // As it came: separators can be told from the arguments' own bytes only before decoding.
    let path = request.uri().path().strip_prefix("/v1/").unwrap_or_default().to_owned();
    let (path, suffix) = Format::of_suffix(&path);
    if path.eq_ignore_ascii_case(TRANSACTION) {
        return answer(&api, request, suffix, Source::Body { is_transaction: true }).await;
    }
    if path.eq_ignore_ascii_case(ALLOWED) {
        return answer(&api, request, suffix, Source::Question).await;
    }
    if let Some(topics) = Topics::of_path(path) {
        return subscribe::subscribe(&api, request, topics).await;
    }
    answer(&api, request, suffix, Source::Path(path)).await
}

/// `POST /v1`.
pub(super) async fn body(State(api): State<Api>, request: Request<Body>) -> Response {
    if request.method() == Method::OPTIONS {
        return cors::preflight(State(api), request).await;
    }
    answer(&api, request, None, Source::Body { is_transaction: false }).await
}

/// Where the commands are.
#[derive(Clone, Copy)]
enum Source<'a> {
    Path(&'a str),
    Body {
        is_transaction: bool,
    },
    /// A body of commands that are judged, not sent.
    Question,
}

async fn answer(api: &Api, request: Request<Body>, suffix: Option<Format>, source: Source<'_>) -> Response {
    let origin = cors::origin_header(api, request.headers());
    let is_resp = request.headers().get(CONTENT_TYPE).is_some_and(|value| value.as_bytes() == RESP_TYPE.as_bytes());
    let default = if is_resp { Format::Raw } else { Format::Json };
    let format = suffix.or_else(|| Format::of_accept(request.headers())).unwrap_or(default);
    let mut response = match run(api, request, source, format).await {
        Ok(response) => response,
        Err(refusal) => refusal.count(api).into_format(format),
    };
    cors::allow(api, origin, &mut response);
    response
}

async fn run(api: &Api, request: Request<Body>, source: Source<'_>, format: Format) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    check_method(&parts.method, source)?;
    // Before the body is read: a caller without rights need not send it.
    api.check_host(&parts)?;
    let rules = api.shared.access.rules(&parts.headers)?;
    let mut share = api.redis()?.budget().share();
    let body = read(body, api.shared.max_request, &mut share).await?;
    let batch = match source {
        Source::Path(path) => Batch::One(request::of_path(path, &body)?),
        Source::Body { .. } | Source::Question => {
            let is_resp = body.first() == Some(&b'*');
            let is_transaction = matches!(source, Source::Body { is_transaction: true });
            request::of_body(&body, is_resp, is_transaction)?
        }
    };
    if let Source::Question = source {
        return Ok(verdicts(api, rules, &batch, format).into_response(api, "no-store"));
    }
    let mut only_reads = true;
    for command in batch.commands() {
        only_reads &= rules.check(command)? == Kind::Read;
        api.check_files(command)?;
    }
    if !only_reads {
        check_write(api, &parts)?;
    }
    let shape = Shape::of(&batch);
    let answer = ask(api, &batch)?;
    // The request is on its way. It need not be kept while the answer is.
    drop((batch, body, share));
    let response = render(shape, &answer.await?, format);
    if only_reads && cors::is_safe(&parts.method) {
        return Ok(with_etag(api, response, &parts.headers));
    }
    Ok(response.into_response(api, "no-store"))
}

/// True for each command that may be sent, and the error of each that may not. Nothing is sent, so nothing is counted.
fn verdicts(api: &Api, rules: &Rules, batch: &Batch, format: Format) -> Rendered {
    let mut replies = Vec::new();
    for command in batch.commands() {
        let verdict = rules.check(command).map_err(Refusal::from).and_then(|_| api.check_files(command));
        match verdict {
            Ok(()) => replies.extend_from_slice(b"#t\r\n"),
            Err(refusal) => replies.extend_from_slice(&format.error_reply(&refusal.message)),
        }
    }
    let list = (!matches!(batch, Batch::One(_))).then_some(batch.commands().len());
    Rendered { status: StatusCode::OK, format, body: format.render(&replies, list) }
}

/// Whether the sender means what has an effect, and is not a browser that another page has sent.
fn check_write(api: &Api, head: &Parts) -> Result<(), Refusal> {
    if cors::is_safe(&head.method) {
        let what = "a command that does not only read is sent by POST, PUT or DELETE";
        return Err(Refusal::method("POST, PUT, DELETE, OPTIONS", what));
    }
    if cors::is_foreign(api, head) {
        return Err(Refusal::denied("a web page of another origin may not write; allow it by --cors-origin"));
    }
    if cors::is_simple(head) {
        return Err(Refusal::denied(
            "any web page could have sent this; send a token, Content-Type: application/json, or use PUT",
        ));
    }
    Ok(())
}

fn check_method(method: &Method, source: Source<'_>) -> Result<(), Refusal> {
    let (is_known, allowed) = match source {
        Source::Path(_) => {
            (matches!(*method, Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::DELETE), METHODS)
        }
        Source::Body { .. } | Source::Question => (*method == Method::POST, "POST, OPTIONS"),
    };
    let what = "commands are sent by GET, POST, PUT or DELETE /v1/COMMAND/ARGUMENT/…, or POST /v1";
    if is_known { Ok(()) } else { Err(Refusal::method(allowed, what)) }
}

/// The whole body, for as long as there is room for it.
async fn read(mut body: Body, limit: usize, share: &mut Share) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Refusal::new(StatusCode::BAD_REQUEST, format!("the request did not come whole: {error}"))
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        if bytes.len() + piece.len() > limit {
            return Err(Refusal::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the request is longer than {limit} bytes"),
            ));
        }
        bytes.extend_from_slice(&piece);
        if bytes.capacity() > UNCOUNTED {
            share.grow(bytes.capacity())?;
        }
    }
    Ok(bytes)
}

/// Sends all commands at once; the answer is all replies.
fn ask(api: &Api, batch: &Batch) -> Result<Answer, Refusal> {
    let redis = api.redis()?;
    let commands = batch.commands();
    let around = if matches!(batch, Batch::Transaction(_)) { 2 } else { 0 };
    let replies = (commands.len() + around) as u32;
    Ok(redis.ask(replies, |out| {
        if around > 0 {
            put_command(out, &["MULTI"]);
        }
        commands.iter().for_each(|command| put_command(out, command));
        if around > 0 {
            put_command(out, &["EXEC"]);
        }
    }))
}

/// How the replies to a batch are to be told.
#[derive(Clone, Copy)]
enum Shape {
    One,
    Pipeline(usize),
    Transaction(usize),
}

impl Shape {
    fn of(batch: &Batch) -> Self {
        match batch {
            Batch::One(_) => Self::One,
            Batch::Pipeline(commands) => Self::Pipeline(commands.len()),
            Batch::Transaction(commands) => Self::Transaction(commands.len()),
        }
    }
}

/// An answer whose length is known.
struct Rendered {
    status: StatusCode,
    format: Format,
    body: Vec<u8>,
}

fn render(shape: Shape, replies: &[u8], format: Format) -> Rendered {
    let (status, body) = match shape {
        Shape::One => (status(replies), format.render(replies, None)),
        Shape::Pipeline(commands) => (StatusCode::OK, format.render(replies, Some(commands))),
        Shape::Transaction(commands) => return transaction(replies, commands, format),
    };
    Rendered { status, format, body }
}

/// The answer of EXEC, or the error because of which nothing was run.
fn transaction(replies: &[u8], commands: usize, format: Format) -> Rendered {
    let mut elements = Elements::new(replies);
    for _ in 0..=commands {
        let before = elements.rest();
        if let Some(Element::Error(error)) = elements.next() {
            let body = format.render(before, None);
            let body = if format == Format::Raw { first(before).to_vec() } else { body };
            return Rendered { status: status_of(error), format, body };
        }
    }
    let exec = elements.rest();
    match elements.next() {
        Some(Element::Array(count)) if format != Format::Raw => {
            let body = format.render(elements.rest(), Some(count));
            Rendered { status: StatusCode::OK, format, body }
        }
        _ => Rendered { status: status(exec), format, body: format.render(exec, None) },
    }
}

/// The bytes of the first reply.
fn first(replies: &[u8]) -> &[u8] {
    let mut elements = Elements::new(replies);
    elements.pass();
    &replies[..replies.len() - elements.rest().len()]
}

fn status(reply: &[u8]) -> StatusCode {
    match Elements::new(reply).next() {
        Some(Element::Error(error)) => status_of(error),
        _ => StatusCode::OK,
    }
}

impl Rendered {
    fn into_response(self, api: &Api, cache: &'static str) -> Response {
        let body = match &api.shared.redis {
            Some(redis) => redis.budget().hold(self.body),
            None => self.body.into(),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        set_type(&mut response, self.format.media_type());
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(cache));
        response
    }
}

/// An answer that the caller may have already.
fn with_etag(api: &Api, rendered: Rendered, headers: &HeaderMap) -> Response {
    if rendered.status != StatusCode::OK {
        return rendered.into_response(api, "no-store");
    }
    let (tag, length) = (xxh3_128(&rendered.body), rendered.body.len());
    // Kept by the caller alone, and asked for again before each use.
    let mut response = tagged(rendered.into_response(api, "private, no-cache"), tag, length, headers);
    response.headers_mut().append(VARY, HeaderValue::from_static("accept, authorization"));
    response
}

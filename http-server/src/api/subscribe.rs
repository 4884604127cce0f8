//! `GET /v1/subscribe/{channel}/…` and `/v1/psubscribe/{pattern}/…`: messages as server-sent events, or over a WebSocket.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, UPGRADE};
use http::{HeaderValue, Method, StatusCode};
use http_body::Frame;
use percent_encoding::percent_decode_str;
use tokio::time::{Instant, Interval, interval_at};

use super::answer::Refusal;
use super::format::{Format, json_bytes};
use super::{Api, cors};
use crate::Endless;
use crate::redis::{Event, Message, Subscription, Topic};
use serve::websocket::{self as ws, CloseFrame, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};

/// How often a silent connection is told that it lives, and a dead one is found: below the idle time-outs of usual proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Most channels in one request.
const MAX_TOPICS: usize = 100;

/// Bytes of events that go out together.
const BATCH: usize = 64 * 1024;

/// Longest message that a WebSocket client may send; it has nothing to say.
const MAX_FROM_CLIENT: usize = 4096;

/// The last that a listener hears who does not keep up.
const OVERFLOW: &str = r#"{"event":"overflow"}"#;

/// The subprotocol of a client that shows its token as another one.
const PROTOCOL: &str = "redis";

/// The topics that a path asks to listen to.
pub(super) struct Topics(Vec<Topic>);

impl Topics {
    /// Of a path below `/v1/`, if it begins so.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let (command, names) = path.split_once('/')?;
        let is_pattern = command.eq_ignore_ascii_case("psubscribe");
        if !is_pattern && !command.eq_ignore_ascii_case("subscribe") {
            return None;
        }
        let mut topics: Vec<Topic> = Vec::new();
        for name in names.split('/').take(MAX_TOPICS + 1) {
            let topic = Topic { is_pattern, name: percent_decode_str(name).collect::<Vec<_>>().into() };
            // Named twice, it is heard once, as in Redis.
            if !topics.contains(&topic) {
                topics.push(topic);
            }
        }
        Some(Self(topics))
    }
}

pub(super) async fn subscribe(api: &Api, request: Request, topics: Topics) -> Response {
    let origin = cors::origin_header(api, request.headers());
    let mut response = match listen(api, request, topics).await {
        Ok(response) => response,
        Err(refusal) => refusal.count(api).into_format(Format::Json),
    };
    cors::allow(api, origin, &mut response);
    response
}

async fn listen(api: &Api, request: Request, topics: Topics) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    if parts.method != Method::GET && parts.method != Method::CONNECT {
        return Err(Refusal::method("GET, OPTIONS", "subscriptions are made by GET"));
    }
    api.check_host(&parts)?;
    let rules = api.shared.access.rules(&parts.headers)?;
    if topics.0.len() > MAX_TOPICS {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, format!("more than {MAX_TOPICS} channels")));
    }
    for topic in &topics.0 {
        rules.check_channel(&topic.name, topic.is_pattern)?;
    }
    let redis = api.redis()?;
    if !parts.headers.contains_key(UPGRADE) && parts.method == Method::GET {
        return Ok(event_stream(redis.subscribe(topics.0)));
    }
    // Browsers let any page open a WebSocket and read from it.
    if cors::is_foreign(api, &parts) {
        return Err(Refusal::denied("a web page of another origin may not listen; allow it by --cors-origin"));
    }
    let socket = WebSocketUpgrade::from_request_parts(&mut parts, &())
        .await
        .map_err(|rejection| Refusal::new(rejection.status(), rejection.body_text()))?;
    let redis = redis.clone();
    Ok(socket
        .protocols([PROTOCOL])
        .max_message_size(MAX_FROM_CLIENT)
        .on_upgrade(move |socket| async move { over_socket(socket, redis.subscribe(topics.0)).await }))
}

fn event_stream(subscription: Subscription) -> Response {
    let stream = EventStream { subscription, alive: keep_alive(), ended: false };
    let mut response = Response::new(Body::new(stream));
    response.extensions_mut().insert(Endless);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Events are worth something only if no proxy on the way buffers them.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn keep_alive() -> Interval {
    interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE)
}

/// A body of server-sent events.
struct EventStream {
    subscription: Subscription,
    alive: Interval,
    ended: bool,
}

impl http_body::Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        while out.len() < BATCH {
            match self.subscription.poll_next(cx) {
                Poll::Ready(Some(event)) => put_event(&mut out, &event),
                Poll::Ready(None) => {
                    out.extend_from_slice(format!("event: overflow\ndata: {OVERFLOW}\n\n").as_bytes());
                    self.ended = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if out.is_empty() && self.alive.poll_tick(cx).is_ready() {
            // A comment. The next tick wakes only if it is asked for.
            out.extend_from_slice(b":\n\n");
            let _ = self.alive.poll_tick(cx);
        }
        if out.is_empty() { Poll::Pending } else { Poll::Ready(Some(Ok(Frame::data(out.into())))) }
    }
}

/// One event. Its data is one line of JSON, for any message: no line's end in it can begin another field.
fn put_event(out: &mut Vec<u8>, event: &Event) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name(event).as_bytes());
    out.extend_from_slice(b"\ndata: ");
    out.extend_from_slice(&json(event));
    out.extend_from_slice(b"\n\n");
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::Subscribed(_) => "subscribed",
        Event::Message(_) => "message",
        Event::Lost(_) => "lost",
    }
}

/// An event as JSON; a message is made so once, however many hear it.
fn json(event: &Event) -> Bytes {
    let make = || {
        let mut out = Vec::new();
        put_json(&mut out, event);
        Bytes::from(out)
    };
    if let Event::Message(message) = event { message.json(make) } else { make() }
}

fn put_json(out: &mut Vec<u8>, event: &Event) {
    let mut field = |name: &str, value: &[u8]| {
        out.extend_from_slice(if name == "event" { b"{\"" } else { b",\"" });
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        json_bytes(out, value);
    };
    field("event", name(event).as_bytes());
    match event {
        Event::Subscribed(topic) => field(if topic.is_pattern { "pattern" } else { "channel" }, &topic.name),
        Event::Message(Message { pattern, channel, message, .. }) => {
            if let Some(pattern) = pattern {
                field("pattern", pattern);
            }
            field("channel", channel);
            field("message", message);
        }
        // The reason may say where Redis is.
        Event::Lost(_) => field("error", b"the connection to Redis ended"),
    }
    out.push(b'}');
}

/// Sends events as texts until either side ends.
async fn over_socket(mut socket: WebSocket, mut subscription: Subscription) {
    let mut alive = keep_alive();
    loop {
        let message = tokio::select! {
            event = subscription.next() => match event {
                Some(event) => ws::Message::Text(Utf8Bytes::try_from(json(&event)).expect("JSON is UTF-8")),
                None => return overflow(socket).await,
            },
            _ = alive.tick() => ws::Message::Ping(Bytes::new()),
            // axum answers pings and a close as it reads them; other messages of a client have no meaning here.
            from_client = socket.recv() => match from_client {
                Some(Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
        };
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

/// Tells a listener that did not keep up, with the last of what it is sent.
async fn overflow(mut socket: WebSocket) {
    let frame = CloseFrame { code: close_code::AGAIN, reason: "overflow".into() };
    for message in [ws::Message::Text(OVERFLOW.into()), ws::Message::Close(Some(frame))] {
        if socket.send(message).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events() {
        fn check(event: &Event, expected: &str) {
            let mut out = Vec::new();
            put_event(&mut out, event);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let topic = Topic { is_pattern: true, name: "n*".into() };
        check(&Event::Subscribed(topic), "event: subscribed\ndata: {\"event\":\"subscribed\",\"pattern\":\"n*\"}\n\n");
        let message = |text: &'static [u8]| Event::Message(Message::new(None, "c".into(), text.into()));
        check(
            &message(b"a\n\nevent: x\r\"\xe2\x82\xac"),
            "event: message\ndata: {\"event\":\"message\",\"channel\":\"c\",\"message\":\"a\\n\\nevent: x\\r\\\"€\"}\n\n",
        );
        check(
            &message(b"\xff"),
            "event: message\ndata: {\"event\":\"message\",\"channel\":\"c\",\"message\":{\"base64\":\"/w==\"}}\n\n",
        );
        let lost = "event: lost\ndata: {\"event\":\"lost\",\"error\":\"the connection to Redis ended\"}\n\n";
        check(&Event::Lost("gone".into()), lost);
    }

    #[test]
    fn a_message_is_made_json_once() {
        let is_shared = |said: &str| {
            let event = Event::Message(Message::new(None, "c".into(), said.to_owned().into()));
            let (one, other) = (json(&event), json(&event.clone()));
            assert_eq!(one, other);
            one.as_ptr() == other.as_ptr()
        };
        assert!(is_shared("x"));
        assert!(is_shared(&"\"".repeat(1000)));
        // Six bytes for each of its own.
        assert!(!is_shared(&"\x01".repeat(1000)));
    }

    #[test]
    fn paths() {
        fn check(path: &str, expected: Option<&[&str]>) {
            let topics = Topics::of_path(path);
            let names = topics.map(|topics| {
                topics
                    .0
                    .iter()
                    .map(|topic| format!("{}{}", u8::from(topic.is_pattern), topic.name.escape_ascii()))
                    .collect::<Vec<_>>()
            });
            assert_eq!(names, expected.map(|names| names.iter().map(ToString::to_string).collect()), "{path}");
        }
        check("subscribe/a", Some(&["0a"]));
        check("SUBSCRIBE/a/b%2Fc/a", Some(&["0a", "0b/c"]));
        check("pSubscribe/n*", Some(&["1n*"]));
        check("subscribe", None);
        check("get/a", None);
        assert_eq!(Topics::of_path(&format!("subscribe{}", "/a".repeat(2000))).unwrap().0.len(), 1);
    }
}

//! Requests and answers of HTTP/2 and HTTP/3: streams of a connection in place of a pipeline.

mod request;

use std::sync::OnceLock;

use self::request::prepare;
pub(super) use self::request::{Coding, Prepared, Scratch};
use super::h2::{Head, Judge};
use super::http1::HttpRequest;
use super::shown;
use crate::clock::Nanos;
use crate::record::{Failure, Tally};
use crate::workload::{Mix, Source, Subjects};

/// The longest body that is compared.
const LONGEST_CHECKED_BODY: usize = 64 << 20;

/// Memory of an exchange that is kept for the next one.
const KEPT: usize = 64 << 10;

/// A mix of requests, and what is expected of their answers.
#[derive(Debug)]
pub(super) struct Exchanges<C: Coding> {
    requests: Vec<Prepared<C>>,
    mix: Mix,
    subjects: Subjects,
    verify: bool,
    /// By request: the first body that came, which all others must equal, where nothing else is expected.
    first_bodies: Vec<OnceLock<Box<[u8]>>>,
}

/// The state of a request until its answer is complete.
#[derive(Debug, Default)]
pub struct HttpExchange {
    key: u64,
    operation: u32,
    status: u16,
    content_length: Option<u64>,
    /// How much of the body has come.
    read: u64,
    /// The body so far, where there is nothing yet to compare it with.
    body: Vec<u8>,
    /// Why it is wrong.
    wrong: Option<Box<str>>,
}

/// A request that begins.
pub(super) struct Begun<'a, C: Coding> {
    pub(super) block: &'a C::Block,
    /// The path, the fields and the body that are new with it.
    pub(super) path: &'a [u8],
    pub(super) fields: &'a [u8],
    pub(super) body: &'a [u8],
    key: u64,
    operation: usize,
}

impl<C: Coding> Exchanges<C> {
    /// Requests by their weights, filled with subjects; `tls` says which scheme they have.
    pub(super) fn new(
        requests: Vec<(HttpRequest, u32)>,
        subjects: Subjects,
        tls: bool,
        verify: bool,
    ) -> Result<Self, String> {
        let (requests, weights): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let mix = Mix::new(&weights)?;
        let requests = prepare(&requests, tls, &subjects)?;
        let first_bodies = requests.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { requests, mix, subjects, verify, first_bodies })
    }

    /// The names of the requests.
    pub(super) fn names(&self) -> Vec<String> {
        self.requests.iter().map(|request| request.name.clone()).collect()
    }

    /// Draws the next request of the mix.
    #[inline]
    pub(super) fn next<'a>(&'a self, source: &mut Source, scratch: &'a mut Scratch) -> Begun<'a, C> {
        let operation = self.mix.next(source);
        let prepared = &self.requests[operation];
        let key = if prepared.has_key { self.subjects.keys.next(source) } else { 0 };
        let (path, fields, body) = prepared.fill(key, &self.subjects, source, scratch);
        Begun { block: &prepared.block, path, fields, body, key, operation }
    }

    /// Compares a piece of a body with the same piece of what is expected, if that is known.
    fn check(&self, exchange: &mut HttpExchange, data: &[u8]) {
        if exchange.wrong.is_some() {
            return;
        }
        let operation = exchange.operation as usize;
        let mut filled = Vec::new();
        let expected = match (&self.requests[operation].expected, self.first_bodies[operation].get()) {
            (Some(template), _) => {
                // The content of an answer follows from the key: nothing is drawn.
                template.append(exchange.key, &self.subjects, &mut Source::new(0, 0, 1), &mut filled);
                &filled[..]
            }
            (None, Some(first)) if exchange.body.is_empty() => first,
            (None, _) => {
                if exchange.body.len() + data.len() > LONGEST_CHECKED_BODY {
                    let text = format!("a body longer than {LONGEST_CHECKED_BODY} bytes cannot be checked");
                    exchange.wrong = Some(text.into());
                } else {
                    exchange.body.extend_from_slice(data);
                }
                return;
            }
        };
        let start = exchange.read as usize;
        if expected.get(start..start + data.len()) != Some(data) {
            let (expected, read) = (shown(expected.get(start..).unwrap_or_default()), shown(data));
            exchange.wrong = Some(format!("expected `{expected}`, read `{read}` at byte {start}").into());
        }
    }

    /// Looks at a body as a whole, when all of it has come.
    fn check_end(&self, exchange: &mut HttpExchange) {
        let operation = exchange.operation as usize;
        let length = if let Some(template) = &self.requests[operation].expected {
            template.size(exchange.key, &self.subjects)
        } else {
            let body = &exchange.body;
            let first = self.first_bodies[operation].get_or_init(|| body.as_slice().into());
            if !body.is_empty() && **first != **body {
                let text = format!("expected `{}`, read `{}`", shown(first), shown(body));
                exchange.wrong = Some(text.into());
            }
            first.len()
        };
        if exchange.wrong.is_none() && exchange.read != length as u64 {
            exchange.wrong = Some(format!("a body of {} bytes, expected {length}", exchange.read).into());
        }
    }
}

impl<C: Coding> Begun<'_, C> {
    /// Sets what is remembered of the request.
    #[inline]
    pub(super) fn remember(&self, exchange: &mut HttpExchange) {
        // The memory stays.
        let mut body = std::mem::take(&mut exchange.body);
        body.clear();
        body.shrink_to(KEPT);
        *exchange = HttpExchange { key: self.key, operation: self.operation as u32, body, ..HttpExchange::default() };
    }
}

impl<C: Coding> Judge for Exchanges<C> {
    type Exchange = HttpExchange;

    #[inline]
    fn head(&self, exchange: &mut HttpExchange, head: &Head) {
        exchange.status = head.status;
        exchange.content_length = head.content_length;
    }

    #[inline]
    fn data(&self, exchange: &mut HttpExchange, data: &[u8]) {
        if self.verify && exchange.status < 400 {
            self.check(exchange, data);
        }
        exchange.read += data.len() as u64;
    }

    fn trailers(&self, _exchange: &mut HttpExchange, _trailers: &Head) {}

    #[inline]
    fn complete(&self, exchange: &mut HttpExchange, intended: Nanos, tally: &mut Tally) {
        let operation = exchange.operation as usize;
        let request = &self.requests[operation];
        tally.status(intended, exchange.status);
        if exchange.status >= 400 {
            let status = exchange.status;
            return tally.failed(intended, Failure::Rejected, || format!("{}: status {status}", request.name));
        }
        let has_body = !request.is_head && exchange.status != 304;
        if let Some(length) = exchange.content_length.filter(|length| *length != exchange.read && has_body) {
            return tally.failed(intended, Failure::Protocol, || {
                format!("{}: a content-length of {length} with {} bytes of body", request.name, exchange.read)
            });
        }
        if self.verify {
            self.check_end(exchange);
            if let Some(wrong) = exchange.wrong.take() {
                return tally.failed(intended, Failure::Wrong, || format!("{}: {wrong}", request.name));
            }
        }
        tally.finished(operation, intended);
    }
}

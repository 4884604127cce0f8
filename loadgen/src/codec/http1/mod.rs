//! HTTP/1.1 (RFC 9112): pipelined on kept connections, or a connection per request.

pub(super) mod head;
mod request;

pub use request::HttpRequest;
pub(super) use request::Parts;

use std::sync::OnceLock;

use self::head::{Framing, Head};
use super::fifo::{Asked, InFlight};
use super::operations::Operations;
use super::{Broken, Protocol, Received, shown};
use crate::clock::Nanos;
use crate::record::{Failure, Tally};
use crate::workload::{Mix, Source, Subjects};

/// The longest head of a response: far above any server's limit on its own.
const LONGEST_HEAD: usize = 256 << 10;

/// The longest line between chunks.
const LONGEST_CHUNK_LINE: usize = 8 << 10;

/// The longest body that is compared.
const LONGEST_CHECKED_BODY: usize = 64 << 20;

/// A mix of requests on an HTTP server.
#[derive(Debug)]
pub struct Http1 {
    requests: Vec<HttpRequest>,
    mix: Mix,
    operations: Operations,
    subjects: Subjects,
    connection_per_request: bool,
    verify: bool,
    /// By request: the first body that came, which all others must equal, where nothing else is expected.
    first_bodies: Vec<OnceLock<Box<[u8]>>>,
}

/// One connection's state.
#[derive(Debug, Default)]
pub struct Http1Connection {
    in_flight: InFlight,
    state: State,
    status: u16,
    closes: bool,
    /// The body so far, where bodies are compared.
    body: Vec<u8>,
    /// The last head and what it said: servers send the same one again and again.
    last: Option<Box<(Vec<u8>, Head)>>,
}

/// The next part of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// So many bytes of body.
    Body(u64),
    /// The line before a chunk.
    ChunkSize,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// The lines behind the last chunk.
    Trailers,
    /// A body that ends with the connection.
    UntilEnd,
}

impl Http1 {
    /// Requests by their weights, filled with subjects.
    ///
    /// # Errors
    /// When there is no request, or a weight is 0.
    pub fn new(
        requests: Vec<(HttpRequest, u32)>,
        subjects: Subjects,
        connection_per_request: bool,
        verify: bool,
    ) -> Result<Self, String> {
        let (requests, weights): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let operations = Operations::each(requests.iter().map(HttpRequest::name));
        Ok(Self::with(requests, Mix::new(&weights)?, operations, subjects, connection_per_request, verify))
    }

    /// Requests in this order, over and over again; those of one name are one operation.
    ///
    /// # Errors
    /// When there is no request.
    pub fn in_turn(
        requests: Vec<HttpRequest>,
        order: Vec<u32>,
        subjects: Subjects,
        connection_per_request: bool,
        verify: bool,
    ) -> Result<Self, String> {
        let operations = Operations::by_name(requests.iter().map(HttpRequest::name));
        Ok(Self::with(requests, Mix::in_turn(order)?, operations, subjects, connection_per_request, verify))
    }

    fn with(
        mut requests: Vec<HttpRequest>,
        mix: Mix,
        operations: Operations,
        subjects: Subjects,
        connection_per_request: bool,
        verify: bool,
    ) -> Self {
        for request in &mut requests {
            request.compile(&subjects, connection_per_request);
        }
        let first_bodies = requests.iter().map(|_| OnceLock::new()).collect();
        Self { requests, mix, operations, subjects, connection_per_request, verify, first_bodies }
    }

    /// Reads a head, if it is complete, and gives its length.
    fn head(&self, connection: &mut Http1Connection, input: &[u8]) -> Result<Option<usize>, Broken> {
        if let Some(last) = &connection.last
            && input.starts_with(&last.0)
        {
            let (length, head) = (last.0.len(), last.1);
            self.enter(connection, head)?;
            return Ok(Some(length));
        }
        let Some(length) = head::length(input) else {
            if input.len() > LONGEST_HEAD || !b"HTTP/1.".starts_with(&input[..input.len().min(7)]) {
                return Err(unexpected("a response of HTTP/1.1", input));
            }
            return Ok(None);
        };
        let head = Head::parse(&input[..length]).map_err(|expected| unexpected(expected, &input[..length]))?;
        connection.last = Some(Box::new((input[..length].to_vec(), head)));
        self.enter(connection, head)?;
        Ok(Some(length))
    }

    /// Goes on behind a head.
    fn enter(&self, connection: &mut Http1Connection, head: Head) -> Result<(), Broken> {
        if (100..200).contains(&head.status) && head.status != 101 {
            // The final response follows.
            return Ok(());
        }
        let Some(asked) = connection.in_flight.first() else {
            let example = format!("a response that nobody asked for: status {}", head.status);
            return Err(Broken { failure: Failure::Protocol, example });
        };
        connection.status = head.status;
        connection.closes = head.closes || self.connection_per_request;
        connection.body.clear();
        let has_no_body = self.requests[asked.operation as usize].is_head() || matches!(head.status, 204 | 304);
        connection.state = match head.framing {
            _ if has_no_body => State::Body(0),
            Framing::Length(length) => State::Body(length),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilEnd => State::UntilEnd,
        };
        Ok(())
    }

    /// Reads one piece of a body. Gives how much was read and whether the response is complete; nothing read means that
    /// more must come.
    fn piece(&self, connection: &mut Http1Connection, input: &[u8]) -> Result<(usize, bool), Broken> {
        match connection.state {
            State::Head => Ok((0, false)),
            State::Body(left) => {
                let length = self.keep(connection, input, left)?;
                connection.state = State::Body(left - length as u64);
                Ok((length, left == length as u64))
            }
            State::Chunk(left) => {
                let length = self.keep(connection, input, left)?;
                let left = left - length as u64;
                connection.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                Ok((length, false))
            }
            State::UntilEnd => Ok((self.keep(connection, input, u64::MAX)?, false)),
            State::ChunkSize | State::ChunkEnd | State::Trailers => {
                let Some(end) = memchr::memchr(b'\n', input) else {
                    return if input.len() > LONGEST_CHUNK_LINE {
                        Err(unexpected("a chunk", input))
                    } else {
                        Ok((0, false))
                    };
                };
                let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
                let mut is_complete = false;
                connection.state = match connection.state {
                    State::ChunkSize => {
                        match head::chunk_size(line).ok_or_else(|| unexpected("a chunk's size", line))? {
                            0 => State::Trailers,
                            size => State::Chunk(size),
                        }
                    }
                    State::ChunkEnd if line.is_empty() => State::ChunkSize,
                    State::ChunkEnd => return Err(unexpected("the end of a chunk", line)),
                    state => {
                        is_complete = line.is_empty();
                        state
                    }
                };
                Ok((end + 1, is_complete))
            }
        }
    }

    /// Takes up to `most` bytes of body, and keeps them where bodies are compared.
    fn keep(&self, connection: &mut Http1Connection, input: &[u8], most: u64) -> Result<usize, Broken> {
        let length = most.min(input.len() as u64) as usize;
        if self.verify {
            if connection.body.len() + length > LONGEST_CHECKED_BODY {
                let example = format!("a body longer than {LONGEST_CHECKED_BODY} bytes cannot be checked");
                return Err(Broken { failure: Failure::Wrong, example });
            }
            connection.body.extend_from_slice(&input[..length]);
        }
        Ok(length)
    }

    /// Judges a response that is complete.
    fn account(&self, connection: &mut Http1Connection, tally: &mut Tally) {
        connection.state = State::Head;
        let Some(asked) = connection.in_flight.pop() else {
            return;
        };
        let operation = asked.operation as usize;
        let request = &self.requests[operation];
        tally.status(asked.intended, connection.status);
        if connection.status >= 400 {
            return tally.failed(asked.intended, Failure::Rejected, || {
                format!("{}: status {}", request.name(), connection.status)
            });
        }
        if self.verify && !self.is_right(operation, asked.key, &connection.body) {
            return tally.failed(asked.intended, Failure::Wrong, || {
                let expected = self.expected(operation, asked.key).unwrap_or_default();
                let (expected, read) = (shown(&expected), shown(&connection.body));
                format!("{}: expected `{expected}`, read `{read}`", request.name())
            });
        }
        tally.finished(self.operations.of(operation), asked.intended);
    }

    fn is_right(&self, operation: usize, key: u64, body: &[u8]) -> bool {
        match self.expected(operation, key) {
            Some(expected) => *expected == *body,
            None => **self.first_bodies[operation].get_or_init(|| body.into()) == *body,
        }
    }

    fn expected(&self, operation: usize, key: u64) -> Option<Vec<u8>> {
        let first = || self.first_bodies[operation].get().map(|body| body.to_vec());
        self.requests[operation].expected(key, &self.subjects).or_else(first)
    }
}

impl Protocol for Http1 {
    type Connection = Http1Connection;

    fn operations(&self) -> Vec<String> {
        self.operations.names().to_vec()
    }

    fn connect(&self, _seat: usize) -> Http1Connection {
        Http1Connection::default()
    }

    fn room(&self, connection: &Http1Connection) -> usize {
        match (self.connection_per_request, connection.in_flight.len()) {
            (false, _) => usize::MAX,
            (true, 0) => 1,
            (true, _) => 0,
        }
    }

    fn requests_per_connection(&self) -> Option<usize> {
        self.connection_per_request.then_some(1)
    }

    fn in_flight(&self, connection: &Http1Connection) -> usize {
        connection.in_flight.len()
    }

    #[inline]
    fn begin(&self, connection: &mut Http1Connection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let operation = self.mix.next(source);
        let request = &self.requests[operation];
        let key = if request.has_key() { self.subjects.keys.next(source) } else { 0 };
        request.append(key, &self.subjects, source, out);
        connection.in_flight.push(Asked { intended, key, operation: operation as u32 });
    }

    fn receive(&self, connection: &mut Http1Connection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let is_complete = if connection.state == State::Head {
                let Some(length) = (if rest.is_empty() { None } else { self.head(connection, rest)? }) else {
                    return Ok(Received { consumed, close: false });
                };
                consumed += length;
                connection.state == State::Body(0)
            } else {
                let (length, is_complete) = self.piece(connection, rest)?;
                if length == 0 && !is_complete {
                    return Ok(Received { consumed, close: false });
                }
                consumed += length;
                is_complete
            };
            if is_complete {
                self.account(connection, tally);
                if connection.closes {
                    return Ok(Received { consumed, close: true });
                }
            }
        }
    }

    fn end(&self, connection: &mut Http1Connection, tally: &mut Tally) {
        if connection.state == State::UntilEnd {
            self.account(connection, tally);
        }
    }

    fn expire(&self, connection: &mut Http1Connection, before: Nanos, tally: &mut Tally) -> bool {
        connection.in_flight.expire(before, tally)
    }

    fn abandon(&self, connection: &mut Http1Connection, failure: Failure, tally: &mut Tally) {
        connection.in_flight.abandon(failure, tally);
    }
}

fn unexpected(expected: &str, read: &[u8]) -> Broken {
    Broken { failure: Failure::Protocol, example: format!("expected {expected}, read `{}`", shown(read)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Window;
    use crate::workload::{Distribution, Keys, Sizes, Template, Values};

    fn http(request: HttpRequest, verify: bool) -> Http1 {
        let subjects = Subjects {
            keys: Keys::new(1, Distribution::Uniform).unwrap(),
            values: Values::new(Sizes::Fixed(5), 0).unwrap(),
        };
        Http1::new(vec![(request, 1)], subjects, false, verify).unwrap()
    }

    /// The outcome of a server's bytes after three requests: right answers, examples of failures, whether it closes.
    fn outcome(http: &Http1, answer: &[u8], cut: usize) -> Result<(u64, Vec<String>, bool), Broken> {
        let mut connection = http.connect(0);
        let mut tally = Tally::new(1);
        tally.set_window(Window::Open { from: 0, until: 9 });
        let (mut source, mut out) = (Source::new(0, 0, 1), Vec::new());
        for _ in 0..3 {
            http.begin(&mut connection, 1, &mut source, &mut out);
        }
        let (mut unread, mut closes) = (Vec::new(), false);
        for piece in [&answer[..cut], &answer[cut..]] {
            unread.extend_from_slice(piece);
            let received = http.receive(&mut connection, &unread, &mut tally)?;
            unread.drain(..received.consumed);
            closes |= received.close;
            if closes {
                break;
            }
        }
        http.end(&mut connection, &mut tally);
        let failures = tally.failures().list();
        Ok((tally.latencies()[0].count(), failures.into_iter().flat_map(|failure| failure.examples).collect(), closes))
    }

    #[test]
    fn responses_of_every_framing_are_read() {
        #[track_caller]
        fn check(method: &str, answer: &str, right: u64, failures: &[&str], closes: bool) {
            let http = http(HttpRequest::new(method, "/x").unwrap(), false);
            for cut in 0..=answer.len() {
                let found = outcome(&http, answer.as_bytes(), cut).unwrap();
                assert_eq!(found, (right, failures.iter().map(ToString::to_string).collect(), closes), "{cut}");
            }
        }
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        check("GET", &ok.repeat(3), 3, &[], false);
        check(
            "GET",
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
            2,
            &[],
            false,
        );
        check("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", 1, &[], false);
        check("GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 1, &[], false);
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nt: r\r\n\r\n";
        check("GET", &chunked.repeat(2), 2, &[], false);
        check("GET", "HTTP/1.0 200 OK\r\n\r\nall of this", 1, &[], false);
        check("GET", "HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 0\r\n\r\n", 1, &[], true);
        check("GET", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 0, &["GET /x: status 404"], false);
    }

    #[test]
    fn bodies_are_checked() {
        #[track_caller]
        fn check(request: HttpRequest, bodies: &[&str], right: u64, failures: &[&str]) {
            let http = http(request, true);
            let response = |body: &&str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let answer: String = bodies.iter().map(response).collect();
            let (found, examples, _) = outcome(&http, answer.as_bytes(), 0).unwrap();
            assert_eq!((found, examples), (right, failures.iter().map(ToString::to_string).collect()));
        }
        let plain = HttpRequest::new("GET", "/x").unwrap();
        check(plain, &["a", "a", "b"], 2, &["GET /x: expected `a`, read `b`"]);
        let greeting = HttpRequest::new("GET", "/{key}").unwrap().expecting(Template::new("Hello {key}"));
        let right = "Hello 000000000000";
        check(greeting, &[right, "Hello 1", right], 2, &["GET /{key}: expected `Hello 000000000000`, read `Hello 1`"]);
    }

    #[test]
    fn what_is_not_the_protocol_ends_the_connection() {
        #[track_caller]
        fn check(answer: &str, example: &str) {
            let http = http(HttpRequest::new("GET", "/").unwrap(), false);
            let broken = outcome(&http, answer.as_bytes(), 0).unwrap_err();
            assert_eq!(broken, Broken { failure: Failure::Protocol, example: example.to_owned() });
        }
        check("SSH-2.0-x\r\n", "expected a response of HTTP/1.1, read `SSH-2.0-x\u{fffd}\u{fffd}`");
        check("HTTP/1.1 abc\r\n\r\n", "expected a status, read `HTTP/1.1 abc\u{fffd}\u{fffd}\u{fffd}\u{fffd}`");
        let lengths = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n";
        assert!(outcome(&http(HttpRequest::new("GET", "/").unwrap(), false), lengths.as_bytes(), 0).is_err());
        let ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        check(&ok.repeat(4), "a response that nobody asked for: status 200");
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", "expected a chunk's size, read `xyz`");
    }
}

//! The head of a request: request line and header fields.

use std::mem::MaybeUninit;

use httparse::Header;
use smallvec::SmallVec;

use super::plain;

/// Header fields that a request may have; a larger [`Limits::headers`] has no effect.
pub const MAX_HEADERS: usize = 128;

/// Where the fields of a head are put. Room for more than most clients send would make it larger for all.
pub type Room<'b> = SmallVec<[Header<'b>; 24]>;

/// How large a head may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the whole head.
    pub head_bytes: usize,
    /// Bytes of the request target.
    pub target_bytes: usize,
    /// Header fields.
    pub headers: usize,
}

/// A request's head that is complete and valid.
#[derive(Debug)]
pub struct Head<'h, 'b> {
    /// The method, a token.
    pub method: &'b str,
    /// The target as it was sent: `/path?query`, `http://host/path`, or `*`.
    pub target: &'b str,
    /// The header fields in their order.
    pub headers: &'h [Header<'b>],
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor: u8,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the connection goes on after the answer, as far as the client is concerned.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether the client asks for another protocol on this connection than HTTP/2.
    pub upgrade: bool,
    /// The client's settings, if it asks for HTTP/2 on this connection (RFC 7540 section 3.2), and for nothing else.
    pub h2c: Option<&'b [u8]>,
    /// Bytes of the head, the empty line included.
    pub len: usize,
}

/// A request line, and where its head ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'b> {
    pub(super) method: &'b str,
    pub(super) target: &'b str,
    pub(super) minor: u8,
    /// Bytes of the head, the empty line included.
    pub(super) len: usize,
}

/// How long a request's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// Why a head is refused. The connection ends after the answer: where the next request starts is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// No request by RFC 9112.
    Malformed(&'static str),
    /// A line that does not end in CRLF.
    BareLineFeed,
    /// The target is longer than [`Limits::target_bytes`].
    TargetTooLong,
    /// More bytes or fields than allowed.
    HeadTooLarge,
    /// The name of a version that is not HTTP/1.0 or HTTP/1.1.
    Version,
    /// `Host` is missing, said twice, or no host.
    Host,
    /// Length and coding together, or either of them twice, or no number, or a coding that is not `chunked` in the end.
    AmbiguousLength,
    /// A transfer coding within `chunked`.
    UnknownCoding,
    /// An expectation other than `100-continue`.
    UnknownExpectation,
    /// `CONNECT`: this server is no proxy.
    Connect,
}

impl Reject {
    /// The status of the answer.
    pub fn status(self) -> http::StatusCode {
        use http::StatusCode as S;
        match self {
            Self::Malformed(_) | Self::BareLineFeed | Self::Host | Self::AmbiguousLength => S::BAD_REQUEST,
            Self::TargetTooLong => S::URI_TOO_LONG,
            Self::HeadTooLarge => S::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Version => S::HTTP_VERSION_NOT_SUPPORTED,
            Self::UnknownCoding | Self::Connect => S::NOT_IMPLEMENTED,
            Self::UnknownExpectation => S::EXPECTATION_FAILED,
        }
    }

    /// The body of the answer. Nothing of it comes from the request.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Malformed(what) => what,
            Self::BareLineFeed => "a line does not end in CRLF",
            Self::TargetTooLong => "the request target is too long",
            Self::HeadTooLarge => "the request head is too large",
            Self::Version => "only HTTP/1.0, HTTP/1.1 and HTTP/2 are served",
            Self::Host => "exactly one valid Host header is needed",
            Self::AmbiguousLength => "the length of the body is ambiguous",
            Self::UnknownCoding => "the only transfer coding served is chunked",
            Self::UnknownExpectation => "the only expectation served is 100-continue",
            Self::Connect => "this server is no proxy",
        }
    }
}

impl std::fmt::Display for Reject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for Reject {}

/// Whether `bytes` may hold the end of a head at or behind `from`. Saves parsing a head again for each piece of it that
/// trickles in.
pub fn is_complete(bytes: &[u8], from: usize) -> bool {
    let from = from.saturating_sub(3);
    memchr::memchr_iter(b'\n', &bytes[from..])
        .map(|at| &bytes[from + at + 1..])
        .any(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
}

/// The head at the start of `bytes`; `None` if more bytes are needed. `room` is where the header fields are put.
///
/// # Errors
/// [`Reject`] as soon as the bytes cannot become a head that is served.
pub fn parse<'h, 'b>(bytes: &'b [u8], room: &'h mut Room<'b>, limits: &Limits) -> Result<Option<Head<'h, 'b>>, Reject> {
    room.clear();
    let line = match plain::read(bytes, room, limits.headers.min(MAX_HEADERS)) {
        Some(line) => line,
        None => match unusual(bytes, room, limits)? {
            Some(line) => line,
            None => return Ok(None),
        },
    };
    let Line { method, target, minor, len } = line;
    if target.len() > limits.target_bytes {
        return Err(Reject::TargetTooLong);
    }
    if len > limits.head_bytes {
        return Err(Reject::HeadTooLarge);
    }
    if method == "CONNECT" {
        return Err(Reject::Connect);
    }
    if !target.starts_with('/') {
        check_target(method, target)?;
    }
    let headers: &'h [Header<'b>] = room;
    let fields = Fields::read(headers, minor)?;
    Ok(Some(Head {
        method,
        target,
        headers,
        minor,
        framing: fields.framing(minor)?,
        keep_alive: fields.keep_alive && !fields.close,
        expects_continue: fields.expects_continue && minor == 1,
        upgrade: fields.upgrade && fields.connection_upgrade && minor == 1,
        h2c: if fields.asks_for_http2(minor) { http2_settings(headers) } else { None },
        len,
    }))
}

/// The same as [`plain::read`] for any head, and with errors.
#[cold]
fn unusual<'b>(bytes: &'b [u8], room: &mut Room<'b>, limits: &Limits) -> Result<Option<Line<'b>>, Reject> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut headers[..limits.headers.min(MAX_HEADERS)]);
    if request.path.is_some_and(|target| target.len() > limits.target_bytes) {
        return Err(Reject::TargetTooLong);
    }
    let len = match parsed {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return partial(bytes, request.path.is_some(), limits),
        Err(httparse::Error::Version) if names_version(bytes) => return Err(Reject::Version),
        Err(error) => return Err(malformed(error)),
    };
    if has_bare_line_feed(&bytes[..len]) {
        return Err(Reject::BareLineFeed);
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(Reject::Malformed("no request line"));
    };
    room.clear();
    room.extend_from_slice(request.headers);
    Ok(Some(Line { method, target, minor, len }))
}

/// Bytes that are no whole head yet must still be able to become one.
fn partial<'b>(bytes: &[u8], has_target: bool, limits: &Limits) -> Result<Option<Line<'b>>, Reject> {
    // Method and target without an end to be seen.
    let too_long = !has_target && bytes.len() > limits.target_bytes + "OPTIONS ".len() && !bytes.contains(&b'\n');
    match () {
        () if too_long => Err(Reject::TargetTooLong),
        () if bytes.len() > limits.head_bytes => Err(Reject::HeadTooLarge),
        () => Ok(None),
    }
}

fn malformed(error: httparse::Error) -> Reject {
    match error {
        httparse::Error::TooManyHeaders => Reject::HeadTooLarge,
        httparse::Error::Version => Reject::Malformed("the version in the request line is invalid"),
        httparse::Error::HeaderName => Reject::Malformed("a header name is invalid"),
        httparse::Error::HeaderValue => Reject::Malformed("a header value is invalid"),
        httparse::Error::NewLine => Reject::BareLineFeed,
        httparse::Error::Status | httparse::Error::Token => Reject::Malformed("the request line is invalid"),
    }
}

/// True if the request line ends in the name of a version, or in the part of one that has come by now.
fn names_version(head: &[u8]) -> bool {
    const FORM: &[u8] = b"HTTP/0.0";
    let line = memchr::memchr(b'\r', head).map_or(head, |end| &head[..end]);
    let is_whole = line.len() < head.len();
    let Some(version) = line.splitn(3, |byte| *byte == b' ').nth(2) else { return false };
    let fits = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    let has_length = if is_whole { version.len() == FORM.len() } else { version.len() <= FORM.len() };
    has_length && version.iter().zip(FORM).all(fits)
}

fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r')
}

/// Targets that are no path: `*` of OPTIONS and absolute ones (RFC 9112 section 3.2).
fn check_target(method: &str, target: &str) -> Result<(), Reject> {
    let is_absolute = || {
        let Some((scheme, rest)) = target.split_once("://") else { return false };
        // User information is no part of a host (RFC 9110 section 4.2.4).
        let names_user = rest.split(['/', '?']).next().is_some_and(|authority| authority.contains('@'));
        !names_user && (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
    };
    if (target == "*" && method == "OPTIONS") || is_absolute() {
        return Ok(());
    }
    Err(Reject::Malformed("the request target is invalid"))
}

/// The fields that decide about the message and the connection.
#[derive(Default)]
struct Fields {
    hosts: usize,
    length: Option<u64>,
    chunked: bool,
    keep_alive: bool,
    /// Goes before `keep_alive` wherever it stands (RFC 9112 section 9.3).
    close: bool,
    expects_continue: bool,
    upgrade: bool,
    h2c: bool,
    connection_upgrade: bool,
    connection_settings: bool,
}

/// The characters of reg-name, IP literals and ports (RFC 3986); no user information. A table, because every request
/// has a host.
const OF_HOST: [bool; 256] = super::alphanumerics_and(b"-._~!$&'()*+,;=:[]%");

impl Fields {
    fn read(headers: &[Header<'_>], minor: u8) -> Result<Self, Reject> {
        let mut fields = Self { keep_alive: minor == 1, ..Self::default() };
        for header in headers {
            // By length first: most fields are none of these.
            match header.name.len() {
                4 if is(header, "host") => fields.host(header.value)?,
                6 if is(header, "expect") => fields.expect(header.value)?,
                7 if is(header, "upgrade") => fields.upgrade(header.value),
                10 if is(header, "connection") => fields.connection(header.value),
                14 if is(header, "content-length") => fields.content_length(header.value)?,
                17 if is(header, "transfer-encoding") => fields.transfer_encoding(header.value)?,
                _ => {}
            }
        }
        if fields.hosts > 1 || (fields.hosts == 0 && minor == 1) {
            return Err(Reject::Host);
        }
        Ok(fields)
    }

    fn host(&mut self, value: &[u8]) -> Result<(), Reject> {
        self.hosts += 1;
        if value.iter().all(|byte| OF_HOST[usize::from(*byte)]) { Ok(()) } else { Err(Reject::Host) }
    }

    fn expect(&mut self, value: &[u8]) -> Result<(), Reject> {
        self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        if self.expects_continue { Ok(()) } else { Err(Reject::UnknownExpectation) }
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                self.connection_upgrade = true;
            } else if option.eq_ignore_ascii_case(HTTP2_SETTINGS) {
                self.connection_settings = true;
            }
        }
    }

    fn upgrade(&mut self, value: &[u8]) {
        for name in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()) {
            if name.eq_ignore_ascii_case(b"h2c") {
                self.h2c = true;
            } else {
                self.upgrade = true;
            }
        }
    }

    fn asks_for_http2(&self, minor: u8) -> bool {
        self.h2c && !self.upgrade && self.connection_upgrade && self.connection_settings && minor == 1
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Reject> {
        // 19 digits always fit; a sign, a list or a space is no length.
        let valid = matches!(value.len(), 1..=19) && value.iter().all(u8::is_ascii_digit);
        if self.length.is_some() || !valid {
            return Err(Reject::AmbiguousLength);
        }
        self.length = Some(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')));
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Reject> {
        if self.chunked {
            return Err(Reject::AmbiguousLength);
        }
        self.chunked = value.eq_ignore_ascii_case(b"chunked");
        let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
        match (self.chunked, last.eq_ignore_ascii_case(b"chunked")) {
            (true, _) => Ok(()),
            (false, true) => Err(Reject::UnknownCoding),
            // Without chunks at the end, the end is not known (RFC 9112 section 6.3).
            (false, false) => Err(Reject::AmbiguousLength),
        }
    }

    fn framing(&self, minor: u8) -> Result<Framing, Reject> {
        match (self.length, self.chunked) {
            (Some(_), true) => Err(Reject::AmbiguousLength),
            // HTTP/1.0 knows no codings: some servers on the way would not understand one.
            (None, true) if minor == 0 => Err(Reject::AmbiguousLength),
            (None, true) => Ok(Framing::Chunked),
            (Some(0) | None, false) => Ok(Framing::None),
            (Some(length), false) => Ok(Framing::Length(length)),
        }
    }
}

const HTTP2_SETTINGS: &[u8] = b"http2-settings";

/// A client's settings; with several of them it asks for nothing (RFC 7540 section 3.2.1).
fn http2_settings<'b>(headers: &[Header<'b>]) -> Option<&'b [u8]> {
    let mut found = headers.iter().filter(|header| header.name.as_bytes().eq_ignore_ascii_case(HTTP2_SETTINGS));
    let settings = found.next()?.value;
    if found.next().is_none() { Some(settings) } else { None }
}

fn is(header: &Header<'_>, name: &str) -> bool {
    header.name.eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { head_bytes: 4096, target_bytes: 1024, headers: 100 };

    /// Length and framing of what is parsed.
    fn summary(bytes: &[u8]) -> Result<Option<(usize, Framing)>, Reject> {
        let mut room = Room::new();
        parse(bytes, &mut room, &LIMITS).map(|head| head.map(|head| (head.len, head.framing)))
    }

    const GOOD: &[&str] = &[
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /a?b HTTP/1.1\r\nhost: h:80\r\nContent-Length: 12\r\nConnection: close, Upgrade\r\n\r\n",
        "PUT http://h/ HTTP/1.0\r\nTransfer-Coding: x\r\nExpect: 100-continue\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\nUpgrade: websocket\r\n\r\n",
    ];

    #[test]
    fn a_part_of_a_good_head_is_incomplete_and_never_wrong() {
        for good in GOOD {
            for end in 0..good.len() {
                assert_eq!(summary(&good.as_bytes()[..end]), Ok(None), "{:?}", &good[..end]);
                assert!(!is_complete(&good.as_bytes()[..end], 0), "{:?}", &good[..end]);
            }
            let followed = format!("{good}GET");
            for from in 0..=good.len() {
                assert!(is_complete(followed.as_bytes(), from), "{good:?} from {from}");
            }
            assert_eq!(summary(followed.as_bytes()).unwrap().unwrap().0, good.len());
        }
    }

    #[test]
    fn a_head_and_a_target_may_be_as_long_as_their_limits() {
        let filled = |before: &str, after: &str, length: usize| {
            format!("{before}{}{after}", "y".repeat(length - before.len() - after.len()))
        };
        let head = |length| filled("GET / HTTP/1.1\r\nHost: h\r\nx: ", "\r\n\r\n", length);
        let unfinished = |length| filled("GET / HTTP/1.1\r\nHost: h\r\nx: ", "", length);
        let target = |length| format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", filled("/", "", length));
        let (bytes, targets) = (LIMITS.head_bytes, LIMITS.target_bytes);
        let check = |text: String, expected| assert_eq!(summary(text.as_bytes()), expected, "{} bytes", text.len());
        check(head(bytes), Ok(Some((bytes, Framing::None))));
        check(head(bytes + 1), Err(Reject::HeadTooLarge));
        check(unfinished(bytes), Ok(None));
        check(unfinished(bytes + 1), Err(Reject::HeadTooLarge));
        check(target(targets), Ok(Some((target(targets).len(), Framing::None))));
        check(target(targets + 1), Err(Reject::TargetTooLong));
    }

    #[test]
    fn a_damaged_head_is_refused_or_still_ends_in_crlf() {
        // xorshift: the same damage every time.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut plain = 0;
        for round in 0..200_000 {
            let mut bytes = GOOD[round % GOOD.len()].as_bytes().to_vec();
            for _ in 0..=random(3) {
                let (at, new) = (random(bytes.len()), b"\r\n\0 :;,\t\x80A/0"[random(12)]);
                match random(3) {
                    0 => bytes[at] = new,
                    1 => bytes.insert(at, new),
                    _ => drop(bytes.remove(at)),
                }
            }
            let (mut one_pass, mut httparse) = (Room::new(), Room::new());
            if let Some(line) = plain::read(&bytes, &mut one_pass, LIMITS.headers) {
                assert_eq!(unusual(&bytes, &mut httparse, &LIMITS), Ok(Some(line)), "{}", bytes.escape_ascii());
                assert_eq!(one_pass, httparse, "{}", bytes.escape_ascii());
                plain += 1;
            }
            if let Ok(Some((len, _))) = summary(&bytes) {
                let head = &bytes[..len];
                assert!(head.ends_with(b"\r\n\r\n") && !has_bare_line_feed(head), "{}", head.escape_ascii());
            }
        }
        assert!(plain > 10_000, "{plain} were read in one pass");
    }
}

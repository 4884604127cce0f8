//! Limits of a client's frames beside its requests' heads and bodies: their length, and their number in a second.
//!
//! h3 buffers a frame of any length until it is complete, and skips any number of unknown frames. It takes an empty
//! DATA frame for the end of a body, and a body that breaks off within a frame for a complete one. So this module
//! checks the frames, and passes on only those that h3 needs.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use h3::error::Code;

use super::section;

/// Bytes of a frame that is neither a head nor data: settings and ids are a few dozen.
const MAX_ASIDE: u64 = 4096;

/// Bytes of a DATA frame up to which it is put together with others, and of the head of what they make.
const SMALL: u64 = 256;
const HEAD: usize = 9;

const DATA: u64 = 0;
const HEADERS: u64 = 1;
const CANCEL_PUSH: u64 = 3;
const MAX_PUSH_ID: u64 = 0x0d;
/// The last type that RFC 9114 knows (section 7.2). Below it are also the types of HTTP/2 that it forbids.
const LAST_KNOWN: u64 = MAX_PUSH_ID;

/// A breach of the limits or of the protocol by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A head of so many bytes.
    Head(u64),
    /// Another frame of so many bytes.
    Length(u64),
    /// More frames that carry nothing than are allowed.
    Flood,
    /// A stream that ends within a frame.
    Truncated,
    /// Trailers with fields that begin with a colon.
    Trailers,
    /// A push that was not promised, or fewer of them than before.
    Push,
}

impl Fault {
    /// How the client is told (RFC 9114 sections 4.1.2, 7.1, 7.2.3, 7.2.7 and 8.1).
    pub(super) fn code(self) -> Code {
        match self {
            Self::Head(_) | Self::Length(_) | Self::Flood => Code::H3_EXCESSIVE_LOAD,
            Self::Truncated => Code::H3_FRAME_ERROR,
            Self::Trailers => Code::H3_MESSAGE_ERROR,
            Self::Push => Code::H3_ID_ERROR,
        }
    }

    /// Whether the connection ends, and not only the request.
    pub(super) fn ends_connection(self) -> bool {
        !matches!(self, Self::Head(_) | Self::Trailers)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(length) => write!(f, "a head of {length} bytes"),
            Self::Length(length) => write!(f, "a frame of {length} bytes"),
            Self::Flood => f.write_str("too many frames that carry nothing"),
            Self::Truncated => f.write_str("the stream ends within a frame"),
            Self::Trailers => f.write_str("a pseudo-header field among the trailers"),
            Self::Push => f.write_str("a push that was not promised, or a lower limit of pushes"),
        }
    }
}

impl std::error::Error for Fault {}

/// The cost of frames without content that a connection may send in a second.
#[derive(Debug)]
pub(super) struct Budget {
    most: u32,
    second: AtomicU64,
    spent: AtomicU32,
}

impl Budget {
    /// 0 is no limit.
    pub(super) fn new(most: u32) -> Self {
        Self { most, second: AtomicU64::new(0), spent: AtomicU32::new(0) }
    }

    /// Whether that is still allowed in this second, of any clock. A cost that is spent at the same time elsewhere may
    /// be counted to another second: it is a bound, no account.
    pub(super) fn spend(&self, cost: u32, second: u64) -> bool {
        if self.most == 0 {
            return true;
        }
        if self.second.swap(second, Relaxed) != second {
            self.spent.store(0, Relaxed);
        }
        self.spent.fetch_add(cost, Relaxed).saturating_add(cost) <= self.most
    }

    /// Something came that justifies so much.
    pub(super) fn earn(&self, worth: u32) {
        // A cost that another thread spends in between is not given back: it is a bound, no account.
        self.spent.store(self.spent.load(Relaxed).saturating_sub(worth), Relaxed);
    }
}

/// At this age a request that is given up was meant when it began.
const MEANT: Duration = Duration::from_secs(1);

/// How many of its requests a client gives up as soon as they have begun.
#[derive(Debug)]
pub(super) struct Resets {
    most: u64,
    begun: AtomicU64,
    early: AtomicU64,
}

impl Resets {
    /// So many of them are allowed, and half of all requests: a sixteenth more, for a client that draws lots for each is now
    /// and then beyond the half.
    pub(super) fn new(most: u64) -> Self {
        Self { most, begun: AtomicU64::new(0), early: AtomicU64::new(0) }
    }

    /// A request begins.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Relaxed);
    }

    /// A request of this age is given up; whether that is still allowed.
    pub(super) fn give_up(&self, age: Duration) -> bool {
        if age >= MEANT {
            return true;
        }
        let early = self.early.fetch_add(1, Relaxed) + 1;
        early <= self.most || 16 * (early - self.most) <= 9 * self.begun.load(Relaxed)
    }
}

/// A number of variable length as it comes in (RFC 9000 section 16).
#[derive(Debug, Default)]
pub(super) struct Number {
    /// It, as far as it has come.
    value: u64,
    /// Bytes that it lacks.
    missing: u32,
}

impl Number {
    /// Takes a byte; gives the number when it is whole.
    pub(super) fn digit(&mut self, byte: u8) -> Option<u64> {
        if self.missing == 0 {
            self.missing = 1 << (byte >> 6);
            self.value = u64::from(byte & 0x3f);
        } else {
            self.value = self.value << 8 | u64::from(byte);
        }
        self.missing -= 1;
        (self.missing == 0).then_some(self.value)
    }
}

/// A number of variable length at the front, and the bytes behind it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let size = 1 << (bytes.first()? >> 6);
    let (digits, rest) = bytes.split_at_checked(size)?;
    let value = digits.iter().fold(0, |value, &digit| value << 8 | u64::from(digit));
    Some((value & !(0b11 << (8 * size - 2)), rest))
}

/// The content of a small DATA frame that stands whole at the front, and the bytes behind it.
fn small_data(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = number(bytes).filter(|(kind, _)| *kind == DATA)?;
    let (length, rest) = number(rest).filter(|(length, _)| (1..=SMALL).contains(length))?;
    // At most [`SMALL`].
    rest.split_at_checked(length as usize)
}

/// Takes small DATA frames that have come whole, one behind the other, as one frame: h3 keeps each apart, and its head from its content.
fn together(piece: &mut Bytes) -> Option<Bytes> {
    let (first, rest) = small_data(piece)?;
    let (second, mut rest) = small_data(rest)?;
    let mut frame = BytesMut::with_capacity(HEAD + piece.len());
    frame.put_bytes(0, HEAD);
    frame.extend_from_slice(first);
    frame.extend_from_slice(second);
    while let Some((content, behind)) = small_data(rest) {
        frame.extend_from_slice(content);
        rest = behind;
    }
    // Its type in one byte, which is 0, its length in eight.
    let length = (frame.len() - HEAD) as u64 | 0b11 << 62;
    frame[1..HEAD].copy_from_slice(&length.to_be_bytes());
    piece.advance(piece.len() - rest.len());
    Some(frame.freeze())
}

/// A HEADERS frame without a field, which h3 answers as a malformed request: H3_MESSAGE_ERROR on both sides of the stream.
const MALFORMED: [u8; 4] = [HEADERS as u8, 2, 0, 0];

/// A HEADERS frame that h3 answers with status 431, because its fields are more than so many bytes: they are entries of QPACK's static
/// table of 64 bytes each.
fn too_large(most: u64) -> Vec<u8> {
    const ENTRY: (u8, u64) = (0xc0 | 31, 64);
    let section = usize::try_from(2 + most / ENTRY.1 + 1).unwrap_or(usize::MAX);
    let mut frame = Vec::with_capacity(HEAD + section);
    frame.push(HEADERS as u8);
    frame.put_u64(section as u64 | 0b11 << 62);
    frame.extend_from_slice(&[0, 0]);
    frame.resize(HEAD + section, ENTRY.0);
    frame
}

/// Follows the frames of a stream, and lets through those that mean something. Small DATA frames that come together
/// become one. Checks that h3 does not make are made here, when all of a frame has come: which fields with a colon a
/// section has, and pushes.
#[derive(Debug)]
pub(super) struct Sieve {
    stream: Kind,
    place: Place,
    number: Number,
    /// The bytes of a frame so far, as they were sent, until it is known whether it is let through.
    held: Vec<u8>,
    /// Bytes that a request's head may have.
    head: u64,
}

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A request, whose head has come or not.
    Request { has_begun: bool },
    /// The connection, and how many pushes the client allows.
    Control { pushes: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A frame's type.
    Type,
    /// The length of a frame of this type.
    Length(u64),
    /// A frame's content.
    Content { left: u64, passes: bool },
    /// The content of a frame of this type that is held until it is whole; it begins behind so many bytes.
    Whole { kind: u64, start: usize, left: u64 },
}

impl Sieve {
    /// For a request, whose heads have so many bytes at most as they are sent.
    pub(super) fn request(head: u64) -> Self {
        Self::new(Kind::Request { has_begun: false }, head)
    }

    /// For the control stream, behind its type.
    pub(super) fn control() -> Self {
        Self::new(Kind::Control { pushes: 0 }, MAX_ASIDE)
    }

    fn new(stream: Kind, head: u64) -> Self {
        Self { stream, place: Place::Type, number: Number::default(), held: Vec::new(), head }
    }

    /// Takes from the front of a piece of the stream what is next to be let through; `None` when nothing is left of it. `spend` says
    /// whether another frame that carries nothing is still allowed.
    ///
    /// # Errors
    /// When the client may not send what it has sent. The stream is of no use after that.
    pub(super) fn next(&mut self, piece: &mut Bytes, spend: impl Fn() -> bool) -> Result<Option<Bytes>, Fault> {
        while !piece.is_empty() {
            match self.place {
                Place::Content { left, passes } => {
                    let part = piece.split_to(usize::try_from(left).unwrap_or(usize::MAX).min(piece.len()));
                    self.place = Self::content(left - part.len() as u64, passes);
                    if passes {
                        return Ok(Some(part));
                    }
                }
                Place::Whole { kind, start, left } => {
                    let part = piece.split_to(usize::try_from(left).unwrap_or(usize::MAX).min(piece.len()));
                    self.held.extend_from_slice(&part);
                    if let Some(frame) = self.hold(kind, start, left - part.len() as u64)? {
                        return Ok(Some(frame));
                    }
                }
                Place::Type | Place::Length(_) => {
                    if self.held.is_empty()
                        && let Some(together) = together(piece)
                    {
                        return Ok(Some(together));
                    }
                    let byte = piece.get_u8();
                    self.held.push(byte);
                    let Some(number) = self.number.digit(byte) else { continue };
                    if let Some(part) = self.enter(number, &spend)? {
                        return Ok(Some(part));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Looks where the stream has ended.
    ///
    /// # Errors
    /// When that is within a frame.
    pub(super) fn finish(&self) -> Result<(), Fault> {
        match self.place {
            Place::Type if self.held.is_empty() => Ok(()),
            Place::Type | Place::Length(_) | Place::Content { .. } | Place::Whole { .. } => Err(Fault::Truncated),
        }
    }

    fn content(left: u64, passes: bool) -> Place {
        if left == 0 { Place::Type } else { Place::Content { left, passes } }
    }

    /// Goes on behind a number; returns the bytes that are let through by then.
    fn enter(&mut self, number: u64, spend: &impl Fn() -> bool) -> Result<Option<Bytes>, Fault> {
        let kind = match self.place {
            Place::Length(kind) => kind,
            Place::Type | Place::Content { .. } | Place::Whole { .. } => {
                self.place = Place::Length(number);
                return Ok(None);
            }
        };
        let is_first = self.stream == Kind::Request { has_begun: false };
        match kind {
            HEADERS if number > self.head && is_first => {
                // The rest of the head is not kept, and the stream ends with the answer.
                self.stream = Kind::Request { has_begun: true };
                self.place = Self::content(number, false);
                self.held.clear();
                return Ok(Some(too_large(self.head).into()));
            }
            HEADERS if number > self.head => return Err(Fault::Head(number)),
            DATA | HEADERS => {}
            _ if number > MAX_ASIDE => return Err(Fault::Length(number)),
            _ => {}
        }
        let carries = kind == HEADERS || (kind == DATA && number > 0);
        if !carries && !spend() {
            return Err(Fault::Flood);
        }
        let is_judged = match self.stream {
            Kind::Request { .. } => kind == HEADERS,
            Kind::Control { .. } => kind == CANCEL_PUSH || kind == MAX_PUSH_ID,
        };
        if is_judged {
            return self.hold(kind, self.held.len(), number);
        }
        let passes = carries || (kind != DATA && kind <= LAST_KNOWN);
        self.place = Self::content(number, passes);
        let head = std::mem::take(&mut self.held);
        Ok(passes.then(|| head.into()))
    }

    /// Goes on within a frame that is held until it is whole; returns the bytes that are let through if it is.
    fn hold(&mut self, kind: u64, start: usize, left: u64) -> Result<Option<Bytes>, Fault> {
        if left > 0 {
            self.place = Place::Whole { kind, start, left };
            return Ok(None);
        }
        self.place = Place::Type;
        let mut frame = std::mem::take(&mut self.held);
        let content = &frame[start..];
        match &mut self.stream {
            Kind::Request { has_begun: true } if !section::is_trailers(content) => return Err(Fault::Trailers),
            Kind::Request { has_begun: true } => {}
            Kind::Request { has_begun } => {
                *has_begun = true;
                if !section::is_request(content) {
                    frame = MALFORMED.to_vec();
                }
            }
            // Nothing is ever promised.
            Kind::Control { .. } if kind == CANCEL_PUSH => return Err(Fault::Push),
            // Content that is no number is for h3 to judge.
            Kind::Control { pushes } => {
                if let Some((limit, [])) = number(content) {
                    if limit < *pushes {
                        return Err(Fault::Push);
                    }
                    *pushes = limit;
                }
            }
        }
        Ok(Some(frame.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A frame with numbers of four bytes, as long as they may be written.
    fn frame(kind: u32, length: usize) -> Vec<u8> {
        let number = |number: u32| (number | 0x8000_0000).to_be_bytes();
        [&number(kind)[..], &number(u32::try_from(length).unwrap()), &vec![0xff; length]].concat()
    }

    /// Frames by type and content; data that stands together is one.
    fn meaning(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut frames: Vec<(u64, Vec<u8>)> = Vec::new();
        while let Some((kind, rest)) = number(bytes) {
            let (length, rest) = number(rest).unwrap();
            let (content, behind) = rest.split_at(usize::try_from(length).unwrap());
            match frames.last_mut() {
                Some((DATA, data)) if kind == DATA => data.extend_from_slice(content),
                _ => frames.push((kind, content.to_vec())),
            }
            bytes = behind;
        }
        frames
    }

    /// Sends this in pieces of every size, on a stream that ends behind it, where so many frames that carry nothing are allowed; the
    /// frames that are let through, if all may be sent.
    fn check(sieve: impl Fn() -> Sieve, bytes: &[u8], allowed: u32, expected: Result<&[u8], Fault>) {
        for size in 1..=bytes.len().min(50) {
            let (mut sieve, spent) = (sieve(), Cell::new(0));
            let spend = || {
                spent.set(spent.get() + 1);
                spent.get() <= allowed
            };
            let found = through(&mut sieve, bytes.chunks(size), spend).and_then(|all| sieve.finish().map(|()| all));
            let found = found.map(|bytes| meaning(&bytes));
            assert_eq!(found, expected.map(meaning), "{bytes:.20?} in pieces of {size}");
        }
    }

    fn through<'a>(
        sieve: &mut Sieve,
        pieces: impl Iterator<Item = &'a [u8]>,
        spend: impl Fn() -> bool,
    ) -> Result<Vec<u8>, Fault> {
        let mut all = Vec::new();
        for piece in pieces {
            let mut piece = Bytes::copy_from_slice(piece);
            while let Some(part) = sieve.next(&mut piece, &spend)? {
                assert!(!part.is_empty(), "h3 would wait for more");
                all.extend_from_slice(&part);
            }
            assert!(piece.is_empty());
        }
        Ok(all)
    }

    #[test]
    fn frames_of_requests() {
        let request = || Sieve::request(100);
        let whole = [frame(1, 100), frame(0, 5000), frame(1, 10)].concat();
        check(request, &whole, 0, Ok(&whole));
        // More than a request's head may have becomes a frame that h3 refuses as too large, and nothing of it is kept.
        check(request, &frame(1, 101), 0, Ok(&too_large(100)));
        check(request, &[frame(1, 10), frame(1, 101)].concat(), 0, Err(Fault::Head(101)));
        // The static table's entry 31 twice, with 64 bytes each.
        assert_eq!(too_large(100), [1, 0xc0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0xdf, 0xdf]);
        check(request, &[frame(1, 10), frame(0x21, 4097)].concat(), 9, Err(Fault::Length(4097)));
        // Unknown frames, and empty data, are left out.
        let means = [frame(1, 10), frame(0, 1)].concat();
        check(request, &[frame(1, 10), frame(0x21, 4096), frame(0, 1)].concat(), 1, Ok(&means));
        check(request, &[frame(1, 10), frame(0, 0), frame(0x41, 0), frame(0, 1)].concat(), 2, Ok(&means));
        check(request, &[frame(0x21, 0).repeat(5), means.clone()].concat(), 4, Err(Fault::Flood));
        check(request, &[means.clone(), frame(0, 0).repeat(5)].concat(), 4, Err(Fault::Flood));
        check(request, &[means.clone(), frame(0, 0).repeat(5)].concat(), 5, Ok(&means));
        // Those that have no place in a request are for h3 to judge.
        check(request, &frame(4, 0), 1, Ok(&frame(4, 0)));
        // Numbers of one, two and eight bytes; only the length's beginning has to come.
        check(request, &[1, 0x40, 3, 9, 9, 9, 0, 0], 1, Ok(&[1, 0x40, 3, 9, 9, 9]));
        let longest = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        check(request, &[&frame(1, 10)[..], &longest].concat(), 0, Err(Fault::Head((1 << 62) - 1)));
    }

    /// `:path` twice, and `:status`, by QPACK's static table.
    #[test]
    fn sections_are_judged_when_they_are_whole() {
        let request = || Sieve::request(100);
        let (head, trailers) = ([1, 4, 0, 0, 0xd1, 0xc1], [1, 3, 0, 0, 0xdd]);
        check(request, &[&head[..], &trailers].concat(), 0, Ok(&[&head[..], &trailers].concat()));
        check(request, &[1, 4, 0, 0, 0xc1, 0xc1], 0, Ok(&MALFORMED));
        check(request, &[1, 3, 0, 0, 0xd9], 0, Ok(&MALFORMED));
        check(request, &[&head[..], &[1, 3, 0, 0, 0xd9]].concat(), 0, Err(Fault::Trailers));
        check(request, &[&head[..], &[0, 1, 7], &head].concat(), 0, Err(Fault::Trailers));
    }

    #[test]
    fn small_data_that_comes_together_is_one_frame() {
        let request = || Sieve::request(100);
        let head = frame(1, 10);
        let short = [DATA as u8, 2, 7, 8];
        for (bytes, parts) in [
            ([&head[..], &frame(0, 1).repeat(100)].concat(), 1),
            ([&head[..], &short.repeat(500)].concat(), 1),
            ([&head[..], &short.repeat(9), &frame(0, 256), &frame(0, 257), &short].concat(), 1 + 2 + 2),
            // An empty frame counts.
            ([&head[..], &short.repeat(2), &frame(0, 0), &short.repeat(3)].concat(), 2),
            // A frame that has not come whole waits for the rest.
            ([&head[..], &short.repeat(2), &short[..3]].concat(), 1 + 2),
        ] {
            let (mut sieve, mut piece, mut count) = (request(), Bytes::copy_from_slice(&bytes), 0);
            while sieve.next(&mut piece, || true).unwrap().is_some() {
                count += 1;
            }
            // A request's head is one part; of data, a frame's head and its content are a part each.
            assert_eq!(count, 1 + parts, "{bytes:?}");
        }
        let mixed = [&head[..], &short.repeat(9), &frame(0, 257), &frame(0, 0), &short, &short, &frame(1, 3)].concat();
        let means = [&head[..], &short.repeat(9), &frame(0, 257), &short, &short, &frame(1, 3)].concat();
        check(request, &mixed, 1, Ok(&means));
        check(request, &mixed, 0, Err(Fault::Flood));
    }

    #[test]
    fn streams_that_break_off() {
        for kind in [0, 1, 0x21] {
            let whole = frame(kind, 20);
            for length in 1..whole.len() {
                check(|| Sieve::request(100), &whole[..length], 1, Err(Fault::Truncated));
                check(Sieve::control, &whole[..length], 1, Err(Fault::Truncated));
            }
        }
    }

    #[test]
    fn frames_of_the_control_stream() {
        let whole = [frame(4, 20), frame(7, 1)].concat();
        check(Sieve::control, &whole, 2, Ok(&whole));
        check(Sieve::control, &frame(4, 4097), 2, Err(Fault::Length(4097)));
        check(Sieve::control, &[13, 1, 5].repeat(3), 2, Err(Fault::Flood));
        check(Sieve::control, &[13, 1, 5, 13, 2, 0x40, 5, 13, 1, 6], 3, Ok(&[13, 1, 5, 13, 2, 0x40, 5, 13, 1, 6]));
        check(Sieve::control, &[13, 1, 5, 13, 1, 4], 3, Err(Fault::Push));
        check(Sieve::control, &[3, 1, 0], 3, Err(Fault::Push));
        // Content that is no number, and pushes where they have no place, are for h3 to judge.
        check(Sieve::control, &[13, 2, 5, 5, 13, 0], 3, Ok(&[13, 2, 5, 5, 13, 0]));
        check(|| Sieve::request(100), &[3, 1, 0], 3, Ok(&[3, 1, 0]));
    }

    #[test]
    fn random_streams_are_bounded_or_refused() {
        let (mut state, mut ends) = (1_u64, [0; 5]);
        for round in 0..20_000 {
            let mut random = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                // Small numbers are more likely to be types and lengths.
                ((state >> 40) as u8) >> (state >> 61)
            };
            let bytes: Vec<u8> = (0..100).map(|_| random()).collect();
            let mut sieve = if round % 2 == 0 { Sieve::control() } else { Sieve::request(50) };
            let found = through(&mut sieve, bytes.chunks(1 + round % 30), || round % 3 > 0);
            ends[match found {
                Ok(all) => {
                    // A head that is too large becomes one of few bytes, and small frames become larger ones.
                    assert!(all.len() <= too_large(50).len() + bytes.len() + HEAD * bytes.len() / 6, "{bytes:?}");
                    0
                }
                Err(Fault::Head(length) | Fault::Length(length)) => {
                    assert!(length > 50, "{bytes:?}");
                    1
                }
                Err(Fault::Flood) => 2,
                Err(Fault::Trailers | Fault::Push) => 3,
                Err(Fault::Truncated) => 4,
            }] += 1;
        }
        assert!(ends[..4].iter().all(|count| *count > 100) && ends[4] == 0, "{ends:?}");
    }

    #[test]
    fn a_budget_is_for_a_second() {
        let budget = Budget::new(3);
        assert!(budget.spend(2, 7) && budget.spend(1, 7));
        assert!(budget.spend(3, 8));
        assert!(!budget.spend(1, 8));
        assert!(Budget::new(0).spend(u32::MAX, 1));
    }

    #[test]
    fn requests_justify_what_comes_beside_them() {
        let budget = Budget::new(3);
        for _ in 0..1_000_000 {
            budget.earn(2);
            assert!(budget.spend(1, 7) && budget.spend(1, 7));
        }
        // Credit beyond the spending is not saved up.
        budget.earn(1000);
        assert!(budget.spend(3, 7) && !budget.spend(1, 7));
    }

    /// The request whose end is one too many, of a million of which those are given up that `gives_up` says.
    fn one_too_many(gives_up: impl Fn(u64) -> bool) -> Option<u64> {
        let resets = Resets::new(500);
        (0..1_000_000).find(|number| {
            resets.begin();
            gives_up(*number) && !resets.give_up(Duration::ZERO)
        })
    }

    #[test]
    fn half_of_many_requests_may_be_given_up() {
        assert_eq!(one_too_many(|number| number % 2 == 0), None);
        // Lots that are drawn: bits of numbers that look like chance (MMIX' generator).
        let lot = |number: u64| number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for seed in 0..4 {
            assert_eq!(one_too_many(|number| (lot(lot(number ^ seed << 32)) >> 40) & 1 == 0), None);
        }
        assert_eq!(one_too_many(|_| true), Some(1142));
        assert!(one_too_many(|number| number % 3 > 0).is_some());
        let resets = Resets::new(0);
        assert!(resets.give_up(MEANT) && !resets.give_up(MEANT - Duration::from_nanos(1)));
    }
}

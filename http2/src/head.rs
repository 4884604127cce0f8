//! Requests' heads: checked when they are decoded, and known again by the bytes of their header block.

use std::fmt;
use std::ops::Range;

use crate::hpack::{Decoder, Fields, Malformed};
use crate::priority::Priority;

/// Heads that a connection remembers: the calls that a client makes again and again.
const REMEMBERED: usize = 4;

/// Bytes of a header block, and of its fields, beyond which a head is not remembered.
const SMALL: usize = 1024;

/// Bytes of fields for each byte of their block that are decoded at most, beyond [`FREE`]: a field that is in the header table
/// costs a byte each time, and may stand for kilobytes. Huffman's code makes at most 1.6 bytes of one.
const EXPANSION: usize = 8;

/// Bytes of fields that any block may stand for: as many as gRPC's C core takes.
const FREE: usize = 16 * 1024;

/// The head of a request: a method and a target, and fields that RFC 9113 section 8 allows.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    id: u64,
    fields: Fields,
    pseudo: Pseudo,
    content_length: Option<u64>,
    priority: Priority,
}

impl RequestHead {
    /// A number that heads of one connection share only if they are the same in every byte: anything made of one can be
    /// used for the other.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// `:method`.
    pub fn method(&self) -> &[u8] {
        self.text(self.pseudo.method.as_ref()).unwrap_or_default()
    }

    /// `:scheme`; only a CONNECT has none.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.text(self.pseudo.scheme.as_ref())
    }

    /// `:path`, which is not empty; only a CONNECT has none.
    pub fn path(&self) -> Option<&[u8]> {
        self.text(self.pseudo.path.as_ref())
    }

    /// `:authority`.
    pub fn authority(&self) -> Option<&[u8]> {
        self.text(self.pseudo.authority.as_ref())
    }

    /// `:protocol` of an extended CONNECT (RFC 8441).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.text(self.pseudo.protocol.as_ref())
    }

    /// The fields in their order, without the above.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.fields.iter().skip(self.pseudo.count)
    }

    /// The first value of a field.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.get(name)
    }

    /// The value of `content-length`. A body of another length ends with an error.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// The value of `priority`.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    fn text(&self, span: Option<&Range<usize>>) -> Option<&[u8]> {
        span.map(|span| &self.fields.text()[span.clone()])
    }

    /// Takes what was decoded.
    fn check(&mut self, extended_connect: bool) -> Result<(), Invalid> {
        (self.pseudo, self.content_length, self.priority) = (Pseudo::default(), None, Priority::default());
        for (start, name, value) in self.fields.spans() {
            let text = self.fields.text();
            if text[start..name].starts_with(b":") {
                self.pseudo.take(&text[start..name], name..value, extended_connect)?;
                continue;
            }
            self.pseudo.is_over = true;
            let (name, value) = (&text[start..name], &text[name..value]);
            check_field(name, value)?;
            match name {
                b"content-length" => {
                    let length = parse_length(value)?;
                    if self.content_length.replace(length).is_some_and(|other| other != length) {
                        return Err(Invalid);
                    }
                }
                b"priority" => self.priority = Priority::parse(value),
                _ => {}
            }
        }
        let is_plain_value = |span: &Range<usize>| is_value(&self.fields.text()[span.clone()]);
        let Pseudo { method, scheme, path, authority, protocol, .. } = &self.pseudo;
        if ![method, scheme, path, authority, protocol].into_iter().flatten().all(is_plain_value) {
            return Err(Invalid);
        }
        self.check_target()
    }

    /// The rules of RFC 9113 sections 8.3.1 and 8.5, and of RFC 8441 section 4.
    fn check_target(&self) -> Result<(), Invalid> {
        let (method, path) = (self.method(), self.path());
        // User information is no part of a host (RFC 9113 section 8.3.1).
        let of_http = self.scheme().is_none_or(is_http);
        let names_user =
            of_http && [self.authority(), self.get(b"host")].into_iter().flatten().any(|host| host.contains(&b'@'));
        if !is_token(method) || names_user {
            return Err(Invalid);
        }
        if method == b"CONNECT" && self.protocol().is_none() {
            let is_target = self.authority().is_some() && self.scheme().is_none() && path.is_none();
            return if is_target { Ok(()) } else { Err(Invalid) };
        }
        let (Some(path), Some(scheme)) = (path, self.scheme()) else { return Err(Invalid) };
        if self.protocol().is_some() && (method != b"CONNECT" || self.authority().is_none()) {
            return Err(Invalid);
        }
        let is_path = path.starts_with(b"/") || path == b"*" && method == b"OPTIONS" || !is_http(scheme);
        let is_whole = !path.is_empty() && !path.iter().any(|byte| matches!(byte, b' ' | b'\t'));
        // Two names for one host could lead to two places.
        let is_one_host = match (self.authority(), self.get(b"host")) {
            (Some(authority), Some(host)) => authority.eq_ignore_ascii_case(host),
            _ => true,
        };
        if is_path && is_whole && is_one_host { Ok(()) } else { Err(Invalid) }
    }
}

fn is_http(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
}

/// Where the fields are that begin with a colon.
#[derive(Clone, Debug, Default)]
struct Pseudo {
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    path: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    protocol: Option<Range<usize>>,
    count: usize,
    /// Whether another field has come.
    is_over: bool,
}

impl Pseudo {
    fn take(&mut self, name: &[u8], value: Range<usize>, extended_connect: bool) -> Result<(), Invalid> {
        let place = match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":path" => &mut self.path,
            b":authority" => &mut self.authority,
            b":protocol" if extended_connect => &mut self.protocol,
            _ => return Err(Invalid),
        };
        self.count += 1;
        if self.is_over || place.replace(value).is_some() { Err(Invalid) } else { Ok(()) }
    }
}

/// A head, or trailers, that HTTP/2 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid;

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed request")
    }
}

/// Trailers have no fields that begin with a colon.
pub(crate) fn check_trailers(fields: &Fields) -> Result<(), Invalid> {
    fields.iter().try_for_each(|(name, value)| check_field(name, value))
}

/// The rules of RFC 9113 sections 8.2.1 and 8.2.2.
fn check_field(name: &[u8], value: &[u8]) -> Result<(), Invalid> {
    let is_forbidden = match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => true,
        b"te" => !value.eq_ignore_ascii_case(b"trailers"),
        _ => false,
    };
    if is_forbidden || name.is_empty() || !name.iter().all(|byte| NAME[usize::from(*byte)]) || !is_value(value) {
        return Err(Invalid);
    }
    Ok(())
}

/// The bytes of a field's name: a token's (RFC 9110 section 5.6.2) in lower case.
const NAME: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 256 {
        table[byte] = is_token_byte(byte as u8) && !(byte as u8).is_ascii_uppercase();
        byte += 1;
    }
    table
};

const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_token_byte(*byte))
}

/// RFC 9110 section 5.5: no control characters, and no spaces at the ends.
fn is_value(text: &[u8]) -> bool {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    // Without branches, so that it is done for many bytes at a time.
    let is_control = |byte: u8| (byte < b' ' && byte != b'\t') | (byte == 0x7f);
    !text.iter().fold(false, |found, byte| found | is_control(*byte))
        && !is_space(text.first())
        && !is_space(text.last())
}

fn parse_length(text: &[u8]) -> Result<u64, Invalid> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return Err(Invalid);
    }
    Ok(text.iter().fold(0, |length, digit| length * 10 + u64::from(digit - b'0')))
}

/// The heads that a connection has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads {
    known: [Known; REMEMBERED],
    /// Where blocks are decoded.
    fresh: RequestHead,
    /// The place of `known` that is written over next.
    next: usize,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct Known {
    block: Vec<u8>,
    version: u64,
    head: RequestHead,
}

/// The result of a request's header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A request, whose head is at this place.
    Request(usize),
    /// More than may come; the fields before the limit are the head at this place.
    Cut(usize),
    /// More than may come, and not even a target before the limit.
    TooLarge,
    /// A request that HTTP/2 does not allow.
    Invalid,
}

impl Heads {
    /// The head at a place that [`Heads::decode`] gave, until it is called again.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> &RequestHead {
        self.known.get(place).map_or(&self.fresh, |known| &known.head)
    }

    /// The fields of the trailers that [`Heads::decode_trailers`] decoded.
    pub(crate) fn trailers(&self) -> &Fields {
        &self.fresh.fields
    }

    /// Decodes a request's header block, or knows it again.
    #[inline]
    pub(crate) fn decode(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limit: usize,
        extended_connect: bool,
    ) -> Result<Found, Malformed> {
        let version = decoder.version();
        let is_known = |known: &Known| known.version == version && known.block == block && known.head.id != 0;
        if let Some(place) = self.known.iter().position(is_known) {
            return Ok(Found::Request(place));
        }
        self.decode_anew(decoder, block, limit, extended_connect)
    }

    fn decode_anew(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limit: usize,
        extended_connect: bool,
    ) -> Result<Found, Malformed> {
        let decoded = decoder.decode(block, bounded(limit, block), &mut self.fresh.fields)?;
        let is_right = self.fresh.check(extended_connect).is_ok();
        self.count += 1;
        self.fresh.id = self.count;
        match (decoded.is_whole, is_right) {
            (true, true) => {}
            (true, false) => return Ok(Found::Invalid),
            (false, true) => return Ok(Found::Cut(REMEMBERED)),
            (false, false) => return Ok(Found::TooLarge),
        }
        if !decoded.is_repeatable || block.len() > SMALL || self.fresh.fields.size() > SMALL {
            return Ok(Found::Request(REMEMBERED));
        }
        let place = self.next;
        self.next = (self.next + 1) % REMEMBERED;
        let known = &mut self.known[place];
        std::mem::swap(&mut known.head, &mut self.fresh);
        known.version = decoder.version();
        known.block.clear();
        known.block.extend_from_slice(block);
        Ok(Found::Request(place))
    }

    /// Forgets a large head that is no longer needed.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.fresh.fields.is_larger_than(SMALL * 4) {
            self.fresh.fields.shrink_to(SMALL * 4);
        }
    }

    /// Decodes the header block of trailers.
    pub(crate) fn decode_trailers(
        &mut self,
        decoder: &mut Decoder,
        block: &[u8],
        limit: usize,
    ) -> Result<Trailers, Malformed> {
        let decoded = decoder.decode(block, bounded(limit, block), &mut self.fresh.fields)?;
        let is_right = check_trailers(&self.fresh.fields).is_ok();
        Ok(match (decoded.is_whole, is_right) {
            (true, true) => Trailers::Right,
            (_, false) => Trailers::Invalid,
            (false, true) => Trailers::TooLarge,
        })
    }
}

/// The bytes of fields that a block may stand for.
fn bounded(limit: usize, block: &[u8]) -> usize {
    limit.min(FREE + block.len() * EXPANSION)
}

/// The result of the header block behind a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trailers {
    Right,
    TooLarge,
    Invalid,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::{Encoder, Field};

    const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let (mut encoder, mut out) = (Encoder::new(), Vec::new());
        encoder.encode(fields.iter().map(|(name, value)| Field::once(name.as_bytes(), value.as_bytes())), &mut out);
        out
    }

    /// A usual request with these fields in addition, or in place of its own of the same name; without where there is no value.
    fn with(changes: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        let mut fields = GET.to_vec();
        for (name, value) in changes {
            match fields.iter_mut().find(|(known, _)| known == name && name.starts_with(':')) {
                Some(field) => field.1 = value,
                None => fields.push((name, value)),
            }
        }
        fields.retain(|(_, value)| *value != "without");
        fields
    }

    fn decode(fields: &[(&str, &str)]) -> Found {
        Heads::default().decode(&mut Decoder::new(4096), &block(fields), 2000, true).unwrap()
    }

    #[test]
    fn valid_heads_are_accepted() {
        let place = Found::Request(0);
        for changes in [
            &[][..],
            &[(":method", "OPTIONS"), (":path", "*")],
            &[(":method", "CONNECT"), (":scheme", "without"), (":path", "without")],
            &[(":method", "CONNECT"), (":protocol", "websocket")],
            &[(":authority", "without"), ("host", "a")],
            &[("host", "A")],
            &[(":scheme", "urn"), (":authority", "user@a")],
            &[("te", "trailers"), ("content-length", "0"), ("content-length", "0")],
            &[("x", "\u{80}\ta"), ("x", "")],
            &[(":scheme", "urn"), (":path", "x:y")],
        ] {
            assert_eq!(decode(&with(changes)), place, "{changes:?}");
        }
    }

    #[test]
    fn malformed_and_oversized_heads_are_rejected() {
        for changes in [
            &[(":method", "without")][..],
            &[(":scheme", "without")],
            &[(":path", "without")],
            &[(":path", "")],
            &[(":path", "x")],
            &[(":path", "*")],
            &[(":authority", "user@a")],
            &[(":authority", "without"), ("host", "user@a")],
            &[(":method", "CONNECT"), (":scheme", "without"), (":path", "without"), (":authority", "user@a")],
            &[(":path", "/a b")],
            &[(":path", "/\u{1}")],
            &[(":method", "G T")],
            &[(":method", "CONNECT")],
            &[(":protocol", "websocket")],
            &[(":status", "200")],
            &[(":new", "x")],
            &[("x", "y"), (":new", "x")],
            &[("X", "y")],
            &[("x y", "y")],
            &[("", "y")],
            &[("x", " y")],
            &[("x", "y\t")],
            &[("x", "a\rb")],
            &[("x", "a\nb")],
            &[("x", "a\0b")],
            &[("host", "b")],
            &[("te", "gzip")],
            &[("connection", "close")],
            &[("transfer-encoding", "chunked")],
            &[("upgrade", "x")],
            &[("keep-alive", "x")],
            &[("proxy-connection", "x")],
            &[("content-length", "-1")],
            &[("content-length", "1"), ("content-length", "2")],
            &[("content-length", "1234567890123456789")],
        ] {
            assert_eq!(decode(&with(changes)), Found::Invalid, "{changes:?}");
        }
        let twice = [GET[0], GET[0], GET[1], GET[2]];
        let late = [GET[0], GET[1], ("x", "y"), GET[2]];
        for fields in [twice, late] {
            assert_eq!(decode(&fields), Found::Invalid, "{fields:?}");
        }
        let long = "y".repeat(2000);
        assert_eq!(decode(&[("x", &long)]), Found::TooLarge);
        assert_eq!(decode(&[&GET[..], &[("x", &long)]].concat()), Found::Cut(REMEMBERED));
    }

    /// A byte of a block may stand for kilobytes of the header table, but not for all that may come.
    #[test]
    fn a_block_stands_for_little_more_than_its_bytes() {
        // 2,000 bytes for the table, of which each further byte is a copy.
        let mut bomb = block(&GET);
        Encoder::new().encode([Field::new(b"x", &[b'y'; 2000])].into_iter(), &mut bomb);
        bomb.extend_from_slice(&[0xbe; 1000]);
        let (mut heads, mut decoder) = (Heads::default(), Decoder::new(4096));
        let mut decode = |block: &[u8]| heads.decode(&mut decoder, block, 1 << 24, false).unwrap();
        assert_eq!(decode(&bomb), Found::Cut(REMEMBERED));
        // As many bytes that are sent are taken.
        let value = "y".repeat(2_000_000);
        assert_eq!(decode(&block(&[&GET[..], &[("x", &value)]].concat())), Found::Request(REMEMBERED));
        assert!(heads.at(REMEMBERED).get(b"x").is_some_and(|found| found.len() == value.len()));
        heads.trim();
        assert!(!heads.fresh.fields.is_larger_than(SMALL * 4));
    }

    #[test]
    fn heads_are_known_again_until_the_table_changes() {
        let (mut heads, mut decoder) = (Heads::default(), Decoder::new(4096));
        let blocks: Vec<_> = ["/a", "/b", "/c"].map(|path| block(&with(&[(":path", path)]))).into();
        let mut ids = Vec::new();
        for _ in 0..3 {
            for (block, path) in blocks.iter().zip(["/a", "/b", "/c"]) {
                let Ok(Found::Request(place)) = heads.decode(&mut decoder, block, 1000, false) else { panic!() };
                let head = heads.at(place);
                assert_eq!((head.path(), head.fields().count()), (Some(path.as_bytes()), 0));
                ids.push(head.id());
            }
        }
        assert_eq!(ids, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
        // With a field for the table, nothing is known again.
        let mut encoder = Encoder::new();
        for id in 4..6 {
            let (mut block, value) = (blocks[0].clone(), [id as u8 + b'0']);
            encoder.encode([Field::new(b"x", &value)].into_iter(), &mut block);
            let Ok(Found::Request(place)) = heads.decode(&mut decoder, &block, 1000, false) else { panic!() };
            assert_eq!((heads.at(place).id(), heads.at(place).get(b"x")), (id, Some(&value[..])));
        }
        let Ok(Found::Request(place)) = heads.decode(&mut decoder, &blocks[0], 1000, false) else { panic!() };
        assert_eq!(heads.at(place).id(), 6);
    }
}

//! The format of an answer: JSON, MessagePack, or Redis' own bytes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, header};

use crate::redis::reply::{Element, Elements};

/// A form of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// `{"result":…}` or `{"error":"…"}`.
    #[default]
    Json,
    /// The same in MessagePack.
    MessagePack,
    /// RESP3, as Redis sent it.
    Raw,
}

/// The media type of Redis' protocol, which has no registered one.
pub(crate) const RESP_TYPE: &str = "application/x-resp";

impl Format {
    /// By the path's suffix, which is cut off. A dot that belongs to an argument is written `%2E`.
    pub(crate) fn of_suffix(path: &str) -> (&str, Option<Self>) {
        let forms = [(".json", Self::Json), (".msgpack", Self::MessagePack), (".raw", Self::Raw)];
        let form = forms.into_iter().find_map(|(suffix, form)| Some((path.strip_suffix(suffix)?, Some(form))));
        form.unwrap_or((path, None))
    }

    /// By the Accept header: the form with the highest weight, the first of equals. Other types are passed over.
    pub(crate) fn of_accept(headers: &HeaderMap) -> Option<Self> {
        let mut best = None;
        for value in headers.get_all(header::ACCEPT) {
            for entry in value.to_str().unwrap_or_default().split(',') {
                let mut parts = entry.split(';').map(str::trim);
                let Some(form) = parts.next().and_then(Self::of_type) else { continue };
                let weight =
                    parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |q| q.parse::<f32>().unwrap_or(0.0));
                if weight > best.map_or(0.0, |(weight, _)| weight) {
                    best = Some((weight, form));
                }
            }
        }
        best.map(|(_, form)| form)
    }

    fn of_type(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "application/json" => Self::Json,
            "application/msgpack" | "application/x-msgpack" | "application/vnd.msgpack" => Self::MessagePack,
            RESP_TYPE | "application/octet-stream" => Self::Raw,
            _ => return None,
        })
    }

    /// The media type of answers.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MessagePack => "application/vnd.msgpack",
            Self::Raw => RESP_TYPE,
        }
    }

    /// One reply, or several in a list.
    pub(crate) fn render(self, replies: &[u8], list: Option<usize>) -> Vec<u8> {
        let mut out = Vec::with_capacity(replies.len() + 32);
        let mut elements = Elements::new(replies);
        match self {
            Self::Raw => out.extend_from_slice(replies),
            Self::Json => match list {
                None => json_outcome(&mut out, &mut elements),
                Some(count) => json_list(&mut out, count, |out| json_outcome(out, &mut elements)),
            },
            Self::MessagePack => {
                if let Some(count) = list {
                    pack_len(&mut out, count, Packed::Array);
                }
                for _ in 0..list.unwrap_or(1) {
                    pack_outcome(&mut out, &mut elements);
                }
            }
        }
        out
    }

    /// An error of this server's own.
    pub(crate) fn error(self, message: &str) -> Vec<u8> {
        self.render(&self.error_reply(message), None)
    }

    /// The same as a reply to [`render`](Self::render) among others.
    pub(crate) fn error_reply(self, message: &str) -> Vec<u8> {
        match self {
            // A line of the protocol has no line's end within.
            Self::Raw => format!("-ERR {}\r\n", message.replace(['\r', '\n'], " ")).into_bytes(),
            Self::Json | Self::MessagePack => format!("!{}\r\n{message}\r\n", message.len()).into_bytes(),
        }
    }
}

fn json_list(out: &mut Vec<u8>, count: usize, mut item: impl FnMut(&mut Vec<u8>)) {
    out.push(b'[');
    for at in 0..count {
        if at > 0 {
            out.push(b',');
        }
        item(out);
    }
    out.push(b']');
}

/// `{"result":…}` or `{"error":…}`.
fn json_outcome(out: &mut Vec<u8>, elements: &mut Elements<'_>) {
    if let Some(Element::Error(_)) = elements.clone().next() {
        return json_value(out, elements);
    }
    out.extend_from_slice(b"{\"result\":");
    json_value(out, elements);
    out.push(b'}');
}

fn json_value(out: &mut Vec<u8>, elements: &mut Elements<'_>) {
    let Some(element) = elements.next() else { return out.extend_from_slice(b"null") };
    match element {
        Element::Null => out.extend_from_slice(b"null"),
        Element::Bool(yes) => out.extend_from_slice(if yes { b"true" } else { b"false" }),
        Element::Int(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        // JSON has numbers of any size; values that are no numbers there are strings.
        Element::BigInt(digits) if is_number(digits) => out.extend_from_slice(digits),
        Element::BigInt(text) => json_bytes(out, text),
        Element::Double(number) if number.is_finite() => out.extend_from_slice(number.to_string().as_bytes()),
        Element::Double(number) => json_text(out, &number.to_string()),
        Element::Bytes(text) | Element::Text(text) => json_bytes(out, text),
        Element::Error(text) => {
            out.extend_from_slice(b"{\"error\":");
            json_text(out, &String::from_utf8_lossy(text));
            out.push(b'}');
        }
        Element::Array(count) => json_list(out, count, |out| json_value(out, elements)),
        Element::Map(pairs) => json_map(out, pairs, elements),
    }
}

/// An object where all keys are strings of their own, otherwise a list of pairs: nothing is lost.
fn json_map(out: &mut Vec<u8>, pairs: usize, elements: &mut Elements<'_>) {
    if !has_plain_keys(pairs, elements.clone()) {
        return json_list(out, pairs, |out| json_list(out, 2, |out| json_value(out, elements)));
    }
    out.push(b'{');
    for at in 0..pairs {
        if at > 0 {
            out.push(b',');
        }
        json_value(out, elements);
        out.push(b':');
        json_value(out, elements);
    }
    out.push(b'}');
}

fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    digits.first().is_some_and(|first| *first != b'0') && digits.iter().all(u8::is_ascii_digit)
}

fn has_plain_keys(pairs: usize, mut elements: Elements<'_>) -> bool {
    (0..pairs).all(|_| {
        let plain = matches!(elements.next(), Some(Element::Bytes(key) | Element::Text(key)) if std::str::from_utf8(key).is_ok());
        elements.pass();
        plain
    })
}

pub(super) fn json_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => json_text(out, text),
        Err(_) => {
            out.extend_from_slice(b"{\"base64\":\"");
            out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes());
            out.extend_from_slice(b"\"}");
        }
    }
}

fn json_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string has a JSON form, and memory takes it");
}

/// The kinds of MessagePack that have a length.
#[derive(Clone, Copy)]
enum Packed {
    Array,
    Map,
    Text,
    Binary,
}

/// A length and its kind (MessagePack specification, "Formats").
fn pack_len(out: &mut Vec<u8>, len: usize, kind: Packed) {
    let (small, below, byte, two, four) = match kind {
        Packed::Array => (0x90, 16, None, 0xdc, 0xdd),
        Packed::Map => (0x80, 16, None, 0xde, 0xdf),
        Packed::Text => (0xa0, 32, Some(0xd9), 0xda, 0xdb),
        Packed::Binary => (0, 0, Some(0xc4), 0xc5, 0xc6),
    };
    match (len, byte) {
        (len, _) if len < below => out.push(small | len as u8),
        (0..=0xff, Some(byte)) => out.extend_from_slice(&[byte, len as u8]),
        (0..=0xffff, _) => {
            out.push(two);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            out.push(four);
            // Answers are limited to less than this by the connection.
            out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

fn pack_outcome(out: &mut Vec<u8>, elements: &mut Elements<'_>) {
    if let Some(Element::Error(_)) = elements.clone().next() {
        return pack_value(out, elements);
    }
    pack_len(out, 1, Packed::Map);
    pack_bytes(out, b"result");
    pack_value(out, elements);
}

fn pack_value(out: &mut Vec<u8>, elements: &mut Elements<'_>) {
    let Some(element) = elements.next() else { return out.push(0xc0) };
    match element {
        Element::Null => out.push(0xc0),
        Element::Bool(yes) => out.push(if yes { 0xc3 } else { 0xc2 }),
        Element::Int(number) => pack_int(out, number),
        Element::Double(number) => {
            out.push(0xcb);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Element::Bytes(text) | Element::Text(text) | Element::BigInt(text) => pack_bytes(out, text),
        Element::Error(text) => {
            pack_len(out, 1, Packed::Map);
            pack_bytes(out, b"error");
            pack_bytes(out, String::from_utf8_lossy(text).as_bytes());
        }
        Element::Array(count) => {
            pack_len(out, count, Packed::Array);
            (0..count).for_each(|_| pack_value(out, elements));
        }
        Element::Map(pairs) => {
            pack_len(out, pairs, Packed::Map);
            (0..pairs * 2).for_each(|_| pack_value(out, elements));
        }
    }
}

/// The shortest form of small numbers, 64 bits for others.
fn pack_int(out: &mut Vec<u8>, number: i64) {
    match number {
        0..=0x7f => out.push(number as u8),
        -32..=-1 => out.push(number as i8 as u8),
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn pack_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let kind = if std::str::from_utf8(bytes).is_ok() { Packed::Text } else { Packed::Binary };
    pack_len(out, bytes.len(), kind);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json() {
        fn check(reply: &[u8], expected: &str) {
            let shown = String::from_utf8(Format::Json.render(reply, None)).unwrap();
            assert_eq!(shown, expected);
            assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok(), "{shown}");
        }
        check(b"$3\r\nbar\r\n", r#"{"result":"bar"}"#);
        check(b"$4\r\n\"\r\n<\r\n", r#"{"result":"\"\r\n<"}"#);
        check("$3\r\n€\r\n".as_bytes(), r#"{"result":"€"}"#);
        check(b"$2\r\n\xff\x00\r\n", r#"{"result":{"base64":"/wA="}}"#);
        check(b"_\r\n", r#"{"result":null}"#);
        check(b":-5\r\n", r#"{"result":-5}"#);
        check(b"(12345678901234567890\r\n", r#"{"result":12345678901234567890}"#);
        check(b",1.5\r\n", r#"{"result":1.5}"#);
        check(b",inf\r\n", r#"{"result":"inf"}"#);
        check(b"#t\r\n", r#"{"result":true}"#);
        check(b"-ERR no \"such\"\r\n", r#"{"error":"ERR no \"such\""}"#);
        check(b"*3\r\n:1\r\n*0\r\n-ERR x\r\n", r#"{"result":[1,[],{"error":"ERR x"}]}"#);
        check(b"%2\r\n$1\r\na\r\n:1\r\n+b\r\n*1\r\n_\r\n", r#"{"result":{"a":1,"b":[null]}}"#);
        check(b"%1\r\n$1\r\n\xff\r\n:1\r\n", r#"{"result":[[{"base64":"/w=="},1]]}"#);
        check(b"%1\r\n:7\r\n:1\r\n", r#"{"result":[[7,1]]}"#);
        check(b"%0\r\n", r#"{"result":{}}"#);
    }

    #[test]
    fn lists() {
        let replies = b"+OK\r\n-ERR x\r\n*1\r\n:1\r\n";
        let shown = String::from_utf8(Format::Json.render(replies, Some(3))).unwrap();
        assert_eq!(shown, r#"[{"result":"OK"},{"error":"ERR x"},{"result":[1]}]"#);
        assert_eq!(Format::Raw.render(replies, Some(3)), replies);
        assert_eq!(Format::MessagePack.render(b":1\r\n:2\r\n", Some(2)), b"\x92\x81\xa6result\x01\x81\xa6result\x02");
    }

    #[test]
    fn message_pack() {
        fn check(reply: &[u8], expected: &[u8]) {
            let mut out = Vec::new();
            pack_value(&mut out, &mut Elements::new(reply));
            assert_eq!(out, expected, "{}", reply.escape_ascii());
        }
        check(b"_\r\n", b"\xc0");
        check(b"#f\r\n", b"\xc2");
        check(b":127\r\n", b"\x7f");
        check(b":128\r\n", b"\xd3\0\0\0\0\0\0\0\x80");
        check(b":-32\r\n", b"\xe0");
        check(b":-33\r\n", b"\xd3\xff\xff\xff\xff\xff\xff\xff\xdf");
        check(b",1.5\r\n", b"\xcb\x3f\xf8\0\0\0\0\0\0");
        check(b"+OK\r\n", b"\xa2OK");
        check(b"$1\r\n\xff\r\n", b"\xc4\x01\xff");
        check(b"%1\r\n+a\r\n*2\r\n:1\r\n_\r\n", b"\x81\xa1a\x92\x01\xc0");
        check(b"-ERR x\r\n", b"\x81\xa5error\xa5ERR x");
        let long = [b"$300\r\n".as_slice(), &[b'a'; 300], b"\r\n"].concat();
        check(&long, &[b"\xda\x01\x2c".as_slice(), &[b'a'; 300]].concat());
        let many = [b"*20\r\n".as_slice(), &b":1\r\n".repeat(20)].concat();
        check(&many, &[b"\xdc\0\x14".as_slice(), &[1; 20]].concat());
    }

    #[test]
    fn errors_of_our_own() {
        assert_eq!(Format::Json.error("a\r\nb \"c\""), br#"{"error":"a\r\nb \"c\""}"#);
        assert_eq!(Format::Raw.error("a\r\n+OK\r\n"), b"-ERR a  +OK  \r\n");
        assert_eq!(Format::MessagePack.error("x"), b"\x81\xa5error\xa1x");
    }

    #[test]
    fn negotiation() {
        fn check(accept: &str, expected: Option<Format>) {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Format::of_accept(&headers), expected, "{accept}");
        }
        check("*/*", None);
        check("text/html", None);
        check("application/json", Some(Format::Json));
        check("text/html, Application/MsgPack;q=0.5, application/json;q=0.1", Some(Format::MessagePack));
        check("application/json;q=0", None);
        check("application/x-resp", Some(Format::Raw));
        assert_eq!(Format::of_suffix("GET/a.json"), ("GET/a", Some(Format::Json)));
        assert_eq!(Format::of_suffix("GET/a%2Ejson"), ("GET/a%2Ejson", None));
        assert_eq!(Format::of_suffix("GET/a.b"), ("GET/a.b", None));
    }
}

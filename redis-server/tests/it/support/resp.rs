//! A strict reader of RESP2 and RESP3, independent of the server's own code.

use std::cell::Cell;
use std::fmt;

/// A value on the wire; kinds that mean the same to a person are kept apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    NullBulk,
    NullArray,
    Array(Vec<Self>),
    // RESP3
    Null,
    Double(String),
    Bool(bool),
    BigNumber(String),
    Verbatim([u8; 3], Vec<u8>),
    Map(Vec<(Self, Self)>),
    Set(Vec<Self>),
    Push(Vec<Self>),
    Attribute(Vec<(Self, Self)>),
}

/// The fault in the bytes.
#[derive(Debug, PartialEq)]
pub(crate) struct Malformed(pub(crate) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed RESP: {}", self.0)
    }
}

type Parsed<T> = Result<Option<(T, usize)>, Malformed>;

/// Deepest nesting that is read.
const MAX_DEPTH: usize = 64;

/// Reads one value from the head of `input`: the value and its length; `None` when it is not complete.
pub(crate) fn parse(input: &[u8]) -> Parsed<Value> {
    parse_at(input, 0, 0)
}

/// Reads a value at `at`; returns the offset behind it.
fn parse_at(input: &[u8], at: usize, depth: usize) -> Parsed<Value> {
    if depth > MAX_DEPTH {
        return Err(Malformed("nested too deeply".into()));
    }
    let Some((line, next)) = line(input, at)? else { return Ok(None) };
    let Some((&kind, rest)) = line.split_first() else { return Err(Malformed("an empty line".into())) };
    let scalar = match kind {
        b'+' => Value::Status(rest.to_vec()),
        b'-' => Value::Error(error(rest)?),
        b':' => Value::Int(number(rest)?),
        b'_' if rest.is_empty() => Value::Null,
        b',' => Value::Double(double(rest)?),
        b'#' if rest == b"t" || rest == b"f" => Value::Bool(rest == b"t"),
        b'(' => Value::BigNumber(big_number(rest)?),
        b'$' | b'=' => return text(kind, rest, input, next),
        b'*' | b'~' | b'>' | b'%' | b'|' => return aggregate(kind, rest, input, next, depth),
        _ => return Err(Malformed(format!("no type begins like {:?}", line.escape_ascii().to_string()))),
    };
    Ok(Some((scalar, next)))
}

/// The bytes up to the next CRLF, and the offset behind it.
fn line(input: &[u8], at: usize) -> Parsed<&[u8]> {
    let rest = &input[at.min(input.len())..];
    let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else { return Ok(None) };
    match (rest[end], rest.get(end + 1)) {
        (b'\r', None) => Ok(None),
        (b'\r', Some(b'\n')) => Ok(Some((&rest[..end], at + end + 2))),
        _ => Err(Malformed(format!("a bare line end in {:?}", rest[..end + 1].escape_ascii().to_string()))),
    }
}

fn text(kind: u8, len: &[u8], input: &[u8], at: usize) -> Parsed<Value> {
    if kind == b'$' && len == b"-1" {
        return Ok(Some((Value::NullBulk, at)));
    }
    let len = length(len)?;
    let Some(bytes) = input.get(at..at + len + 2) else { return Ok(None) };
    let Some(bytes) = bytes.strip_suffix(b"\r\n") else { return Err(Malformed("text without its line end".into())) };
    let value = match (kind, bytes) {
        (b'=', [a, b, c, b':', text @ ..]) => Value::Verbatim([*a, *b, *c], text.to_vec()),
        (b'=', _) => return Err(Malformed("verbatim text without a format".into())),
        _ => Value::Bulk(bytes.to_vec()),
    };
    Ok(Some((value, at + len + 2)))
}

fn aggregate(kind: u8, len: &[u8], input: &[u8], mut at: usize, depth: usize) -> Parsed<Value> {
    if kind == b'*' && len == b"-1" {
        return Ok(Some((Value::NullArray, at)));
    }
    let len = length(len)?;
    let is_map = matches!(kind, b'%' | b'|');
    let mut values = Vec::new();
    for _ in 0..if is_map { len * 2 } else { len } {
        let Some((value, next)) = parse_at(input, at, depth + 1)? else { return Ok(None) };
        values.push(value);
        at = next;
    }
    let value = match kind {
        b'*' => Value::Array(values),
        b'~' => Value::Set(values),
        b'>' => Value::Push(values),
        b'%' => Value::Map(pairs(values)),
        _ => Value::Attribute(pairs(values)),
    };
    Ok(Some((value, at)))
}

fn pairs(values: Vec<Value>) -> Vec<(Value, Value)> {
    let mut values = values.into_iter();
    std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect()
}

/// A decimal number as RESP writes it: no plus, no leading zeros.
fn number(text: &[u8]) -> Result<i64, Malformed> {
    let text = std::str::from_utf8(text).unwrap_or("not UTF-8");
    let number = text.parse::<i64>().map_err(|_| Malformed(format!("{text:?} is no number")))?;
    if number.to_string() == text { Ok(number) } else { Err(Malformed(format!("{text:?} is written oddly"))) }
}

fn length(text: &[u8]) -> Result<usize, Malformed> {
    let number = number(text)?;
    usize::try_from(number).map_err(|_| Malformed(format!("{number} is no length")))
}

fn double(text: &[u8]) -> Result<String, Malformed> {
    let text = std::str::from_utf8(text).unwrap_or("not UTF-8");
    let special = matches!(text, "inf" | "-inf" | "nan");
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.e".contains(&byte));
    if special || digits && text.parse::<f64>().is_ok() {
        return Ok(text.to_owned());
    }
    Err(Malformed(format!("{text:?} is no double")))
}

fn big_number(text: &[u8]) -> Result<String, Malformed> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Malformed("a big number of something else than digits".into()));
    }
    Ok(String::from_utf8_lossy(text).into_owned())
}

thread_local! {
    static TAKES_BARE_ERRORS: Cell<bool> = const { Cell::new(false) };
}

/// From now on, this thread's test takes errors without a code, as RediSearch has them.
pub(crate) fn take_bare_errors() {
    TAKES_BARE_ERRORS.set(true);
}

/// Errors begin with a code in capitals.
fn error(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    if TAKES_BARE_ERRORS.get() {
        return Ok(text.to_vec());
    }
    let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    if code.is_empty() || !code.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        return Err(Malformed(format!("an error without a code: {}", text.escape_ascii())));
    }
    Ok(text.to_vec())
}

impl Value {
    /// The type on the wire, with those of its elements: `*[$ : $-1]`. Runs of the same type are written once.
    pub(crate) fn shape(&self) -> String {
        let all = |kind: &str, values: &mut dyn Iterator<Item = &Self>| {
            let mut shapes: Vec<_> = values.map(Self::shape).collect();
            shapes.dedup();
            format!("{kind}[{}]", shapes.join(" "))
        };
        let flat = |kind: &str, pairs: &[(Self, Self)]| {
            let mut shapes: Vec<_> = pairs.iter().map(|(k, v)| format!("{}={}", k.shape(), v.shape())).collect();
            shapes.dedup();
            format!("{kind}[{}]", shapes.join(" "))
        };
        match self {
            Self::Status(_) => "+".into(),
            Self::Error(_) => "-".into(),
            Self::Int(_) => ":".into(),
            Self::Bulk(_) => "$".into(),
            Self::NullBulk => "$-1".into(),
            Self::NullArray => "*-1".into(),
            Self::Null => "_".into(),
            Self::Double(_) => ",".into(),
            Self::Bool(_) => "#".into(),
            Self::BigNumber(_) => "(".into(),
            Self::Verbatim(..) => "=".into(),
            Self::Array(values) => all("*", &mut values.iter()),
            Self::Set(values) => all("~", &mut values.iter()),
            Self::Push(values) => all(">", &mut values.iter()),
            Self::Map(pairs) => flat("%", pairs),
            Self::Attribute(pairs) => flat("|", pairs),
        }
    }

    /// The text of a scalar.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Status(text) | Self::Error(text) | Self::Bulk(text) | Self::Verbatim(_, text) => {
                String::from_utf8_lossy(text).into_owned()
            }
            Self::Int(number) => number.to_string(),
            Self::Double(text) | Self::BigNumber(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// A command as clients send it.
pub(crate) fn request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[test]
fn the_reader_is_strict() {
    let check = |bytes: &str, expected: Result<Option<&str>, ()>| {
        let parsed = parse(bytes.as_bytes());
        let shape = parsed.map(|value| value.map(|(value, _)| value.shape())).map_err(|_| ());
        assert_eq!(shape, expected.map(|shape| shape.map(str::to_owned)), "{bytes:?}");
    };
    check("*3\r\n$1\r\na\r\n:1\r\n*-1\r\n", Ok(Some("*[$ : *-1]")));
    check("%1\r\n+a\r\n,1.5\r\n", Ok(Some("%[+=,]")));
    check("=6\r\ntxt:hi\r\n", Ok(Some("=")));
    check("*2\r\n:1\r\n", Ok(None));
    check("$5\r\nabc", Ok(None));
    check("$1\r\nabc", Err(()));
    check(":01\r\n", Err(()));
    check("+a\nb\r\n", Err(()));
    check("-no code\r\n", Err(()));
    check("!\r\n", Err(()));
}

//! Commands as templates of bytes, and what their replies must be.

use super::reply::Reply;
use crate::codec::shown;
use crate::workload::{DIGITS, Source, Subjects, Template};

/// A command with places for keys and values.
#[derive(Clone, Debug)]
pub struct RedisCommand {
    name: String,
    words: Vec<Template>,
    expects: Expects,
    has_key: bool,
    inline: bool,
    /// The request in RESP, as far as it is the same for every key; made by [`compile`](Self::compile).
    request: Request,
}

#[derive(Clone, Debug)]
enum Request {
    /// Lengths are known beforehand: text with places.
    Fixed(Template),
    /// A word's length depends on the key.
    Words,
}

/// A right reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// Anything but an error.
    Anything,
    /// A status.
    Status(&'static str),
    /// An integer.
    Integer,
    /// The value of the request's key, or nil.
    Value,
    /// The value of the request's key, which has been stored.
    Stored,
}

/// The known replies of commands.
const EXPECTATIONS: &[(&str, Expects)] = &[
    ("PING", Expects::Status("PONG")),
    ("SET", Expects::Status("OK")),
    ("MSET", Expects::Status("OK")),
    ("HMSET", Expects::Status("OK")),
    ("GET", Expects::Value),
    ("INCR", Expects::Integer),
    ("INCRBY", Expects::Integer),
    ("DECR", Expects::Integer),
    ("DEL", Expects::Integer),
    ("UNLINK", Expects::Integer),
    ("EXISTS", Expects::Integer),
    ("EXPIRE", Expects::Integer),
    ("APPEND", Expects::Integer),
    ("STRLEN", Expects::Integer),
    ("LPUSH", Expects::Integer),
    ("RPUSH", Expects::Integer),
    ("SADD", Expects::Integer),
    ("HSET", Expects::Integer),
    ("ZADD", Expects::Integer),
];

impl RedisCommand {
    /// A command by its words.
    ///
    /// # Errors
    /// When there are none.
    pub fn new<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Result<Self, String> {
        Self::of(words.into_iter().map(Template::new).collect())
    }

    /// A command by its words, whatever braces are in them.
    ///
    /// # Errors
    /// When there are none.
    pub fn literal(words: &[Vec<u8>]) -> Result<Self, String> {
        Self::of(words.iter().map(|word| Template::text(word)).collect())
    }

    fn of(words: Vec<Template>) -> Result<Self, String> {
        let first = words.first().ok_or("a command without a name, expected words such as `GET key:{key}`")?;
        let name = first.as_text().map(|name| shown(name).to_uppercase()).unwrap_or_default();
        if name.is_empty() {
            return Err("a command whose name is empty or a place, expected words such as `GET key:{key}`".to_owned());
        }
        let known = EXPECTATIONS.iter().find(|(known, _)| *known == name);
        let mut expects = known.map_or(Expects::Anything, |(_, expects)| *expects);
        // A value is known by the key's number, PING with a message and SET with options answer otherwise.
        let is_other = match name.as_str() {
            "GET" => !words.iter().any(Template::has_key),
            "PING" => words.len() > 1,
            "SET" => words.len() > 3,
            "ZADD" => words.len() > 4,
            _ => false,
        };
        if is_other {
            expects = Expects::Anything;
        }
        let has_key = words.iter().any(Template::has_key);
        Ok(Self { name, words, expects, has_key, inline: false, request: Request::Words })
    }

    /// Says whether all keys have been stored before, so that none may be missing.
    #[must_use]
    pub fn with_preloaded(mut self, preloaded: bool) -> Self {
        if preloaded && self.expects == Expects::Value {
            self.expects = Expects::Stored;
        }
        self
    }

    /// Sends the words as a line, as people do by telnet, not in RESP. No word may then hold a blank.
    #[must_use]
    pub fn with_inline(mut self, inline: bool) -> Self {
        self.inline = inline;
        self
    }

    /// Its name in results.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its words for the first key.
    pub(crate) fn example(&self, subjects: &Subjects) -> Vec<Vec<u8>> {
        let mut source = Source::new(0, 0, 1);
        let mut filled = |word: &Template| {
            let mut text = Vec::new();
            word.append(0, subjects, &mut source, &mut text);
            text
        };
        self.words.iter().map(&mut filled).collect()
    }

    /// Prepares the request's bytes.
    pub(super) fn compile(&mut self, subjects: &Subjects) {
        if self.inline {
            let blank = Template::text(b" ");
            let line = self.words.iter().cloned().reduce(|line, word| line.then(&blank).then(&word));
            let line = line.unwrap_or_else(|| Template::text(b"")).then(&Template::text(b"\r\n"));
            self.request = Request::Fixed(line);
            return;
        }
        let varies = |word: &Template| word.has_value() && subjects.values.fixed_size().is_none();
        if self.words.iter().any(varies) {
            return;
        }
        let mut text = format!("*{}\r\n", self.words.len()).into_bytes();
        let mut parts: Option<Template> = None;
        for word in &self.words {
            text.extend_from_slice(format!("${}\r\n", word.size(0, subjects)).as_bytes());
            let so_far = parts.take().map_or_else(|| Template::text(&text), |parts| parts.then(&Template::text(&text)));
            parts = Some(so_far.then(word));
            text = b"\r\n".to_vec();
        }
        self.request = Request::Fixed(parts.unwrap_or_else(|| Template::text(b"")).then(&Template::text(&text)));
    }

    pub(super) fn has_key(&self) -> bool {
        self.has_key
    }

    /// Whether its replies are compared with a key's value.
    pub(super) fn checks_value(&self) -> bool {
        matches!(self.expects, Expects::Value | Expects::Stored)
    }

    /// Appends the request for a key.
    #[inline]
    pub(super) fn append(&self, key: u64, subjects: &Subjects, source: &mut Source, out: &mut Vec<u8>) {
        match &self.request {
            Request::Fixed(request) => request.append(key, subjects, source, out),
            Request::Words => {
                append_number(b'*', self.words.len(), out);
                for word in &self.words {
                    append_number(b'$', word.size(key, subjects), out);
                    word.append(key, subjects, source, out);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }

    /// Whether a reply, which is no error, is right.
    pub(super) fn accepts(&self, key: u64, reply: &Reply<'_>, subjects: &Subjects) -> bool {
        match (self.expects, reply) {
            (Expects::Anything, _) | (Expects::Integer, Reply::Line(b':', _)) | (Expects::Value, Reply::Nil) => true,
            (Expects::Status(status), Reply::Line(b'+', line)) => *line == status.as_bytes(),
            (Expects::Value | Expects::Stored, Reply::Bulk(bytes)) => subjects.values.matches(key, bytes),
            (Expects::Status(_) | Expects::Integer | Expects::Value | Expects::Stored, _) => false,
        }
    }

    /// A wrong reply for people.
    pub(super) fn describe_wrong(&self, key: u64, reply: &Reply<'_>, subjects: &Subjects) -> String {
        let (name, read) = (&self.name, reply.describe());
        match self.expects {
            Expects::Anything => format!("{name}: read {read}"),
            Expects::Status(status) => format!("{name}: expected {status}, read {read}"),
            Expects::Integer => format!("{name}: expected an integer, read {read}"),
            Expects::Value | Expects::Stored => {
                let mut value = Vec::new();
                subjects.values.append(key, &mut value);
                format!("{name} of key {key:0DIGITS$}: expected `{}`, read {read}", shown(&value))
            }
        }
    }
}

/// Appends a request of plain words.
pub(crate) fn append_request<'a>(words: impl ExactSizeIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    append_number(b'*', words.len(), out);
    for word in words {
        append_number(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn append_number(kind: u8, number: usize, out: &mut Vec<u8>) {
    out.push(kind);
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

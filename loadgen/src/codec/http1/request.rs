//! Requests as templates of bytes.

use crate::workload::{Source, Subjects, Template};

/// A request with places in its path, headers and body.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    name: String,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Template>,
    expected: Option<Template>,
    /// Whether braces in the path are text.
    is_literal: bool,
    /// The request as bytes; made by [`compile`](Self::compile).
    bytes: Bytes,
    has_key: bool,
}

#[derive(Clone, Debug)]
enum Bytes {
    /// All of it.
    Whole(Template),
    /// Up to the body's length, which depends on the key.
    UpToLength(Template),
}

/// The parts of a request; places may stand in path, headers and body.
pub(in crate::codec) struct Parts<'a> {
    pub(in crate::codec) method: &'a str,
    pub(in crate::codec) path: &'a str,
    pub(in crate::codec) headers: &'a [(String, String)],
    pub(in crate::codec) body: Option<&'a Template>,
    pub(in crate::codec) expected: Option<&'a Template>,
}

impl HttpRequest {
    /// A request without a body.
    ///
    /// # Errors
    /// When the method or the path cannot stand in a request line.
    pub fn new(method: &str, path: &str) -> Result<Self, String> {
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(format!("the method is `{method}`, expected a word such as GET"));
        }
        if !path.starts_with(['/', '*']) || path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(format!("the path is `{path}`, expected one that begins with / and has no spaces"));
        }
        Ok(Self {
            name: format!("{method} {path}"),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: None,
            expected: None,
            is_literal: false,
            bytes: Bytes::Whole(Template::text(b"")),
            has_key: false,
        })
    }

    /// Without places in its path: braces are text. Its name is that of its method.
    #[must_use]
    pub fn literal(mut self) -> Self {
        self.is_literal = true;
        self.name.clone_from(&self.method);
        self
    }

    /// With another header.
    ///
    /// # Errors
    /// When it cannot stand in a request's head.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, String> {
        let is_token = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(format!("the header's name is `{name}`, expected a word"));
        }
        if value.bytes().any(|byte| byte == b'\r' || byte == b'\n' || byte == 0) {
            return Err(format!("the header {name} has a line end in its value"));
        }
        self.headers.push((name.to_owned(), value.to_owned()));
        Ok(self)
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, body: Template) -> Self {
        self.body = Some(body);
        self
    }

    /// With the body that a right response has.
    #[must_use]
    pub fn expecting(mut self, body: Template) -> Self {
        self.expected = Some(body);
        self
    }

    /// Its name in results: method and path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parts, for another version of HTTP.
    pub(in crate::codec) fn parts(&self) -> Parts<'_> {
        let Self { method, path, headers, body, expected, .. } = self;
        Parts { method, path, headers, body: body.as_ref(), expected: expected.as_ref() }
    }

    /// Prepares the request's bytes.
    pub(super) fn compile(&mut self, subjects: &Subjects, closes: bool) {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let has = |wanted: &str| self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if closes && !has("connection") {
            head.push_str("Connection: close\r\n");
        }
        let varies = |body: &Template| body.has_value() && subjects.values.fixed_size().is_none();
        self.bytes = match &self.body {
            None if self.is_literal => Bytes::Whole(Template::text((head + "\r\n").as_bytes())),
            None => Bytes::Whole(Template::new(head + "\r\n")),
            Some(body) if varies(body) => Bytes::UpToLength(Template::new(head + "Content-Length: ")),
            Some(body) => {
                let length = format!("Content-Length: {}\r\n\r\n", body.size(0, subjects));
                Bytes::Whole(Template::new(head + &length).then(body))
            }
        };
        self.has_key = match &self.bytes {
            Bytes::Whole(request) => request.has_key(),
            Bytes::UpToLength(_) => true,
        };
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    pub(super) fn has_key(&self) -> bool {
        self.has_key
    }

    /// Appends the request for a key.
    #[inline]
    pub(super) fn append(&self, key: u64, subjects: &Subjects, source: &mut Source, out: &mut Vec<u8>) {
        match (&self.bytes, &self.body) {
            (Bytes::UpToLength(head), Some(body)) => {
                head.append(key, subjects, source, out);
                out.extend_from_slice(itoa::Buffer::new().format(body.size(key, subjects)).as_bytes());
                out.extend_from_slice(b"\r\n\r\n");
                body.append(key, subjects, source, out);
            }
            (Bytes::Whole(request) | Bytes::UpToLength(request), _) => request.append(key, subjects, source, out),
        }
    }

    /// The body that a right response has, if it is known.
    pub(super) fn expected(&self, key: u64, subjects: &Subjects) -> Option<Vec<u8>> {
        let expected = self.expected.as_ref()?;
        let mut body = Vec::new();
        // The content of a response follows from the key: there is nothing random to draw.
        expected.append(key, subjects, &mut Source::new(0, 0, 1), &mut body);
        Some(body)
    }
}

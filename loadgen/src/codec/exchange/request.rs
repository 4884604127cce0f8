//! Requests as header blocks and bodies.

use std::fmt::Debug;

use crate::codec::h2::hpack::Field;
use crate::codec::http1::{HttpRequest, Parts};
use crate::workload::{Source, Subjects, Template};

/// Fields of HTTP/1.1's connections, which later versions do not have (RFC 9113, 8.2.2; RFC 9114, 4.2).
const OF_CONNECTIONS: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// The coding of header fields: HPACK of HTTP/2, or QPACK of HTTP/3.
pub(in crate::codec) trait Coding: Debug + Send + Sync {
    /// Fields that are known before the run.
    type Block: Debug + Default + Send + Sync;

    /// The version of HTTP.
    const VERSION: &'static str;

    /// The block of these fields, in this order.
    fn block(fields: &[Field]) -> Self::Block;

    /// Appends a field that is new with every request.
    fn append_literal(out: &mut Vec<u8>, name: &str, value: &[u8]);
}

/// A request, prepared.
#[derive(Debug)]
pub(in crate::codec) struct Prepared<C: Coding> {
    pub(super) name: String,
    pub(super) is_head: bool,
    pub(in crate::codec) has_key: bool,
    pub(in crate::codec) block: C::Block,
    /// The path, if it differs from request to request.
    path: Option<Template>,
    /// Fields whose values differ from request to request.
    varying: Vec<(String, Template)>,
    body: Body,
    pub(super) expected: Option<Template>,
}

#[derive(Debug)]
enum Body {
    Fixed(Vec<u8>),
    /// Of a known length.
    Filled(Template),
    /// Its length depends on the key, and is told with each request.
    Varying(Template),
}

/// Prepares the requests of a mix, which share the server's header table.
pub(super) fn prepare<C: Coding>(
    requests: &[HttpRequest],
    tls: bool,
    subjects: &Subjects,
) -> Result<Vec<Prepared<C>>, String> {
    let mut prepared = Vec::new();
    let mut lists = Vec::new();
    for request in requests {
        let (fields, request) = one(request, tls, subjects)?;
        lists.push(fields);
        prepared.push(request);
    }
    share(&mut lists);
    for (request, fields) in prepared.iter_mut().zip(&lists) {
        request.block = C::block(fields);
    }
    Ok(prepared)
}

fn one<C: Coding>(request: &HttpRequest, tls: bool, subjects: &Subjects) -> Result<(Vec<Field>, Prepared<C>), String> {
    let Parts { method, path, headers, body, expected } = request.parts();
    let scheme = if tls { "https" } else { "http" };
    let mut fields = vec![Field::own(":method", method), Field::own(":scheme", scheme)];
    let path = Template::new(path);
    if let Some(path) = path.as_text() {
        fields.push(Field::own(":path", path));
    }
    let (mut regular, mut varying) = (Vec::new(), Vec::new());
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        let value = Template::new(value);
        if OF_CONNECTIONS.contains(&name.as_str()) {
            return Err(format!("the header {name} is one of HTTP/1.1, which {} does not have", C::VERSION));
        }
        match value.as_text() {
            Some(value) if name == "host" => fields.push(Field::own(":authority", value)),
            Some(value) => regular.push(Field::own(name, value)),
            None if name == "host" => return Err("the header host has places, expected a name".to_owned()),
            None => varying.push((name, value)),
        }
    }
    let body = match body {
        None => Body::Fixed(Vec::new()),
        Some(body) => match body.as_text() {
            Some(text) => Body::Fixed(text.to_vec()),
            None if body.has_value() && subjects.values.fixed_size().is_none() => Body::Varying(body.clone()),
            None => Body::Filled(body.clone()),
        },
    };
    if request.parts().body.is_some()
        && let Some(length) = body.fixed_length(subjects)
    {
        regular.push(Field::own("content-length", length.to_string()));
    }
    fields.extend(regular);
    let templates = varying.iter().map(|(_, template)| template).chain([&path]).chain(body.template());
    let has_key = templates.chain(expected).any(Template::has_key);
    let path = path.as_text().is_none().then_some(path);
    let (name, is_head, expected) = (request.name().to_owned(), method == "HEAD", expected.cloned());
    Ok((fields, Prepared { name, is_head, has_key, block: C::Block::default(), path, varying, body, expected }))
}

/// Marks the fields that all requests have, if they have them in the same order.
fn share(lists: &mut [Vec<Field>]) {
    let common = |field: &Field, lists: &[Vec<Field>]| lists.iter().all(|list| list.contains(field));
    let shared: Vec<Vec<Field>> =
        lists.iter().map(|list| list.iter().filter(|field| common(field, lists)).cloned().collect()).collect();
    if shared.windows(2).any(|pair| pair[0] != pair[1]) {
        return;
    }
    for list in lists {
        for field in list {
            field.shared = shared[0].contains(field);
        }
    }
}

impl Body {
    fn template(&self) -> Option<&Template> {
        match self {
            Self::Fixed(_) => None,
            Self::Filled(template) | Self::Varying(template) => Some(template),
        }
    }

    fn fixed_length(&self, subjects: &Subjects) -> Option<usize> {
        match self {
            Self::Fixed(bytes) => Some(bytes.len()),
            Self::Filled(template) => Some(template.size(0, subjects)),
            Self::Varying(_) => None,
        }
    }
}

/// Buffers that are filled anew for each request.
#[derive(Debug, Default)]
pub(in crate::codec) struct Scratch {
    path: Vec<u8>,
    fields: Vec<u8>,
    body: Vec<u8>,
    value: Vec<u8>,
}

impl<C: Coding> Prepared<C> {
    /// Makes what is new with this request: the path's field, other fields, and the body.
    #[inline]
    pub(in crate::codec) fn fill<'a>(
        &'a self,
        key: u64,
        subjects: &Subjects,
        source: &mut Source,
        scratch: &'a mut Scratch,
    ) -> (&'a [u8], &'a [u8], &'a [u8]) {
        let Scratch { path, fields, body, value } = scratch;
        path.clear();
        fields.clear();
        if let Some(template) = &self.path {
            value.clear();
            template.append(key, subjects, source, value);
            C::append_literal(path, ":path", value);
        }
        for (name, template) in &self.varying {
            value.clear();
            template.append(key, subjects, source, value);
            C::append_literal(fields, name, value);
        }
        let body = match &self.body {
            Body::Fixed(bytes) => bytes,
            Body::Filled(template) | Body::Varying(template) => {
                body.clear();
                template.append(key, subjects, source, body);
                if matches!(self.body, Body::Varying(_)) {
                    C::append_literal(fields, "content-length", body.len().to_string().as_bytes());
                }
                body
            }
        };
        (path, fields, body)
    }
}

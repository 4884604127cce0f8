//! The names that this server is called by. A page of another name can become one of ours: its owner's DNS gives our
//! address for it (DNS rebinding), and to a browser page and server are of one origin then, whose answers it may read.

use http::header::HOST;
use http::request::Parts;

/// Host names that are served, beside addresses and those of this machine, for which nobody's DNS is asked.
#[derive(Debug)]
pub(super) struct Hosts {
    /// In small letters, without ports; `*` is any.
    names: Vec<String>,
}

impl Hosts {
    /// # Errors
    /// When one of them is no name.
    pub(super) fn parse(names: &[String]) -> Result<Self, String> {
        let name = |name: &String| {
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            if name == "*" || (is_name && !name.is_empty()) {
                Ok(name.trim_end_matches('.').to_ascii_lowercase())
            } else {
                Err(format!("{name:?} is no host name, such as redis.example, or *"))
            }
        };
        Ok(Self { names: names.iter().map(name).collect::<Result<_, _>>()? })
    }

    /// Whether a request to this host, with a port or without, is for this server. A client that names none is no
    /// browser.
    #[inline]
    pub(super) fn have(&self, host: &[u8]) -> bool {
        // A host that ends in a number is an address to every browser, or nothing (WHATWG URL, section 3.5).
        let is_address = |host: &[u8]| host.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':'));
        host.starts_with(b"[") || is_address(host) || self.names(host)
    }

    fn names(&self, host: &[u8]) -> bool {
        let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
        let name = name.strip_suffix(b".").unwrap_or(name);
        // No server has names below localhost to give (RFC 6761 section 6.3).
        let is_local = |name: &[u8]| name.eq_ignore_ascii_case(b"localhost");
        let local = name.len().checked_sub(".localhost".len()).filter(|at| name[*at] == b'.');
        is_local(name)
            || local.is_some_and(|at| is_local(&name[at + 1..]))
            || self.names.iter().any(|known| known == "*" || name.eq_ignore_ascii_case(known.as_bytes()))
    }
}

/// The host that a request is for, with its port: HTTP/2 says it in the target, HTTP/1.1 in a field.
pub(super) fn of(head: &Parts) -> &[u8] {
    match head.uri.authority() {
        Some(authority) => authority.as_str().rsplit('@').next().unwrap_or_default().as_bytes(),
        None => head.headers.get(HOST).map_or(b"", |host| host.as_bytes()),
    }
}

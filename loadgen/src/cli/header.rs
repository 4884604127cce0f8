//! A header of HTTP, or a pair of gRPC's metadata, as an option.

use std::str::FromStr;

use super::Target;

/// A name and its value, given as `Name: value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
        Ok(Self { name: name.trim().to_owned(), value: value.trim().to_owned() })
    }
}

/// The headers of an HTTP request that are given, with those that a request to this target needs.
pub(super) fn with_needed(given: &[Header], target: &Target, default_port: u16) -> Vec<Header> {
    let mut headers = given.to_vec();
    let has = |name: &str| given.iter().any(|header| header.name.eq_ignore_ascii_case(name));
    if !has("host") {
        let host = if target.host().contains(':') { format!("[{}]", target.host()) } else { target.host().to_owned() };
        let port = target.port_or(default_port);
        let value = if port == default_port { host } else { format!("{host}:{port}") };
        headers.insert(0, Header { name: "Host".to_owned(), value });
    }
    if let Some(value) = target.basic_authorization().filter(|_| !has("authorization")) {
        headers.push(Header { name: "Authorization".to_owned(), value });
    }
    headers
}

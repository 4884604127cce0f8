//! Where the load goes: `host:port`, a URL, or a Unix socket.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Invalid;

/// A target as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The scheme before `://`.
    pub scheme: Option<String>,
    /// The login before `@`: user and password.
    pub login: Option<(String, String)>,
    /// Where it is.
    pub place: Place,
    /// The rest of the URL, with its `/`; empty if there is none.
    pub path: String,
}

/// Where a target is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A host name or address, and the port if one was given.
    Host(String, Option<u16>),
    /// A Unix socket.
    Unix(PathBuf),
}

const EXPECTED: &str = "expected HOST, HOST:PORT, a URL, or unix:/PATH";

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return Ok(Self { scheme: None, login: None, place: Place::Unix(path.into()), path: String::new() });
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let login = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            (percent_decoded(user), percent_decoded(password))
        });
        let (host, port) = host_and_port(host)?;
        Ok(Self { scheme, login, place: Place::Host(host, port), path: path.to_owned() })
    }
}

/// As it is read; what cannot stand in a URL is encoded.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = match &self.place {
            Place::Unix(path) => return write!(f, "unix:{}", path.display()),
            Place::Host(host, port) => (host, port),
        };
        if let Some(scheme) = &self.scheme {
            write!(f, "{scheme}://")?;
        }
        if let Some((user, password)) = &self.login {
            write!(f, "{}:{}@", percent_encoded(user), percent_encoded(password))?;
        }
        if host.contains(':') {
            write!(f, "[{host}]")?
        } else {
            f.write_str(host)?
        }
        if let Some(port) = port {
            write!(f, ":{port}")?;
        }
        f.write_str(&self.path)
    }
}

/// Replaces all but letters and digits by their bytes as `%41`.
fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Takes `host`, `host:port`, `[v6]`, `[v6]:port` and a bare v6 address apart.
fn host_and_port(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or(EXPECTED)?;
        (host, rest.strip_prefix(':').or_else(|| (!rest.is_empty()).then_some(rest)))
    } else if text.parse::<std::net::Ipv6Addr>().is_ok() {
        (text, None)
    } else {
        text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)))
    };
    if host.is_empty() {
        return Err(EXPECTED.to_owned());
    }
    let port = port.map(|port| port.parse().map_err(|_| format!("the port is `{port}`, expected 0 to 65535")));
    Ok((host.to_owned(), port.transpose()?))
}

/// Replaces `%41` by `A`; a `%` that begins no such triple stays.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Target {
    /// The `Authorization` of its user and password (RFC 7617), as browsers and curl send it.
    #[must_use]
    pub fn basic_authorization(&self) -> Option<String> {
        let (user, password) = self.login.as_ref()?;
        Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
    }

    /// That it has no user and password, for protocols that have no place for them.
    ///
    /// # Errors
    /// When it has.
    pub(super) fn without_login(&self) -> Result<(), Invalid> {
        match &self.login {
            Some((user, _)) => {
                Err(Invalid::new("TARGET's user", user, "none: this protocol has no place for a user and a password"))
            }
            None => Ok(()),
        }
    }

    /// Its host name, for TLS and for HTTP's `Host`; `localhost` for a Unix socket.
    #[must_use]
    pub fn host(&self) -> &str {
        match &self.place {
            Place::Host(host, _) => host,
            Place::Unix(_) => "localhost",
        }
    }

    /// Its port, or the protocol's.
    #[must_use]
    pub fn port_or(&self, default: u16) -> u16 {
        match self.place {
            Place::Host(_, port) => port.unwrap_or(default),
            Place::Unix(_) => default,
        }
    }

    /// Host and port as HTTP/2's `:authority`.
    #[must_use]
    pub fn authority(&self, default_port: u16) -> String {
        let host = self.host();
        let port = self.port_or(default_port);
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// The addresses of a host.
    ///
    /// # Errors
    /// When the name is not known, or a Unix socket was given.
    pub fn addresses(&self, default_port: u16) -> Result<Vec<SocketAddr>, Invalid> {
        let Place::Host(host, port) = &self.place else {
            return Err(Invalid::new(
                "TARGET",
                "unix:…",
                "a host, because this protocol is not spoken on Unix sockets",
            ));
        };
        let addresses = (host.as_str(), port.unwrap_or(default_port)).to_socket_addrs();
        let addresses: Vec<SocketAddr> = addresses
            .map_err(|error| Invalid::new("TARGET", host, format_args!("a host that can be resolved ({error})")))?
            .collect();
        if addresses.is_empty() {
            return Err(Invalid::new("TARGET", host, "a host that has an address"));
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_apart() {
        #[track_caller]
        fn check(text: &str, scheme: Option<&str>, host: &str, port: Option<u16>, path: &str) {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.scheme.as_deref(), scheme, "{text}");
            assert_eq!(target.place, Place::Host(host.to_owned(), port), "{text}");
            assert_eq!(target.path, path, "{text}");
            assert_eq!(target.to_string().parse(), Ok(target), "{text}");
        }
        check("localhost", None, "localhost", None, "");
        check("127.0.0.1:6379", None, "127.0.0.1", Some(6379), "");
        check("http://a.b:80/x?y=z", Some("http"), "a.b", Some(80), "/x?y=z");
        check("https://a.b?y", Some("https"), "a.b", None, "?y");
        check("redis://u:p%40@h/3", Some("redis"), "h", None, "/3");
        check("[::1]:70", None, "::1", Some(70), "");
        check("::1", None, "::1", None, "");
    }

    #[test]
    fn logins_and_sockets_are_found() {
        let target: Target = "redis://ann:p%40ss@h".parse().unwrap();
        assert_eq!(target.login, Some(("ann".to_owned(), "p@ss".to_owned())));
        assert_eq!(target.to_string(), "redis://ann:p%40ss@h");
        let target: Target = "unix:/run/x.sock".parse().unwrap();
        assert_eq!(target.place, Place::Unix("/run/x.sock".into()));
    }

    #[test]
    fn malformed_targets_are_refused() {
        for text in ["", ":80", "h:port", "h:70000", "[::1", "http://"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}

//! The address of Redis, the login there, and the time-outs.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
#[cfg(feature = "embedded-redis")]
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;

/// Redis' own port.
const PORT: u16 = 6379;

/// How a worker's connection to Redis is made and kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where Redis is.
    pub target: Target,
    /// How long a connection may take, from its first packet to Redis' greeting.
    pub connect_timeout: Duration,
    /// How long a request waits for its answer, from the moment that it is asked.
    pub answer_timeout: Duration,
    /// Certificate authorities for `rediss://`, a PEM file; the system's if there is none.
    pub ca: Option<PathBuf>,
    /// Longest answer to one request, in bytes. A longer one is passed over as it comes, and never held.
    pub max_answer: usize,
    /// Requests that one worker lets wait; the next is refused.
    pub max_waiting: usize,
    /// Bytes of requests that one worker keeps unsent; a request that finds more is refused.
    pub max_unsent: usize,
    /// Bytes that all callers together may hold: bodies as they come, and answers above 4 KiB until their clients have
    /// taken them. A request that finds no room fails.
    pub max_held: usize,
}

impl Settings {
    /// The defaults, for `target`.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            connect_timeout: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(2),
            ca: None,
            max_answer: 64 * 1024 * 1024,
            // Requests that 10,000 connections, the default limit, may have at a time, and some pipelining.
            max_waiting: 16 * 1024,
            max_unsent: 64 * 1024 * 1024,
            // Four of the longest answers, or thousands of usual ones.
            max_held: 256 * 1024 * 1024,
        }
    }
}

/// Where Redis is.
///
/// Written `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]`, `rediss://…` (TLS), `HOST:PORT`,
/// `unix://[[USER]:PASSWORD@]/PATH[?db=DB]`, or `embedded`. Names, passwords and paths are percent-decoded.
#[derive(Clone)]
pub enum Target {
    /// A server elsewhere.
    Server(Server),
    /// Our own server, in this process and without a socket.
    #[cfg(feature = "embedded-redis")]
    Embedded(Arc<redis_server::exec::core::Instance>),
}

impl Target {
    /// Whether it is the server in this process.
    pub(crate) fn is_embedded(&self) -> bool {
        !matches!(self, Self::Server(_))
    }
}

/// A server elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// The way there.
    pub place: Place,
    /// The ACL user; Redis' `default` if there is none.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database.
    pub db: u32,
}

/// The way to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// TCP, encrypted or not.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
        /// Whether TLS is spoken.
        tls: bool,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => fmt::Display::fmt(server, f),
            #[cfg(feature = "embedded-redis")]
            Self::Embedded(_) => f.write_str("embedded"),
        }
    }
}

impl fmt::Display for Server {
    /// Without the password: this is what logs and answers show.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp { host, port, tls } => {
                let scheme = if *tls { "rediss" } else { "redis" };
                if host.contains(':') {
                    write!(f, "{scheme}://[{host}]:{port}")?
                } else {
                    write!(f, "{scheme}://{host}:{port}")?
                }
                if self.db != 0 { write!(f, "/{}", self.db) } else { Ok(()) }
            }
            Place::Unix(path) => {
                write!(f, "unix://{}", path.display())?;
                if self.db != 0 { write!(f, "?db={}", self.db) } else { Ok(()) }
            }
        }
    }
}

/// A text that names no Redis; its message says what would. It does not repeat the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseTargetError(&'static str);

impl fmt::Display for ParseTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: expected redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], rediss://…, unix:///PATH[?db=DB], HOST:PORT or embedded",
            self.0
        )
    }
}

impl std::error::Error for ParseTargetError {}

impl FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "embedded" {
            #[cfg(feature = "embedded-redis")]
            return Ok(Self::Embedded(Arc::new(redis_server::exec::core::Instance::new(
                Arc::new(redis_server::config::Config::default()),
                &redis_server::commands::TABLE,
            ))));
            #[cfg(not(feature = "embedded-redis"))]
            return Err(ParseTargetError("this build has no server of its own (cargo's feature embedded-redis)"));
        }
        Server::from_str(text).map(Self::Server)
    }
}

impl FromStr for Server {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("redis", text));
        if !text.contains("://") && !rest.rsplit('@').next().is_some_and(has_port) {
            return Err(ParseTargetError("neither a scheme nor a port"));
        }
        let (login, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = login.split_once(':').unwrap_or(("", login));
        let user = some(decoded(user)?);
        let password = some(decoded(password)?);
        if user.is_some() && password.is_none() {
            return Err(ParseTargetError("a user without a password"));
        }
        let (place, db) = match scheme {
            "redis" | "tcp" => tcp(rest, false)?,
            "rediss" => tcp(rest, true)?,
            "unix" | "redis+unix" => unix(rest)?,
            _ => return Err(ParseTargetError("not a scheme of Redis")),
        };
        Ok(Self { place, user, password, db })
    }
}

/// A bare word names no server: it is more likely another word, misspelt.
fn has_port(address: &str) -> bool {
    address.rsplit(']').next().is_some_and(|behind| behind.contains(':'))
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn decoded(text: &str) -> Result<String, ParseTargetError> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| ParseTargetError("not UTF-8"))?;
    Ok(decoded.into_owned())
}

fn tcp(rest: &str, tls: bool) -> Result<(Place, u32), ParseTargetError> {
    let (address, db) = rest.split_once('/').unwrap_or((rest, ""));
    let db = if db.is_empty() { 0 } else { number(db)? };
    let (host, port) = if let Some(bracketed) = address.strip_prefix('[') {
        let (host, port) = bracketed.split_once(']').ok_or(ParseTargetError("a bracket without its end"))?;
        (host, port.strip_prefix(':'))
    } else {
        match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    let port = match port {
        Some(port) => port.parse().map_err(|_| ParseTargetError("not a port"))?,
        None => PORT,
    };
    if host.is_empty() {
        return Err(ParseTargetError("no host"));
    }
    Ok((Place::Tcp { host: host.to_owned(), port, tls }, db))
}

fn unix(rest: &str) -> Result<(Place, u32), ParseTargetError> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let db = match query.strip_prefix("db=") {
        Some(db) => number(db)?,
        None if query.is_empty() => 0,
        None => return Err(ParseTargetError("only db= may follow the path")),
    };
    if path.is_empty() {
        return Err(ParseTargetError("no path"));
    }
    Ok((Place::Unix(decoded(path)?.into()), db))
}

fn number(text: &str) -> Result<u32, ParseTargetError> {
    text.parse().map_err(|_| ParseTargetError("not the number of a database"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        /// The expected values: the target as shown, user and password.
        fn check(text: &str, expected: Option<(&str, &str, &str)>) {
            let parsed = Server::from_str(text).ok();
            let login = parsed.as_ref().map(|server| {
                (
                    server.to_string(),
                    server.user.clone().unwrap_or_default(),
                    server.password.clone().unwrap_or_default(),
                )
            });
            let expected = expected.map(|(shown, user, password)| (shown.into(), user.into(), password.into()));
            assert_eq!(login, expected, "{text}");
        }
        check("localhost:7000", Some(("redis://localhost:7000", "", "")));
        check("redis://h", Some(("redis://h:6379", "", "")));
        check("redis://h/3", Some(("redis://h:6379/3", "", "")));
        check("redis://:pw@h:1/3", Some(("redis://h:1/3", "", "pw")));
        check("redis://pw@h:1", Some(("redis://h:1", "", "pw")));
        check("redis://u:p%40%3A@h", Some(("redis://h:6379", "u", "p@:")));
        check("redis://u:p@q@h", Some(("redis://h:6379", "u", "p@q")));
        check("rediss://[::1]:7", Some(("rediss://[::1]:7", "", "")));
        check("unix:///run/r.sock", Some(("unix:///run/r.sock", "", "")));
        check("unix://u:p@/run/r.sock?db=2", Some(("unix:///run/r.sock?db=2", "u", "p")));
        check("pw@h:1", Some(("redis://h:1", "", "pw")));
        check("[::1]:7", Some(("redis://[::1]:7", "", "")));
        check("embeded", None);
        check("[::1]", None);
        check("pw@h", None);
        check("redis://u:@h", None);
        check("redis://", None);
        check("redis://h:x", None);
        check("redis://h/x", None);
        check("redis://[::1", None);
        check("http://h", None);
        check("unix://", None);
        check("unix:///p?x=1", None);
    }
}

//! The options of a server.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Registry;

/// For a TLS handshake, unless told otherwise.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything that [`start`](crate::start) wants to know. Take the [`Default`] and set what differs:
///
/// ```
/// use server_runtime::Options;
/// let options = Options { listen: vec!["127.0.0.1:0".parse().unwrap()], workers: 1, ..Options::default() };
/// assert_eq!(options.max_connections, 10_000);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to accept connections; at least one place.
    pub listen: Vec<Listen>,
    /// Worker threads; 0 means one per core that this process may use.
    pub workers: usize,
    /// Whether each worker stays on a processor of its own, if there are as many workers as processors that this process may
    /// use (Linux only). For programs that have the machine to themselves; otherwise the kernel knows better.
    pub pin_workers: bool,
    /// Connections open at one time, over all workers; the next one is refused. The process' limit of open files is
    /// raised to fit, and where the system does not allow that, fewer connections are, with a warning in the log.
    pub max_connections: usize,
    /// How long a shutdown waits for open connections before it cuts them.
    pub drain: Duration,
    /// Connections that the kernel keeps waiting for `accept`. The kernel caps it (`net.core.somaxconn`).
    pub backlog: u32,
    /// TCP_NODELAY: small answers leave at once.
    pub nodelay: bool,
    /// Silence after which the kernel probes a TCP peer; `None` never probes.
    pub keepalive: Option<Duration>,
    /// Certificate and key of the [`Listen::Tls`] places.
    pub tls: Option<TlsOptions>,
    /// A configuration of your own for the [`Listen::Tls`] places, instead of [`Options::tls`]: other providers, resolvers,
    /// verifiers. It stays as it is for as long as the server runs.
    pub rustls: Option<Arc<rustls::ServerConfig>>,
    /// Whether SIGHUP has the files of [`Options::tls`] read again; if not, the program may catch it and call
    /// [`Handle::reload_tls`](crate::Handle::reload_tls).
    pub hangup_reloads: bool,
    /// Where `/metrics` is served for Prometheus, over plain HTTP.
    pub metrics_listen: Option<SocketAddr>,
    /// The metrics that `/metrics` serves besides the runtime's own. Share a clone with the service.
    pub metrics: Registry,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            workers: 0,
            pin_workers: false,
            max_connections: 10_000,
            drain: Duration::from_secs(10),
            backlog: 511, // Redis' value: large enough for a burst, small enough to show an overload
            nodelay: true,
            keepalive: Some(Duration::from_secs(300)),
            tls: None,
            rustls: None,
            hangup_reloads: true,
            metrics_listen: None,
            metrics: Registry::default(),
        }
    }
}

impl Options {
    /// Offers these protocols by ALPN, the preferred first, where the TLS configuration names none.
    pub fn offer(&mut self, protocols: &[&[u8]]) {
        let named = || protocols.iter().map(|name| name.to_vec()).collect();
        if let Some(tls) = self.tls.as_mut().filter(|tls| tls.alpn.is_empty()) {
            tls.alpn = named();
        }
        if let Some(config) = self.rustls.as_mut().filter(|config| config.alpn_protocols.is_empty()) {
            Arc::make_mut(config).alpn_protocols = named();
        }
    }
}

/// A place where connections are accepted.
///
/// Written `127.0.0.1:6379`, `[::]:6379` (IPv6 and IPv4), `0.0.0.0:6379` (IPv4 alone), `localhost:6379`, `:6379` or `6379`
/// (every interface); `tls:` before any of these encrypts; `unix:/run/server.sock` or `unix:/run/server.sock?mode=660`;
/// `fd:3` is what systemd has bound (its first socket), `tls:fd:3` encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Plain TCP.
    Tcp(SocketAddr),
    /// TLS over TCP, with the certificate of [`Options::tls`].
    Tls(SocketAddr),
    /// A Unix domain socket.
    Unix {
        /// The socket's file.
        path: PathBuf,
        /// The file's permission bits; `None` leaves them to the umask.
        mode: Option<u32>,
    },
    /// A socket that listens already, which the process got from the one that started it: TCP or a Unix domain socket. systemd
    /// passes those of a `.socket` unit from descriptor 3 on; the descriptor stays open.
    Inherited {
        /// The descriptor.
        fd: i32,
        /// Whether TLS is spoken.
        tls: bool,
    },
}

impl Listen {
    /// Whether it needs a certificate.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::Inherited { tls: true, .. })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => write!(f, "{addr}"),
            Self::Tls(addr) => write!(f, "tls:{addr}"),
            Self::Inherited { fd, tls } => write!(f, "{}fd:{fd}", if *tls { "tls:" } else { "" }),
            Self::Unix { path, mode: None } => write!(f, "unix:{}", path.display()),
            Self::Unix { path, mode: Some(mode) } => write!(f, "unix:{}?mode={mode:o}", path.display()),
        }
    }
}

/// A text that names no place to listen; its message says what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseListenError(String);

impl fmt::Display for ParseListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is no place to listen: expected ADDRESS:PORT, [IPV6]:PORT, PORT, tls:ADDRESS:PORT, unix:PATH[?mode=OCTAL] or fd:NUMBER",
            self.0
        )
    }
}

impl std::error::Error for ParseListenError {}

impl FromStr for Listen {
    type Err = ParseListenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let inherited = |number: &str, tls| number.parse().ok().map(|fd: u16| Self::Inherited { fd: fd.into(), tls });
        let place = if let Some(rest) = text.strip_prefix("unix:") {
            unix(rest)
        } else if let Some(number) = text.strip_prefix("fd:") {
            inherited(number, false)
        } else if let Some(number) = text.strip_prefix("tls:fd:") {
            inherited(number, true)
        } else if let Some(rest) = text.strip_prefix("tls:") {
            parse_address(rest).map(Self::Tls)
        } else {
            parse_address(text).map(Self::Tcp)
        };
        place.ok_or_else(|| ParseListenError(text.to_owned()))
    }
}

fn unix(rest: &str) -> Option<Listen> {
    let (path, mode) = match rest.rsplit_once("?mode=") {
        Some((path, octal)) => (path, Some(u32::from_str_radix(octal, 8).ok().filter(|mode| *mode <= 0o777)?)),
        None => (rest, None),
    };
    (!path.is_empty()).then(|| Listen::Unix { path: path.into(), mode })
}

/// An address in the forms of [`Listen`], without a scheme.
pub(crate) fn parse_address(text: &str) -> Option<SocketAddr> {
    if let Ok(addr) = text.parse() {
        return Some(addr);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let ip = match host {
        "" | "*" => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port.parse().ok()?))
}

/// The server's certificate, and what it asks of clients. All files are PEM.
///
/// The files are read again on SIGHUP and when one of them changes; a set that does not load is logged and the one
/// in use stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificate chain, the server's own first.
    pub cert: PathBuf,
    /// Its private key (PKCS#8, PKCS#1 or SEC1), not encrypted.
    pub key: PathBuf,
    /// Further chains with their keys: a client that asks for a host gets the first certificate that is for it (SNI), and
    /// `cert` if there is none.
    pub others: Vec<(PathBuf, PathBuf)>,
    /// Authorities whose client certificates are trusted; needed unless `client_auth` is [`ClientAuth::None`].
    pub client_ca: Option<PathBuf>,
    /// Whether clients show a certificate.
    pub client_auth: ClientAuth,
    /// The versions of TLS that are spoken.
    pub versions: TlsVersions,
    /// Protocols offered by ALPN, the preferred first (`h2`, `http/1.1`); empty leaves ALPN out.
    pub alpn: Vec<Vec<u8>>,
    /// How long a client may take for the handshake.
    pub handshake_timeout: Duration,
}

impl TlsOptions {
    /// A server certificate; clients need none.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            cert: cert.into(),
            key: key.into(),
            others: Vec::new(),
            client_ca: None,
            client_auth: ClientAuth::None,
            versions: TlsVersions::default(),
            alpn: Vec::new(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
        }
    }
}

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// Not asked for.
    #[default]
    None,
    /// Checked when shown.
    Optional,
    /// No connection without one.
    Required,
}

/// The versions of TLS that both ends may agree on. Older ones have known weaknesses (RFC 8996), and are never spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersions {
    /// 1.2 and 1.3.
    #[default]
    All,
    /// 1.2 alone.
    Only12,
    /// 1.3 alone.
    Only13,
}

impl TlsVersions {
    /// As rustls takes them.
    #[must_use]
    pub fn supported(self) -> &'static [&'static rustls::SupportedProtocolVersion] {
        static ONLY_12: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS12];
        static ONLY_13: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
        match self {
            Self::All => rustls::ALL_VERSIONS,
            Self::Only12 => &ONLY_12,
            Self::Only13 => &ONLY_13,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        fn check(text: &str, shown: Option<&str>) {
            let parsed: Result<Listen, _> = text.parse();
            assert_eq!(parsed.as_ref().ok().map(ToString::to_string).as_deref(), shown, "{text}");
            if let (Ok(place), Some(shown)) = (parsed, shown) {
                assert_eq!(shown.parse(), Ok(place), "{text}: shown form reads back");
            }
        }
        check("127.0.0.1:80", Some("127.0.0.1:80"));
        check("[::]:80", Some("[::]:80"));
        check("[::1]:0", Some("[::1]:0"));
        check(":80", Some("[::]:80"));
        check("*:80", Some("[::]:80"));
        check("80", Some("[::]:80"));
        check("localhost:80", Some("127.0.0.1:80"));
        check("tls:0.0.0.0:443", Some("tls:0.0.0.0:443"));
        check("tls:443", Some("tls:[::]:443"));
        check("fd:3", Some("fd:3"));
        check("tls:fd:4", Some("tls:fd:4"));
        check("fd:-1", None);
        check("fd:", None);
        check("unix:/run/a.sock", Some("unix:/run/a.sock"));
        check("unix:/run/a.sock?mode=660", Some("unix:/run/a.sock?mode=660"));
        check("", None);
        check("unix:", None);
        check("unix:/run/a.sock?mode=9", None);
        check("unix:/run/a.sock?mode=7777", None);
        check("127.0.0.1", None);
        check("127.0.0.1:65536", None);
        check("::1:80:x", None);
        check("example.org:80", None);
    }
}

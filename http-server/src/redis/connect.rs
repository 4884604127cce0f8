//! Making a connection: socket, TLS, and login.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

#[cfg(feature = "embedded-redis")]
use super::embedded;
use super::reply::{Element, Elements};
use super::settings::{Place, Server, Settings, Target};
use super::wire::{Scan, Scanner, put_command};

/// Longest greeting. Redis' own is below 1 KiB.
const MAX_GREETING: usize = 64 * 1024;

/// The bytes of a connection.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Io for T {}

/// Makes connections to one Redis.
pub(crate) struct Connector {
    settings: Settings,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Why the certificate authorities cannot be loaded.
#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot trust any certificate of Redis: {}", self.0)
    }
}

impl std::error::Error for TlsError {}

impl Connector {
    pub(crate) fn new(settings: Settings) -> Result<Self, TlsError> {
        let encrypted = matches!(&settings.target, Target::Server(Server { place: Place::Tcp { tls: true, .. }, .. }));
        let tls = if encrypted { Some(tls(&settings)?) } else { None };
        Ok(Self { settings, tls })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A connection that is ready for commands.
    ///
    /// # Errors
    /// The error for users, if there is none in time.
    pub(crate) async fn connect(&self) -> Result<Box<dyn Io>, String> {
        #[cfg_attr(
            not(feature = "embedded-redis"),
            expect(clippy::infallible_destructuring_match, reason = "without the feature there is one kind")
        )]
        let server = match &self.settings.target {
            #[cfg(feature = "embedded-redis")]
            Target::Embedded(instance) => return Ok(Box::new(embedded::Connection::new(instance))),
            Target::Server(server) => server,
        };
        let limit = self.settings.connect_timeout;
        match tokio::time::timeout(limit, self.reach(server)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(format!("{server}: {error}")),
            Err(_) => Err(format!("{server}: no connection within {limit:?}")),
        }
    }

    async fn reach(&self, server: &Server) -> io::Result<Box<dyn Io>> {
        let mut stream: Box<dyn Io> = match &server.place {
            Place::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Place::Tcp { host, port, .. } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                match &self.tls {
                    None => Box::new(stream),
                    Some(tls) => {
                        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                        Box::new(tls.connect(name, stream).await?)
                    }
                }
            }
        };
        greet(&mut stream, server).await?;
        Ok(stream)
    }
}

fn tls(settings: &Settings) -> Result<TlsConnector, TlsError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &settings.ca {
        let shown = path.display();
        let certificates =
            CertificateDer::pem_file_iter(path).map_err(|error| TlsError(format!("{shown}: {error}")))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| TlsError(format!("{shown}: {error}")))?;
            roots.add(certificate).map_err(|error| TlsError(format!("{shown}: {error}")))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return Err(TlsError("there is no certificate authority; name one by --redis-ca FILE".into()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Says who we are. RESP3 where it is spoken, because its replies tell maps from arrays and numbers from strings.
async fn greet(stream: &mut dyn Io, server: &Server) -> io::Result<()> {
    let user = server.user.as_deref().unwrap_or("default");
    let mut hello = vec!["HELLO", "3"];
    if let Some(password) = &server.password {
        hello.extend(["AUTH", user, password]);
    }
    match run(stream, &hello).await {
        Ok(()) => {}
        // Redis before version 6, and servers that are like it.
        Err(Refused::Error(error)) if error.starts_with("ERR unknown command") || error.starts_with("NOPROTO") => {
            match (&server.user, &server.password) {
                (Some(user), Some(password)) => run(stream, &["AUTH", user, password]).await?,
                (None, Some(password)) => run(stream, &["AUTH", password]).await?,
                (_, None) => {}
            }
        }
        Err(refused) => return Err(refused.into()),
    }
    if server.db != 0 {
        run(stream, &["SELECT", &server.db.to_string()]).await?;
    }
    Ok(())
}

enum Refused {
    Io(io::Error),
    /// An error reply.
    Error(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Io(error) => error,
            Refused::Error(error) => Self::other(error),
        }
    }
}

/// Runs one command on a connection that is not shared yet.
async fn run(stream: &mut dyn Io, args: &[&str]) -> Result<(), Refused> {
    let mut out = Vec::new();
    put_command(&mut out, args);
    stream.write_all(&out).await?;
    stream.flush().await?;
    let (mut scanner, mut input, mut scanned) = (Scanner::default(), Vec::new(), 0);
    loop {
        if stream.read_buf(&mut input).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        match scanner.scan(&input[scanned..]).map_err(|error| io::Error::other(error.to_string()))? {
            Scan::Whole(_) => break,
            Scan::Part(more) => scanned += more,
        }
        if input.len() > MAX_GREETING {
            return Err(io::Error::other("its greeting is too long").into());
        }
    }
    match Elements::new(&input).next() {
        Some(Element::Error(error)) => Err(Refused::Error(String::from_utf8_lossy(error).into_owned())),
        _ => Ok(()),
    }
}

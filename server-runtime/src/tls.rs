//! TLS by rustls: certificates from PEM files, read again when they change.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{error, info};

use crate::error::Error;
use crate::event_loop::Polled;
use crate::options::{ClientAuth, HANDSHAKE_TIMEOUT, TlsOptions};
use crate::self_signed::OwnAuthorities;
use crate::timers;

/// How often the files are looked at, at most.
const CHECK_PAUSE: Duration = Duration::from_secs(1);

/// The certificate in use and where it came from.
pub(crate) struct Tls(Mutex<State>);

struct State {
    /// The files; none for a configuration that was given as it is.
    options: Option<TlsOptions>,
    timeout: Duration,
    config: Arc<ServerConfig>,
    stamps: Vec<Option<Stamp>>,
    checked: Instant,
}

/// The properties of a file that change when it is replaced or written to.
type Stamp = (SystemTime, u64, u64);

impl Tls {
    pub(crate) fn load(options: TlsOptions) -> Result<Self, Error> {
        // Before reading: a change in between is seen at the next check.
        let stamps = stamps(&options);
        let config = options.server_config()?;
        let timeout = options.handshake_timeout;
        Ok(Self(Mutex::new(State { options: Some(options), timeout, config, stamps, checked: Instant::now() })))
    }

    /// A configuration that somebody else has made.
    pub(crate) fn given(config: Arc<ServerConfig>) -> Self {
        let (timeout, stamps) = (HANDSHAKE_TIMEOUT, Vec::new());
        Self(Mutex::new(State { options: None, timeout, config, stamps, checked: Instant::now() }))
    }

    /// The configuration for a connection that is accepted now.
    pub(crate) fn session(&self) -> Session {
        let mut state = self.state();
        if state.checked.elapsed() >= CHECK_PAUSE {
            state.checked = Instant::now();
            if state.options.as_ref().is_some_and(|options| stamps(options) != state.stamps) {
                state.reload_or_log();
            }
        }
        Session { config: Arc::clone(&state.config), timeout: state.timeout }
    }

    /// Reads the files again, whatever their dates; on an error the certificate in use stays.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        self.state().reload()
    }

    /// Takes other files or settings; on an error nothing changes.
    pub(crate) fn replace(&self, options: TlsOptions) -> Result<(), Error> {
        *self.state() = Self::load(options)?.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }

    pub(crate) fn reload_or_log(&self) {
        self.state().reload_or_log();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each update is one assignment, so a panic elsewhere leaves a whole state behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn reload(&mut self) -> Result<(), Error> {
        let Some(options) = &self.options else { return Ok(()) };
        self.stamps = stamps(options);
        self.config = options.server_config()?;
        Ok(())
    }

    fn reload_or_log(&mut self) {
        match self.reload() {
            Ok(()) => info!("certificates reloaded"),
            Err(error) => error!("the certificate in use stays, because the new one does not load: {error}"),
        }
    }
}

fn stamps(options: &TlsOptions) -> Vec<Option<Stamp>> {
    let others = options.others.iter().flat_map(|(cert, key)| [cert, key]);
    [&options.cert, &options.key].into_iter().chain(&options.client_ca).chain(others).map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len(), file.ino()))
}

impl TlsOptions {
    /// The rustls configuration for the current files, for listeners of your own, too.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it should be.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(self.versions.supported())
            .map_err(|error| Error::Tls(error.to_string()))?;
        let builder = match client_verifier(self)? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let first = certified(&self.cert, &self.key, &provider)?;
        let others = self.others.iter().map(|(cert, key)| certified(cert, key, &provider)).collect::<Result<_, _>>()?;
        let mut config = builder.with_cert_resolver(Arc::new(ByName { first, others }));
        config.alpn_protocols.clone_from(&self.alpn);
        Ok(Arc::new(config))
    }
}

fn certified(cert: &PathBuf, key: &PathBuf, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, Error> {
    let chain = certificates(cert)?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| file_error(key, "private key", &error))?;
    let certified = CertifiedKey::from_der(chain, secret, provider)
        .map_err(|error| Error::Tls(format!("{} and {} do not fit: {error}", cert.display(), key.display())))?;
    Ok(Arc::new(certified))
}

/// Certificates, of which a client gets the one for the host that it asks for.
#[derive(Debug)]
struct ByName {
    first: Arc<CertifiedKey>,
    others: Vec<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_for = |certified: &CertifiedKey, name: &ServerName<'_>| {
            let parsed = certified.end_entity_cert().and_then(ParsedCertificate::try_from);
            parsed.is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
        };
        let name =
            hello.server_name().filter(|_| !self.others.is_empty()).and_then(|name| ServerName::try_from(name).ok());
        let all = || std::iter::once(&self.first).chain(&self.others);
        let found = name.and_then(|name| all().find(|certified| is_for(certified, &name)));
        Some(Arc::clone(found.unwrap_or(&self.first)))
    }
}

fn client_verifier(options: &TlsOptions) -> Result<Option<Arc<dyn ClientCertVerifier>>, Error> {
    if options.client_auth == ClientAuth::None {
        return Ok(None);
    }
    let Some(path) = &options.client_ca else {
        return Err(Error::Tls(
            "client certificates need the authorities to check them against: give their file".into(),
        ));
    };
    let mut roots = RootCertStore::empty();
    let authorities = certificates(path)?;
    for certificate in authorities.iter().cloned() {
        roots.add(certificate).map_err(|error| Error::TlsFile { path: path.clone(), reason: error.to_string() })?;
    }
    let provider = Arc::new(ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match options.client_auth {
        ClientAuth::None | ClientAuth::Required => builder,
        ClientAuth::Optional => builder.allow_unauthenticated(),
    };
    let others = builder.build();
    let others = others.map_err(|error| Error::TlsFile { path: path.clone(), reason: error.to_string() })?;
    Ok(Some(Arc::new(OwnAuthorities { others, authorities })))
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| file_error(path, "certificate", &error))?;
    if chain.is_empty() {
        return Err(file_error(path, "certificate", &pem::Error::NoItemsFound));
    }
    Ok(chain)
}

fn file_error(path: &Path, wanted: &str, error: &pem::Error) -> Error {
    let reason = match error {
        pem::Error::NoItemsFound => format!("no {wanted} in PEM form in it"),
        pem::Error::Io(error) => error.to_string(),
        other => format!("no valid PEM: {other:?}"),
    };
    Error::TlsFile { path: path.to_owned(), reason }
}

/// The configuration of one handshake.
pub(crate) struct Session {
    pub(crate) config: Arc<ServerConfig>,
    timeout: Duration,
}

impl Session {
    /// The stream after a handshake on a new connection.
    pub(crate) async fn accept<S: Peek>(self, mut socket: S) -> io::Result<TlsStream<S>> {
        timers::timeout(self.timeout, async {
            let spoken = other_protocol(&mut socket).await?;
            // Also where it must fail: rustls reads what was sent and answers by an alert, so that the close is no reset.
            let accepted = TlsAcceptor::from(self.config).accept(socket).await;
            accepted.map_err(|error| spoken.map_or(error, not_tls))
        })
        .await?
    }
}

fn not_tls(spoken: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the client speaks {spoken} to a port that serves TLS"))
}

/// The first byte of a TLS connection: the content type "handshake" (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// The longest method of HTTP with the space behind it.
const METHOD_MAX: usize = "OPTIONS ".len();

/// A stream whose first bytes can be read twice.
pub(crate) trait Peek: AsyncRead + AsyncWrite + Unpin {
    /// Waits for bytes, and leaves them in the socket.
    async fn peek(&mut self, head: &mut [u8]) -> io::Result<usize>;
}

impl Peek for TcpStream {
    async fn peek(&mut self, head: &mut [u8]) -> io::Result<usize> {
        Self::peek(self, head).await
    }
}

impl Peek for Polled {
    async fn peek(&mut self, head: &mut [u8]) -> io::Result<usize> {
        Self::peek(self, head).await
    }
}

/// Waits for the first bytes, leaves them in the socket, and returns what they begin if that is no TLS handshake.
///
/// # Errors
/// The connection failed.
async fn other_protocol(socket: &mut impl Peek) -> io::Result<Option<&'static str>> {
    let mut head = [0; METHOD_MAX];
    let count = socket.peek(&mut head).await?;
    let head = &head[..count];
    if head.first().is_none_or(|first| *first == HANDSHAKE) {
        return Ok(None);
    }
    let method = head.split(|byte| *byte == b' ').next().unwrap_or_default();
    let is_http = method.len() < head.len() && method.iter().all(u8::is_ascii_uppercase) && !method.is_empty();
    Ok(Some(if is_http { "plain HTTP" } else { "something else than TLS" }))
}

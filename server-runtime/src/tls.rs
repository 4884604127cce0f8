//! TLS by rustls: certificates from PEM files, read again when they change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{error, info};

use crate::error::Error;
use crate::options::{ClientAuth, TlsOptions};

/// How often the files are looked at, at most.
const CHECK_PAUSE: Duration = Duration::from_secs(1);

/// The certificate in use and where it came from.
pub(crate) struct Tls(Mutex<State>);

struct State {
    options: TlsOptions,
    config: Arc<ServerConfig>,
    stamps: Vec<Option<Stamp>>,
    checked: Instant,
}

/// What changes when a file is replaced or written to.
type Stamp = (SystemTime, u64);

impl Tls {
    pub(crate) fn load(options: TlsOptions) -> Result<Self, Error> {
        // Before reading: a change in between is seen at the next check.
        let stamps = stamps(&options);
        let config = server_config(&options)?;
        Ok(Self(Mutex::new(State { options, config, stamps, checked: Instant::now() })))
    }

    /// What a connection accepted now is served with.
    pub(crate) fn session(&self) -> Session {
        let mut state = self.state();
        if state.checked.elapsed() >= CHECK_PAUSE {
            state.checked = Instant::now();
            if stamps(&state.options) != state.stamps {
                state.reload_or_log();
            }
        }
        Session { config: Arc::clone(&state.config), timeout: state.options.handshake_timeout }
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
        self.stamps = stamps(&self.options);
        self.config = server_config(&self.options)?;
        Ok(())
    }

    fn reload_or_log(&mut self) {
        match self.reload() {
            Ok(()) => info!("certificate {} reloaded", self.options.cert.display()),
            Err(error) => error!("the certificate in use stays, because the new one does not load: {error}"),
        }
    }
}

fn stamps(options: &TlsOptions) -> Vec<Option<Stamp>> {
    [Some(&options.cert), Some(&options.key), options.client_ca.as_ref()]
        .into_iter()
        .flatten()
        .map(|path| stamp(path))
        .collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

fn server_config(options: &TlsOptions) -> Result<Arc<ServerConfig>, Error> {
    let chain = certificates(&options.cert)?;
    let key =
        PrivateKeyDer::from_pem_file(&options.key).map_err(|error| file_error(&options.key, "private key", &error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Tls(error.to_string()))?;
    let builder = match client_verifier(options)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| {
        Error::Tls(format!("{} and {} do not fit: {error}", options.cert.display(), options.key.display()))
    })?;
    config.alpn_protocols.clone_from(&options.alpn);
    Ok(Arc::new(config))
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
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| Error::TlsFile { path: path.clone(), reason: error.to_string() })?;
    }
    let provider = Arc::new(ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match options.client_auth {
        ClientAuth::None | ClientAuth::Required => builder,
        ClientAuth::Optional => builder.allow_unauthenticated(),
    };
    builder.build().map(Some).map_err(|error| Error::TlsFile { path: path.clone(), reason: error.to_string() })
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

/// What one handshake needs.
pub(crate) struct Session {
    config: Arc<ServerConfig>,
    timeout: Duration,
}

impl Session {
    pub(crate) async fn handshake(self, socket: std::net::TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let accept = TlsAcceptor::from(self.config).accept(TcpStream::from_std(socket)?);
        tokio::time::timeout(self.timeout, accept).await?
    }
}

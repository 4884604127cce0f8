//! The options of TLS, from the configuration.

use std::fmt;

use server_runtime::{ClientAuth, Handle, TlsOptions, TlsVersions};

use super::{Config, Id, settings};

/// The settings that [`options`] reads and that may change while the server runs.
pub(crate) const SETTINGS: [Id; 5] = [
    settings::TLS_CERT_FILE.id(),
    settings::TLS_KEY_FILE.id(),
    settings::TLS_CA_CERT_FILE.id(),
    settings::TLS_AUTH_CLIENTS.id(),
    settings::TLS_PROTOCOLS.id(),
];

/// Why TLS cannot be served.
#[derive(Debug)]
pub enum TlsError {
    /// `tls-port` without certificate or key.
    NoCertificate,
    /// `tls-auth-clients` without the authorities of their certificates.
    NoAuthorities,
    /// A word of `tls-protocols` names no version.
    NoVersion(String),
    /// `tls-protocols` names only versions that are not spoken any more.
    OldVersions(String),
    /// The runtime refused.
    Refused(server_runtime::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("tls-port needs tls-cert-file and tls-key-file"),
            Self::NoAuthorities => f.write_str(
                "tls-auth-clients, which is yes by default, needs tls-ca-cert-file; \"tls-auth-clients no\" serves clients \
                 without certificates",
            ),
            Self::NoVersion(word) => write!(
                f,
                "tls-protocols has '{word}', which is none of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3"
            ),
            Self::OldVersions(words) => write!(
                f,
                "tls-protocols is '{words}', but only TLSv1.2 and TLSv1.3 are served (RFC 8996); name one of them"
            ),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TlsError {}

/// How TLS is served; `None` without `tls-port`.
pub(crate) fn options(config: &Config) -> Result<Option<TlsOptions>, TlsError> {
    if config.int(settings::TLS_PORT) == 0 {
        return Ok(None);
    }
    let file = |setting| config.string(setting).ok_or(TlsError::NoCertificate);
    let client_auth = match config.word(settings::TLS_AUTH_CLIENTS) {
        "no" => ClientAuth::None,
        "optional" => ClientAuth::Optional,
        _ => ClientAuth::Required,
    };
    let ca = config.string(settings::TLS_CA_CERT_FILE);
    if client_auth != ClientAuth::None && ca.is_none() {
        return Err(TlsError::NoAuthorities);
    }
    Ok(Some(TlsOptions {
        client_auth,
        client_ca: ca.map(Into::into),
        versions: versions(config)?,
        ..TlsOptions::new(file(settings::TLS_CERT_FILE)?, file(settings::TLS_KEY_FILE)?)
    }))
}

/// The versions that `tls-protocols` names; nothing named means all that are served.
///
/// # Errors
/// A word is no version, or no named version is served.
pub(crate) fn versions(config: &Config) -> Result<TlsVersions, TlsError> {
    let words = config.string(settings::TLS_PROTOCOLS).unwrap_or_default();
    let (mut has_12, mut has_13) = (words.is_empty(), words.is_empty());
    for word in words.split_ascii_whitespace() {
        match word.to_ascii_lowercase().as_str() {
            "tlsv1" | "tlsv1.1" => tracing::warn!("tls-protocols: {word} is not served (RFC 8996)"),
            "tlsv1.2" => has_12 = true,
            "tlsv1.3" => has_13 = true,
            _ => return Err(TlsError::NoVersion(word.to_owned())),
        }
    }
    match (has_12, has_13) {
        (true, true) => Ok(TlsVersions::All),
        (true, false) => Ok(TlsVersions::Only12),
        (false, true) => Ok(TlsVersions::Only13),
        (false, false) => Err(TlsError::OldVersions(words)),
    }
}

/// Serves the connections to come as the configuration says now; the old certificate stays where it cannot be.
pub(crate) fn renew(config: &Config, runtime: &Handle) -> Result<(), TlsError> {
    options(config)?.map_or(Ok(()), |options| runtime.replace_tls(options)).map_err(TlsError::Refused)
}

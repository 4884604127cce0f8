//! The options of TLS, from the configuration.

use std::fmt;

use server_runtime::{ClientAuth, Handle, TlsOptions};

use super::{Config, Id, settings};

/// The settings that [`options`] reads and that may change while the server runs.
pub(crate) const SETTINGS: [Id; 4] = [
    settings::TLS_CERT_FILE.id(),
    settings::TLS_KEY_FILE.id(),
    settings::TLS_CA_CERT_FILE.id(),
    settings::TLS_AUTH_CLIENTS.id(),
];

/// Why TLS cannot be served.
#[derive(Debug)]
pub enum TlsError {
    /// `tls-port` without certificate or key.
    NoCertificate,
    /// `tls-auth-clients` without the authorities of their certificates.
    NoAuthorities,
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
        ..TlsOptions::new(file(settings::TLS_CERT_FILE)?, file(settings::TLS_KEY_FILE)?)
    }))
}

/// Serves the connections to come as the configuration says now; the old certificate stays where it cannot be.
pub(crate) fn renew(config: &Config, runtime: &Handle) -> Result<(), TlsError> {
    options(config)?.map_or(Ok(()), |options| runtime.replace_tls(options)).map_err(TlsError::Refused)
}

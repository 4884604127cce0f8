//! What the configuration says of TLS.

use server_runtime::{ClientAuth, Handle, TlsOptions};

use super::StartError;
use crate::config::{Config, Id, settings};

/// The settings that [`options`] reads and that may change while the server runs.
pub(crate) const SETTINGS: [Id; 4] = [
    settings::TLS_CERT_FILE.id(),
    settings::TLS_KEY_FILE.id(),
    settings::TLS_CA_CERT_FILE.id(),
    settings::TLS_AUTH_CLIENTS.id(),
];

/// How TLS is served; `None` without `tls-port`.
pub(super) fn options(config: &Config) -> Result<Option<TlsOptions>, StartError> {
    if config.int(settings::TLS_PORT) == 0 {
        return Ok(None);
    }
    let file = |setting| config.string(setting).ok_or(StartError::Tls);
    let client_auth = match config.word(settings::TLS_AUTH_CLIENTS) {
        "no" => ClientAuth::None,
        "optional" => ClientAuth::Optional,
        _ => ClientAuth::Required,
    };
    let ca = config.string(settings::TLS_CA_CERT_FILE);
    if client_auth != ClientAuth::None && ca.is_none() {
        return Err(StartError::TlsClients);
    }
    Ok(Some(TlsOptions {
        client_auth,
        client_ca: ca.map(Into::into),
        ..TlsOptions::new(file(settings::TLS_CERT_FILE)?, file(settings::TLS_KEY_FILE)?)
    }))
}

/// Serves the connections to come as the configuration says now; the old certificate stays where it cannot be.
pub(crate) fn renew(config: &Config, runtime: &Handle) -> Result<(), StartError> {
    options(config)?.map_or(Ok(()), |options| runtime.replace_tls(options)).map_err(StartError::Runtime)
}

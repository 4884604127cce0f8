//! TLS among servers: the link to a primary (`tls-replication`) and the bus of a cluster (`tls-cluster`).
//!
//! Both ends show a certificate and trust the same authorities, whatever name stands there.

use std::sync::Arc;
use std::{fmt, io};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use server_runtime::{ClientAuth, Shower, TlsOptions, is_own_authority};

use crate::config::{Config, Text, settings, tls};

fn unusable(path: &str, error: impl fmt::Debug) -> io::Error {
    io::Error::other(format!("{path} cannot be used: {error:?}"))
}

fn needed(config: &Config, file: Text, wanted_by: &str) -> io::Result<String> {
    let missing = || io::Error::other(format!("{wanted_by} needs {}", file.id().setting().name));
    config.string(file).ok_or_else(missing)
}

/// The trusted authorities, and the certificate that this server shows: that of `tls-client-cert-file`, or else the one that it
/// serves with. `wanted_by` is the setting that asks for TLS.
///
/// # Errors
/// A file cannot be read, or is not what it should be.
pub fn client_config(config: &Config, wanted_by: &str) -> io::Result<ClientConfig> {
    let authorities = needed(config, settings::TLS_CA_CERT_FILE, wanted_by)?;
    let mut roots = RootCertStore::empty();
    let trusted = certificates(&authorities)?;
    for certificate in trusted.iter().cloned() {
        roots.add(certificate).map_err(|error| unusable(&authorities, error))?;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let verifier = Arc::new(AnyName { others: verifier.map_err(|error| unusable(&authorities, error))?, trusted });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(tls::versions(config).map_err(io::Error::other)?.supported())
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let pair = |certificate, key| Some((config.string(certificate)?, config.string(key)?));
    let shown = pair(settings::TLS_CLIENT_CERT_FILE, settings::TLS_CLIENT_KEY_FILE);
    let Some((certificate, key)) = shown.or_else(|| pair(settings::TLS_CERT_FILE, settings::TLS_KEY_FILE)) else {
        return Ok(builder.with_no_client_auth());
    };
    let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| unusable(&key, error))?;
    builder.with_client_auth_cert(certificates(&certificate)?, secret).map_err(|error| unusable(&certificate, error))
}

/// How the bus is served: every node shows a certificate, whatever clients have to.
///
/// # Errors
/// A file cannot be read, or is not what it should be.
pub fn bus_config(config: &Config) -> io::Result<Arc<ServerConfig>> {
    let file = |setting| needed(config, setting, "tls-cluster");
    let options = TlsOptions {
        client_auth: ClientAuth::Required,
        client_ca: Some(file(settings::TLS_CA_CERT_FILE)?.into()),
        versions: tls::versions(config).map_err(io::Error::other)?,
        ..TlsOptions::new(file(settings::TLS_CERT_FILE)?, file(settings::TLS_KEY_FILE)?)
    };
    options.server_config().map_err(io::Error::other)
}

fn certificates(path: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    found.map_err(|error| unusable(path, error))
}

/// Trusts the authorities and all certificates that they have signed, whatever name stands there: servers know each other by
/// address, and the genuine one asks for no name either.
#[derive(Debug)]
struct AnyName {
    others: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.others.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            Err(_) if is_own_authority(end_entity, &self.trusted, now, Shower::Server) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.others.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.others.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.others.supported_verify_schemes()
    }
}

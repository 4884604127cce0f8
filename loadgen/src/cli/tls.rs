//! TLS from options: trusted certificates, and our own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::Invalid;
use crate::load::Tls;

/// Heading of the TLS options.
const TLS: &str = "TLS";

/// TLS options.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsArgs {
    /// Use TLS, also where the target is no https:// or rediss:// URL
    #[arg(long = "tls", help_heading = TLS)]
    pub enabled: bool,

    /// Trust the certificates in this PEM file [default: those that the system trusts]
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    pub cacert: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long, conflicts_with = "cacert", help_heading = TLS)]
    pub insecure: bool,

    /// The name that the server's certificate must have [default: the target's host]
    #[arg(long, value_name = "NAME", help_heading = TLS)]
    pub sni: Option<String>,

    /// Our certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "key", help_heading = TLS)]
    pub cert: Option<PathBuf>,

    /// Our certificate's key, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = TLS)]
    pub key: Option<PathBuf>,
}

impl TlsArgs {
    /// TLS, if these options or the target's scheme ask for it.
    ///
    /// # Errors
    /// When a file cannot be read or holds no certificate or key, or the name is none.
    pub fn tls(&self, by_scheme: bool, host: &str, alpn: &[&[u8]]) -> Result<Option<Tls>, Invalid> {
        if !(self.enabled || by_scheme) {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions");
        let builder = if self.insecure {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone { provider }))
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let mut config = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let secret = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| Invalid::new("--key", key.display(), format_args!("a PEM key ({error})")))?;
                builder.with_client_auth_cert(certificates("--cert", cert)?, secret).map_err(|error| {
                    Invalid::new("--key", key.display(), format_args!("the key of --cert's certificate ({error})"))
                })?
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        let name = self.sni.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| Invalid::new("--sni", name, "a host name or an IP address"))?;
        Ok(Some(Tls { config: Arc::new(config), name }))
    }

    fn roots(&self) -> Result<RootCertStore, Invalid> {
        let mut roots = RootCertStore::empty();
        let Some(path) = &self.cacert else {
            // Some of a system's files may be unreadable; what is missing shows in the handshake.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        for certificate in certificates("--cacert", path)? {
            roots.add(certificate).map_err(|error| {
                Invalid::new("--cacert", path.display(), format_args!("certificates of authorities ({error})"))
            })?;
        }
        Ok(roots)
    }
}

/// The certificates of a PEM file, at least one.
fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Invalid> {
    let wrong =
        |error: &dyn std::fmt::Display| Invalid::new(option, path.display(), format_args!("a PEM file ({error})"));
    let certificates: Vec<_> =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(|error| wrong(&error))?;
    if certificates.is_empty() {
        return Err(wrong(&"it holds no certificate"));
    }
    Ok(certificates)
}

/// Trusts any certificate; the handshake's signatures are still checked (`--insecure`).
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

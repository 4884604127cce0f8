//! Certificates that the tests make themselves.

use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A certificate that signs itself, and its key.
#[derive(Clone)]
pub(crate) struct Certificate {
    config: Arc<ServerConfig>,
    /// The certificate as `--cacert` takes it.
    pub(crate) pem: String,
}

impl Certificate {
    /// The configuration of a server that has it.
    #[cfg(feature = "http3")]
    pub(crate) fn config(&self) -> ServerConfig {
        (*self.config).clone()
    }
}

/// A certificate for a name.
pub(crate) fn certificate(name: &str) -> Certificate {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let chain: Vec<CertificateDer<'static>> = vec![made.cert.der().clone()];
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    Certificate { config: Arc::new(config), pem: made.cert.pem() }
}

pub(crate) fn serve_tls(certificate: &Certificate, stream: TcpStream) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(certificate.config.clone()).unwrap(), stream)
}

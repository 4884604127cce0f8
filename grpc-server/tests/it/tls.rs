//! TLS: the server's certificate, clients' certificates, and new ones while the server runs.

use std::path::Path;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use server_runtime::{ClientAuth, TlsOptions};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use grpc_server::Options;
use grpc_server::greeter::pb::HelloRequest;
use grpc_server::greeter::pb::greeter_client::GreeterClient;

use crate::support::{Server, folder, options, run};

/// An authority, which signs certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate and its key.
    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn write(&self, folder: &Path) {
        let (cert, key) = self.sign("localhost");
        std::fs::write(folder.join("key.pem"), key).unwrap();
        std::fs::write(folder.join("cert.pem"), cert).unwrap();
        std::fs::write(folder.join("ca.pem"), &self.pem).unwrap();
    }
}

fn tls_options(folder: &Path, client_auth: ClientAuth) -> Options {
    let mut options = options();
    options.runtime.listen = vec!["tls:127.0.0.1:0".parse().unwrap()];
    let mut tls = TlsOptions::new(folder.join("cert.pem"), folder.join("key.pem"));
    (tls.client_ca, tls.client_auth) = (Some(folder.join("ca.pem")), client_auth);
    options.runtime.tls = Some(tls);
    options
}

/// The greeter's answer to a client that trusts the authority and shows a certificate or none.
async fn ask(server: &Server, trusted: &Authority, shown: Option<(String, String)>) -> Result<String, String> {
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trusted.pem)).domain_name("localhost");
    if let Some((cert, key)) = shown {
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    let endpoint = Endpoint::from_shared(format!("https://{}", server.addr)).unwrap().tls_config(tls).unwrap();
    let channel = endpoint.timeout(Duration::from_secs(10)).connect().await.map_err(|error| error.to_string())?;
    let request = HelloRequest { name: "peer".to_owned() };
    let reply = GreeterClient::new(channel).say_hello(request).await.map_err(|status| status.to_string())?;
    Ok(reply.into_inner().message)
}

#[test]
fn certificates_of_servers_and_clients() {
    run(async {
        let (ours, other, folder) = (Authority::new(), Authority::new(), folder("tls"));
        ours.write(&folder);
        let (server, _) = Server::odd(tls_options(&folder, ClientAuth::Required));
        // The handler sees how many certificates its client has shown.
        assert_eq!(ask(&server, &ours, Some(ours.sign("client"))).await.unwrap(), "127.0.0.1 1");
        assert!(ask(&server, &ours, None).await.is_err());
        assert!(ask(&server, &ours, Some(other.sign("client"))).await.is_err());
        assert!(ask(&server, &other, Some(ours.sign("client"))).await.is_err());
        let (server, _) = Server::odd(tls_options(&folder, ClientAuth::Optional));
        assert_eq!(ask(&server, &ours, None).await.unwrap(), "127.0.0.1 0");
    });
}

#[test]
fn a_new_certificate_without_a_restart() {
    run(async {
        let (old, new, folder) = (Authority::new(), Authority::new(), folder("tls-reload"));
        old.write(&folder);
        let (server, _) = Server::odd(tls_options(&folder, ClientAuth::Optional));
        assert_eq!(ask(&server, &old, None).await.unwrap(), "127.0.0.1 0");
        new.write(&folder);
        server.running.shutdown_handle().reload_tls().unwrap();
        assert_eq!(ask(&server, &new, None).await.unwrap(), "127.0.0.1 0");
        assert!(ask(&server, &old, None).await.is_err());
    });
}

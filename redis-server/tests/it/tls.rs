//! TLS, spoken by a genuine client library.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rcgen::CertifiedKey;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::support::process::ask;
use super::support::resp::{Value, request};
use super::support::server::Server;
use super::support::{PATIENCE, until};

/// A server that speaks TLS, with a certificate for `localhost` in a folder of its own.
struct Secure {
    server: Server,
    folder: PathBuf,
    trusted: CertificateDer<'static>,
}

type Client = StreamOwned<ClientConnection, TcpStream>;

impl Secure {
    fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("redis-server-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let trusted = Self::certify(&folder.join("cert.pem"), &folder.join("key.pem"));
        let file = |name: &str| folder.join(name).display().to_string();
        let (cert, key) = (file("cert.pem"), file("key.pem"));
        // The port says that TLS is wanted; the place says where.
        let settings = [("tls-port", "1"), ("tls-cert-file", &*cert), ("tls-key-file", &*key)];
        Self { server: Server::at("tls:127.0.0.1:0", &settings), folder, trusted }
    }

    /// Writes a new certificate and its key.
    fn certify(cert: &std::path::Path, key: &std::path::Path) -> CertificateDer<'static> {
        let CertifiedKey { cert: made, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(cert, made.pem()).unwrap();
        fs::write(key, signing_key.serialize_pem()).unwrap();
        made.der().clone()
    }

    fn connect(&self) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let socket = TcpStream::connect(self.server.addr).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        // Nobody is left to be told of a folder that stays.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_slow_reader_gets_all_of_a_large_output() {
    // Together more than the server keeps for a client that does not read: commands wait too.
    const ROUNDS: usize = 300;
    let secure = Secure::start("slow");
    let mut client = secure.connect();
    let big: String = (0..256 * 1024).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    assert_eq!(ask(&mut client, &["SET", "big", &big]), Value::Status("OK".into()));
    let mut requests = Vec::new();
    let mut expected: Vec<u8> = Vec::new();
    for round in 0..ROUNDS {
        let round = round.to_string();
        requests.extend([request(&["GET", "big"]), request(&["ECHO", &round])].concat());
        expected.extend(format!("${}\r\n{big}\r\n${}\r\n{round}\r\n", big.len(), round.len()).as_bytes());
    }
    client.write_all(&requests).unwrap();
    client.flush().unwrap();
    let waits = || secure.server.instance.clients().iter().map(|client| client.output.load(Relaxed)).sum::<u64>();
    until("the sockets are full and replies wait", || waits() > 0);
    let mut got = vec![0; expected.len()];
    for piece in got.chunks_mut(5000) {
        client.read_exact(piece).expect("every reply, without another request");
    }
    assert!(got == expected, "every byte in its place");
    assert_eq!(ask(&mut client, &["PING"]), Value::Status("PONG".into()));
}

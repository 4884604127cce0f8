//! TLS: handshakes, client certificates, and certificates that change.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use server_runtime::{
    ClientAuth, Listen, LogOptions, LogOutput, Options, Running, TlsOptions, init_logging, set_log_level,
};
use test_peers::alone;

use crate::support::{Folder, ask, connect, end, options, serve, until};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for `localhost`, and its key.
fn issue(authority: &Authority) -> (rcgen::Certificate, KeyPair) {
    issue_for(authority, "localhost")
}

fn issue_for(authority: &Authority, host: &str) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([host.to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap(), key)
}

/// A server with certificate files that the test may replace.
struct Secure {
    folder: Folder,
    authority: Authority,
}

impl Secure {
    fn new(name: &str) -> Self {
        let secure = Self { folder: Folder::new(name), authority: authority(name) };
        secure.renew();
        std::fs::write(secure.ca(), secure.authority.pem()).unwrap();
        secure
    }

    fn cert(&self) -> PathBuf {
        self.folder.file("cert.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.file("key.pem")
    }

    fn ca(&self) -> PathBuf {
        self.folder.file("ca.pem")
    }

    /// Puts a new certificate in place and returns it.
    fn renew(&self) -> CertificateDer<'static> {
        let (cert, key) = issue(&self.authority);
        std::fs::write(self.cert(), cert.pem()).unwrap();
        std::fs::write(self.key(), key.serialize_pem()).unwrap();
        cert.der().clone()
    }

    fn options(&self) -> TlsOptions {
        TlsOptions::new(self.cert(), self.key())
    }

    fn serve(&self, tls: TlsOptions) -> Running {
        serve(Options { listen: vec![Listen::Tls(([127, 0, 0, 1], 0).into())], tls: Some(tls), ..options() })
    }

    /// A client that trusts the authority and has the given certificate.
    fn client(&self, own: Option<(rcgen::Certificate, KeyPair)>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        match own {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                builder.with_client_auth_cert(vec![cert.der().clone()], key).unwrap()
            }
        }
    }

    fn shown(&self, addr: SocketAddr) -> CertificateDer<'static> {
        let mut stream = tls_connect(addr, self.client(None));
        assert_eq!(ask(&mut stream, "hello"), "hello");
        stream.conn.peer_certificates().unwrap()[0].clone()
    }
}

fn tls_connect(addr: SocketAddr, config: ClientConfig) -> StreamOwned<ClientConnection, TcpStream> {
    tls_connect_to("localhost", addr, config)
}

fn tls_connect_to(host: &str, addr: SocketAddr, config: ClientConfig) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from(host.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), connect(addr))
}

#[test]
fn echoes_and_agrees_on_a_protocol() {
    let secure = Secure::new("echo");
    let running = secure.serve(TlsOptions { alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()], ..secure.options() });
    let addr = running.local_addrs()[0];
    let mut config = secure.client(None);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut stream = tls_connect(addr, config);
    assert_eq!(ask(&mut stream, "hello"), "hello");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(ask(&mut stream, "who").ends_with(&format!("{} {addr}", stream.sock.local_addr().unwrap())));
    drop(stream);
    end(running);
}

#[test]
fn each_host_has_its_certificate() {
    let secure = Secure::new("hosts");
    let hosts = ["one.example", "*.two.example"];
    let others = hosts.iter().enumerate().map(|(number, host)| {
        let (cert, key) = issue_for(&secure.authority, host);
        let files = ["cert", "key"].map(|kind| secure.folder.file(&format!("{kind}{number}.pem")));
        std::fs::write(&files[0], cert.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        <(PathBuf, PathBuf)>::from(files)
    });
    let running = secure.serve(TlsOptions { others: others.collect(), ..secure.options() });
    // The client refuses a certificate that is not for the host.
    let check = |host: &str, is_known: bool| {
        let mut stream = tls_connect_to(host, running.local_addrs()[0], secure.client(None));
        let answer = stream.write_all(b"hello").and_then(|()| test_peers::read(&mut stream, &mut [0; 16]));
        assert_eq!(answer.is_ok(), is_known, "{host}: {answer:?}");
    };
    check("localhost", true);
    check("one.example", true);
    check("a.two.example", true);
    check("b.two.example", true);
    check("three.example", false);
    end(running);
}

#[test]
fn a_configuration_of_ones_own() {
    let secure = Secure::new("own");
    let (cert, key) = issue(&secure.authority);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let mut own = Options { rustls: Some(Arc::new(config)), ..options() };
    own.listen = vec![Listen::Tls(([127, 0, 0, 1], 0).into())];
    own.offer(&[b"h2"]);
    let running = serve(own);
    let mut config = secure.client(None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut stream = tls_connect(running.local_addrs()[0], config);
    assert_eq!(ask(&mut stream, "hello"), "hello");
    assert_eq!(stream.conn.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
    drop(stream);
    running.shutdown_handle().reload_tls().unwrap();
    end(running);
}

#[test]
fn connections_with_failed_handshakes_are_closed() {
    let secure = Secure::new("bad");
    let running = secure.serve(TlsOptions { handshake_timeout: Duration::from_secs(1), ..secure.options() });
    let addr = running.local_addrs()[0];
    let mut plain = connect(addr);
    plain.write_all(b"PING\r\n").unwrap();
    // The server says by an alert that this is no TLS, and closes.
    plain.read_to_end(&mut Vec::new()).unwrap();
    let mut silent = connect(addr);
    assert_eq!(test_peers::read(&mut silent, &mut [0; 8]).unwrap(), 0, "closed after the timeout");
    until("their places are free", || running.connections() == 0);
    secure.shown(addr);
    until("all have gone", || running.connections() == 0);
    end(running);
}

#[test]
fn an_unfinished_handshake_does_not_hold_up_the_end() {
    let secure = Secure::new("unfinished");
    let running = secure.serve(secure.options());
    let _silent = connect(running.local_addrs()[0]);
    until("it is there", || running.connections() == 1);
    end(running);
}

#[test]
fn client_certificates() {
    let secure = Secure::new("clients");
    let stranger = authority("stranger");
    let check = |client_auth, own: Option<&Authority>, welcome: bool| {
        let running = secure.serve(TlsOptions { client_ca: Some(secure.ca()), client_auth, ..secure.options() });
        let mut stream = tls_connect(running.local_addrs()[0], secure.client(own.map(issue)));
        let answer = stream.write_all(b"hello").and_then(|()| test_peers::read(&mut stream, &mut [0; 16]));
        assert_eq!(answer.is_ok_and(|count| count == 5), welcome, "{client_auth:?}, own: {}", own.is_some());
        drop(stream);
        end(running);
    };
    check(ClientAuth::None, None, true);
    check(ClientAuth::None, Some(&stranger), true);
    check(ClientAuth::Optional, None, true);
    check(ClientAuth::Optional, Some(&secure.authority), true);
    check(ClientAuth::Optional, Some(&stranger), false);
    check(ClientAuth::Required, None, false);
    check(ClientAuth::Required, Some(&secure.authority), true);
    check(ClientAuth::Required, Some(&stranger), false);
}

#[test]
fn a_changed_certificate_is_taken_and_a_bad_one_is_not() {
    let secure = Secure::new("reload");
    let first = secure.renew();
    let running = secure.serve(secure.options());
    let addr = running.local_addrs()[0];
    let mut early = tls_connect(addr, secure.client(None));
    assert_eq!(ask(&mut early, "hello"), "hello");
    assert_eq!(secure.shown(addr), first);

    let second = secure.renew();
    until("the changed file is seen", || secure.shown(addr) == second);
    assert_eq!(ask(&mut early, "still"), "still", "open connections go on");

    // A certificate without its key, then rubbish: the one in use stays, told and untold.
    std::fs::write(secure.cert(), issue(&secure.authority).0.pem()).unwrap();
    let error = running.shutdown_handle().reload_tls().expect_err("the key is another's").to_string();
    assert!(error.contains("do not fit"), "{error}");
    assert_eq!(secure.shown(addr), second);
    std::fs::write(secure.key(), "rubbish").unwrap();
    assert!(running.shutdown_handle().reload_tls().is_err());
    assert_eq!(secure.shown(addr), second);

    let third = secure.renew();
    running.shutdown_handle().reload_tls().unwrap();
    assert_eq!(secure.shown(addr), third, "at once when told to");
    drop(early);
    end(running);
}

#[test]
fn hangup_reloads() {
    if !alone("tls::hangup_reloads") {
        return;
    }
    let secure = Secure::new("hangup");
    let running = secure.serve(secure.options());
    let addr = running.local_addrs()[0];
    let renewed = secure.renew();
    let id = std::process::id().to_string();
    assert!(Command::new("kill").args(["-s", "HUP", &id]).status().unwrap().success());
    until("the new certificate is shown", || secure.shown(addr) == renewed);
    end(running);
}

/// A server name that is an address, which RFC 6066 (section 3) forbids and clients send, gets the first certificate. The log says so
/// from the level debug on: strangers could fill it.
#[test]
fn a_server_name_that_is_an_address() {
    if !alone("tls::a_server_name_that_is_an_address") {
        return;
    }
    let secure = Secure::new("address");
    let path = secure.folder.file("server.log");
    init_logging(&LogOptions { output: LogOutput::File(path.clone()), ..LogOptions::default() }).unwrap();
    let running = secure.serve(secure.options());
    let place = running.local_addrs()[0].to_string();
    for (level, is_logged) in [("info", false), ("debug", true), ("info,rustls=warn", true)] {
        std::fs::write(&path, "").unwrap();
        set_log_level(level).unwrap();
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &place, "-servername", "127.0.0.1", "-CAfile"]).arg(secure.ca());
        let Ok(output) = command.args(["-verify_return_error"]).stdin(std::process::Stdio::null()).output() else {
            return test_peers::skip("there is no openssl");
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
        let log = std::fs::read_to_string(&path).unwrap();
        assert_eq!(log.contains("IP address presented as hostname"), is_logged, "{level}: {log}");
    }
    end(running);
}

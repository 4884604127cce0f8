//! TLS, spoken by a genuine client library.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, DistinguishedName, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use super::support::process::{Process, ask};
use super::support::resp::{Value, request};
use super::support::server::{Server, config};
use super::support::{PATIENCE, until};

/// A certificate for `localhost` with its key, self-signed: its own authority.
struct Identity {
    cert: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// A server that speaks TLS, with its files in a folder of their own: `cert.pem`, `key.pem`, `client.pem`.
struct Secure {
    server: Server,
    folder: PathBuf,
    identity: Identity,
    /// An identity with a certificate that the server's authority has signed.
    client: Identity,
}

type Client = StreamOwned<ClientConnection, TcpStream>;

impl Secure {
    fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("redis-server-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| folder.join(name).display().to_string();
        let (cert, key, ca) = (file("cert.pem"), file("key.pem"), file("client.pem"));
        let identity = Identity::new(&cert, &key);
        let client = Identity::new(&ca, &file("client-key.pem"));
        // The port says that TLS is wanted; the place says where.
        let mut all =
            vec![("tls-port", "1"), ("tls-cert-file", &cert), ("tls-key-file", &key), ("tls-ca-cert-file", &ca)];
        all.extend(settings);
        Self { server: Server::at("tls:127.0.0.1:0", &all), folder, identity, client }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A client that trusts `server` and shows `own`; nothing has been sent yet.
    fn connect(&self, server: &Identity, own: Option<&Identity>) -> Client {
        self.connect_by(rustls::ALL_VERSIONS, server, own)
    }

    /// The same, of a client that speaks these versions.
    fn connect_by(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        server: &Identity,
        own: Option<&Identity>,
    ) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(server.cert.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => builder.with_client_auth_cert(vec![own.cert.clone()], own.key.clone_key()).unwrap(),
        };
        let socket = TcpStream::connect(self.server.addr).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
    }

    /// Whether a client that trusts `server` and shows `own` is served.
    fn serves(&self, server: &Identity, own: Option<&Identity>) -> bool {
        is_served(self.connect(server, own))
    }
}

fn is_served(mut client: Client) -> bool {
    let mut reply = [0; 7];
    client.write_all(b"PING\r\n").and_then(|()| client.read_exact(&mut reply)).is_ok() && &reply == b"+PONG\r\n"
}

impl Identity {
    /// Made anew and written to these files.
    fn new(cert: &str, key: &str) -> Self {
        let CertifiedKey { cert: made, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(cert, made.pem()).unwrap();
        fs::write(key, signing_key.serialize_pem()).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        Self { cert: made.der().clone(), key }
    }

    /// One that says of itself that it is an authority, as `openssl req -x509` makes them.
    fn own_authority(cert: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        fs::write(cert, made.pem()).unwrap();
        Self { cert: made.der().clone(), key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
    }

    /// Made out to a common name and URIs, and written behind the certificates of this file.
    fn named(common_name: &str, uris: &[&str], cert: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "ours");
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let mut file = fs::File::options().append(true).create(true).open(cert).unwrap();
        file.write_all(made.pem().as_bytes()).unwrap();
        Self { cert: made.der().clone(), key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() }
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        // An error of the removal has no receiver.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_slow_reader_gets_all_of_a_large_output() {
    // Together more than the server keeps for a client that does not read: commands wait too.
    const ROUNDS: usize = 300;
    let secure = Secure::start("slow", &[("tls-auth-clients", "no")]);
    let mut client = secure.connect(&secure.identity, None);
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

#[test]
fn clients_show_a_certificate_as_the_configuration_says() {
    let secure = Secure::start("clients", &[]);
    let (server, known) = (&secure.identity, Some(&secure.client));
    let stranger = Identity::new(&secure.file("stranger.pem"), &secure.file("stranger-key.pem"));
    let mut admin = secure.connect(server, known);
    // Whether a client is served without a certificate, with a good one, and with one of its own making.
    for (clients, served) in
        [("yes", [false, true, false]), ("optional", [true, true, false]), ("no", [true, true, true])]
    {
        assert_eq!(ask(&mut admin, &["CONFIG", "SET", "tls-auth-clients", clients]), Value::Status("OK".into()));
        let seen = [None, known, Some(&stranger)].map(|own| secure.serves(server, own));
        assert_eq!(seen, served, "tls-auth-clients {clients}");
    }
    let config = config(
        &[("tls-port", "1"), ("tls-cert-file", "c"), ("tls-key-file", "k")]
            .map(|(name, text)| (name.to_owned(), text.to_owned())),
    );
    let error = redis_server::runtime::start_at(vec!["tls:127.0.0.1:0".parse().unwrap()], config).unwrap_err();
    assert!(
        error.to_string().starts_with("tls-auth-clients, which is yes by default, needs tls-ca-cert-file"),
        "{error}"
    );
}

/// A version that `tls-protocols` does not name is not spoken, neither to clients nor to the primary.
#[test]
fn the_named_versions_are_spoken() {
    let secure = Secure::start("versions", &[("tls-auth-clients", "no"), ("tls-protocols", "TLSv1.3")]);
    let served = || [&TLS12, &TLS13].map(|version| is_served(secure.connect_by(&[version], &secure.identity, None)));
    assert_eq!(served(), [false, true]);
    let mut admin = secure.connect(&secure.identity, None);
    let mut set = |words: &str| ask(&mut admin, &["CONFIG", "SET", "tls-protocols", words]);
    for (words, expected) in [
        ("TLSv1.2", [true, false]),
        ("tlsv1.2 TLSv1.3", [true, true]),
        ("TLSv1.1 TLSv1.3", [false, true]),
        ("", [true; 2]),
    ] {
        assert_eq!(set(words), Value::Status("OK".into()), "{words}");
        assert_eq!(served(), expected, "{words}");
    }
    for (words, reason) in
        [("TLSv1.4", "tls-protocols has 'TLSv1.4'"), ("TLSv1 TLSv1.1", "tls-protocols is 'TLSv1 TLSv1.1'")]
    {
        assert!(set(words).is_error());
        assert_eq!(served(), [true; 2], "{words}");
        let settings = [("tls-port", "1"), ("tls-cert-file", "c"), ("tls-key-file", "k"), ("tls-auth-clients", "no")];
        let settings = settings.into_iter().chain([("tls-protocols", words)]);
        let config = config(&settings.map(|(name, text)| (name.to_owned(), text.to_owned())).collect::<Vec<_>>());
        let error = redis_server::runtime::start_at(vec!["tls:127.0.0.1:0".parse().unwrap()], config).unwrap_err();
        assert!(error.to_string().starts_with(reason), "{error}");
    }
    assert_eq!(set("TLSv1.2"), Value::Status("OK".into()));
    let folder = secure.folder.join("replica");
    fs::create_dir_all(&folder).unwrap();
    let cert = secure.file("cert.pem");
    let settings = [
        ("tls-replication", "yes"),
        ("tls-ca-cert-file", &*cert),
        ("tls-protocols", "TLSv1.3"),
        ("dir", folder.to_str().unwrap()),
    ];
    let replica = Server::with(&settings);
    let mut client = replica.connect();
    client.ask(&format!("REPLICAOF 127.0.0.1 {}", secure.server.addr.port()));
    let is_up = |client: &mut crate::support::server::Client| {
        client.ask("INFO replication").text().contains("master_link_status:up")
    };
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!is_up(&mut client), "no version in common");
    assert_eq!(set("TLSv1.3"), Value::Status("OK".into()));
    until("the link is up", || is_up(&mut client));
}

/// A replica shows the certificate of `tls-client-cert-file`, if there is one, instead of the one that it serves with.
#[test]
fn a_replica_shows_its_certificate_of_a_client() {
    let primary = Secure::start("client-cert", &[("repl-diskless-sync-delay", "0")]);
    let folder = primary.folder.join("replica");
    fs::create_dir_all(&folder).unwrap();
    let [cert, key, client, client_key] =
        ["cert.pem", "key.pem", "client.pem", "client-key.pem"].map(|name| primary.file(name));
    let settings = [
        ("tls-replication", "yes"),
        ("tls-ca-cert-file", &*cert),
        ("tls-cert-file", &cert),
        ("tls-key-file", &key),
        ("dir", folder.to_str().unwrap()),
    ];
    let replica = Server::with(&settings);
    let mut admin = replica.connect();
    admin.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.server.addr.port()));
    let mut is_up = || admin.ask("INFO replication").text().contains("master_link_status:up");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!is_up(), "the primary's authority has not signed what the replica serves with");
    let set = format!("CONFIG SET tls-client-cert-file {client} tls-client-key-file {client_key}");
    assert_eq!(replica.connect().ask(&set), Value::Status("OK".into()));
    until("the link is up", is_up);
}

/// A client is the user that its certificate names from its arrival on, if there is such a user.
#[test]
fn a_certificate_names_the_user() {
    let secure = Secure::start("users", &[("compatibility", "valkey-9"), ("tls-auth-clients", "optional")]);
    let authorities = secure.file("clients.pem");
    let bob = Identity::named("bob", &["urn:first", "urn:second"], &authorities);
    let strange = Identity::named("bob\0x", &[], &authorities);
    let mut admin = secure.connect(&secure.identity, None);
    let mut reader = secure.connect(&secure.identity, None);
    assert_eq!(ask(&mut reader, &["PING"]).text(), "PONG", "it has come before others must authenticate");
    let mut does = |words: &[&str]| assert_eq!(ask(&mut admin, words), Value::Status("OK".into()), "{words:?}");
    does(&["CONFIG", "SET", "tls-ca-cert-file", &authorities]);
    for user in ["bob", "urn:second"] {
        // No password would be right.
        does(&["ACL", "SETUSER", user, "on", "+acl|whoami", "+ping"]);
    }
    does(&["ACL", "SETUSER", "urn:first", "off"]);
    let is = |own| ask(&mut secure.connect(&secure.identity, own), &["ACL", "WHOAMI"]).text();
    for (field, expected) in [("off", "default"), ("CN", "bob"), ("uri", "urn:second")] {
        does(&["CONFIG", "SET", "tls-auth-clients-user", field]);
        assert_eq!(is(Some(&bob)), expected, "{field}");
        assert_eq!(is(Some(&strange)), "default", "{field}");
        assert_eq!(is(None), "default", "{field}");
    }
    // Such a client has the user's rights, keeps what it is when the setting changes, and is what a newcomer is behind RESET.
    let mut client = secure.connect(&secure.identity, Some(&bob));
    assert!(ask(&mut client, &["GET", "k"]).text().starts_with("NOPERM"));
    does(&["CONFIG", "SET", "tls-auth-clients-user", "off"]);
    assert_eq!(ask(&mut client, &["ACL", "WHOAMI"]).text(), "urn:second");
    assert_eq!(ask(&mut client, &["RESET"]).text(), "RESET");
    assert_eq!(ask(&mut client, &["ACL", "WHOAMI"]).text(), "default");

    // A client without a valid user is logged and counted, and must authenticate if the default user needs a password.
    does(&["ACL", "SETUSER", "default", ">secret", "resetpass", ">secret"]);
    does(&["ACL", "SETUSER", "urn:second", "off"]);
    does(&["CONFIG", "SET", "tls-auth-clients-user", "URI"]);
    does(&["CONFIG", "RESETSTAT"]);
    does(&["ACL", "LOG", "RESET"]);
    assert!(is(Some(&bob)).starts_with("NOAUTH"));
    let Value::Array(log) = ask(&mut reader, &["ACL", "LOG"]) else { panic!("entries") };
    let [Value::Array(entry)] = &log[..] else { panic!("one entry") };
    let of = |name: &str| entry[entry.iter().position(|field| field.text() == name).unwrap() + 1].text();
    assert_eq!([of("reason"), of("username"), of("object")], ["tls-cert", "urn:second", ""]);
    let stats = ask(&mut reader, &["INFO", "stats"]).text();
    assert!(stats.contains("acl_access_denied_tls_cert:1\r\n"), "{stats}");
    does(&["CONFIG", "SET", "tls-auth-clients-user", "CN"]);
    assert_eq!(is(Some(&bob)), "bob", "which needs no password");
}

#[test]
fn another_certificate_serves_the_next_clients() {
    let secure = Secure::start("renewed", &[("tls-auth-clients", "no")]);
    let mut admin = secure.connect(&secure.identity, None);
    let (cert, key) = (secure.file("next.pem"), secure.file("next-key.pem"));
    let next = Identity::new(&cert, &key);
    let refused = |name: &str| {
        let reason = "Unable to update TLS configuration. Check server logs.";
        Value::Error(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}").into_bytes())
    };
    // A certificate that does not fit the key, and one that is not there, leave everything as it was.
    assert_eq!(ask(&mut admin, &["CONFIG", "SET", "tls-cert-file", &cert]), refused("tls-cert-file"));
    assert_eq!(ask(&mut admin, &["CONFIG", "SET", "tls-key-file", "/nonexistent"]), refused("tls-key-file"));
    assert!(secure.serves(&secure.identity, None) && !secure.serves(&next, None));
    let both = ["CONFIG", "SET", "tls-cert-file", &cert, "tls-key-file", &key];
    assert_eq!(ask(&mut admin, &both), Value::Status("OK".into()));
    assert!(secure.serves(&next, None) && !secure.serves(&secure.identity, None));
    assert_eq!(ask(&mut admin, &["PING"]), Value::Status("PONG".into()), "who is connected stays");
}

/// A client may be its own authority, as with OpenSSL: if the server has its certificate among the authorities.
#[test]
fn a_client_that_is_its_own_authority_is_served() {
    let secure = Secure::start("own-authority", &[]);
    let mut admin = secure.connect(&secure.identity, Some(&secure.client));
    let (file, other) = (secure.file("authority.pem"), secure.file("other.pem"));
    let (own, stranger) = (Identity::own_authority(&file), Identity::own_authority(&other));
    assert_eq!(ask(&mut admin, &["CONFIG", "SET", "tls-ca-cert-file", &file]), Value::Status("OK".into()));
    let served = [Some(&own), Some(&stranger), None].map(|client| secure.serves(&secure.identity, client));
    assert_eq!(served, [true, false, false]);
}

/// Certificates that CONFIG SET names are in force at its reply, also if only the file's content has changed. If a later setting of the
/// call is refused, the earlier certificates are in force again.
#[test]
fn certificates_are_in_force_at_the_reply() {
    let secure = Secure::start("in-force", &[("tls-auth-clients", "no")]);
    let mut admin = secure.connect(&secure.identity, None);
    let (cert, key) = (secure.file("cert.pem"), secure.file("key.pem"));
    let set = ["CONFIG", "SET", "tls-cert-file", &cert, "tls-key-file", &key];
    let mut current = secure.identity.cert.clone();
    for round in 0..5 {
        let before = Identity { cert: current, key: secure.identity.key.clone_key() };
        assert!(secure.serves(&before, None), "round {round}");
        let next = Identity::new(&cert, &key);
        assert_eq!(ask(&mut admin, &set), Value::Status("OK".into()));
        assert!(secure.serves(&next, None) && !secure.serves(&before, None), "round {round}");
        current = next.cert;
    }
    let (cert, key) = (secure.file("next.pem"), secure.file("next-key.pem"));
    let next = Identity::new(&cert, &key);
    let refused = ["CONFIG", "SET", "tls-cert-file", &cert, "tls-key-file", &key, "maxclients", "4294967295"];
    assert!(ask(&mut admin, &refused).is_error());
    let before = Identity { cert: current, key: secure.identity.key.clone_key() };
    assert!(secure.serves(&before, None) && !secure.serves(&next, None), "all settings, or none");
}

/// The log says of a client without TLS what it speaks.
#[test]
fn a_client_without_tls_is_told_to_the_log() {
    let folder = std::env::temp_dir().join(format!("redis-server-tls-plain-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    Identity::new(&file("cert.pem"), &file("key.pem"));
    // One that was free a moment ago nearly always still is.
    let port = test_peers::free_port();
    let settings = [
        ("tls-port", &*port.to_string()),
        ("bind", "127.0.0.1"),
        ("tls-cert-file", &file("cert.pem")),
        ("tls-key-file", &file("key.pem")),
        ("tls-auth-clients", "no"),
    ];
    let process = Process::start("plain", &settings);
    for (sent, spoken) in [("GET / HTTP/1.1\r\n\r\n", "plain HTTP"), ("PING\r\n", "something else than TLS")] {
        let line = format!("the client speaks {spoken} to a port that serves TLS");
        // One line a second is logged.
        until("the log says so", || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(sent.as_bytes()).unwrap();
            // The end, or a reset, as the server has not read what was sent.
            let _ = stream.read_to_end(&mut Vec::new());
            process.log().contains(&line)
        });
    }
    let _ = fs::remove_dir_all(&folder);
}

/// A replica follows over TLS whom its authority has signed, and nobody else.
#[test]
fn a_replica_follows_over_tls() {
    let primary = Secure::start("replicated", &[("tls-auth-clients", "no"), ("repl-diskless-sync-delay", "0")]);
    let folder = primary.folder.join("replica");
    fs::create_dir_all(&folder).unwrap();
    let (good, bad) = (primary.file("cert.pem"), primary.file("client.pem"));
    for (authority, is_trusted) in [(&good, true), (&bad, false)] {
        let settings = [("tls-replication", "yes"), ("tls-ca-cert-file", authority), ("dir", folder.to_str().unwrap())];
        let replica = Server::with(&settings);
        let mut client = replica.connect();
        // By its address, for which the certificate is not made out.
        client.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.server.addr.port()));
        let is_up = || {
            let info = replica.connect().ask("INFO replication").text();
            info.contains("master_link_status:up")
        };
        if is_trusted {
            until("the link is up", is_up);
        } else {
            std::thread::sleep(std::time::Duration::from_millis(300));
            assert!(!is_up(), "nobody has signed its certificate");
        }
    }
}

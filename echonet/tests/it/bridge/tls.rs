//! TLS between bridge and broker, with certificates of authorities that are made for the test.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::*;

const NET: u8 = 32;

/// An authority, whose certificate is in a file.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(name: &str, folder: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(params, key), folder: folder.to_owned() }
    }

    /// Writes a certificate for a host, and its key. It is valid until the end of a year.
    fn issue(&self, file: &str, host: &str, year: i32) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, file);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.folder.join(format!("{file}.pem")), made.pem()).unwrap();
        std::fs::write(self.folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}

/// A listener of the broker with TLS; `more` says what it wants of clients.
fn secure(folder: &Path, port: u16, server: &str, more: &str) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    let (cert, key) = (file(&format!("{server}.pem")), file(&format!("{server}.key")));
    format!("listener {port} 127.0.0.1\ncafile {}\ncertfile {cert}\nkeyfile {key}\n{more}\n", file("ca.pem"))
}

fn run_for(seconds: &str, url: &str, options: &[String]) -> std::process::Child {
    let (port, address) = ((PORT + u16::from(NET)).to_string(), format!("127.75.{NET}.1"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(["--port", &port, "--address", &address, "--timeout", seconds, "bridge", url]).args(options);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The remarks of a bridge that runs for a moment.
fn remarks(url: &str, options: &[String]) -> String {
    let output = run_for("2", url, options).wait_with_output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_broker_is_known_by_its_certificate() {
    if !is_there() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bridge-tls");
    std::fs::create_dir_all(&folder).unwrap();
    let (authority, other) = (Authority::new("ca", &folder), Authority::new("other", &folder));
    authority.issue("server", "localhost", 2090);
    authority.issue("expired", "localhost", 2021);
    authority.issue("client", "bridge", 2090);
    other.issue("stranger", "bridge", 2090);
    let [usual, late, strict, plain] = std::array::from_fn(|_| test_peers::free_port());
    // A broker that gives up the rights of root could not read the keys.
    let config = [
        format!("user root\nallow_anonymous true\npersistence false\nlistener {plain} 127.0.0.1\n"),
        secure(&folder, usual, "server", ""),
        secure(&folder, late, "expired", ""),
        secure(&folder, strict, "server", "require_certificate true"),
    ];
    let path = folder.join("mosquitto.conf");
    std::fs::write(&path, config.concat()).unwrap();
    let mut broker = Mosquitto { port: plain, config: path, running: None };
    broker.restart();
    let listener = Listener::new(&broker);
    let pem = |option: &str, file: &str| [option.to_owned(), folder.join(file).display().to_string()];
    let ca = pem("--mqtt-ca", "ca.pem").to_vec();
    let own = |name: &str| {
        let pair = [pem("--mqtt-cert", &format!("{name}.pem")), pem("--mqtt-key", &format!("{name}.key"))];
        [ca.clone(), pair.concat()].concat()
    };
    let url = |host: &str, port: u16| format!("mqtts://{host}:{port}");

    for (port, options) in [(usual, ca.clone()), (strict, own("client"))] {
        let bridge = Running(run_for("60", &url("localhost", port), &options));
        listener.wait_for("echonet/bridge/availability", "online");
        Command::new("kill").arg(bridge.0.id().to_string()).status().unwrap();
        listener.wait_for("echonet/bridge/availability", "offline");
    }
    for (host, port, options, part) in [
        (
            "localhost",
            usual,
            pem("--mqtt-ca", "other.pem").to_vec(),
            "authority of the broker's certificate is unknown",
        ),
        ("127.0.0.1", usual, ca.clone(), "is for another name: expected 127.0.0.1, it has DnsName(\"localhost\")"),
        ("localhost", late, ca.clone(), "the certificate of the broker has expired"),
        ("localhost", strict, ca.clone(), "the broker refuses the certificate of the bridge (--mqtt-cert)"),
        ("localhost", strict, own("stranger"), "the broker refuses the certificate of the bridge (--mqtt-cert)"),
        ("localhost", plain, ca.clone(), "does the broker speak TLS at this port?"),
    ] {
        let said = remarks(&url(host, port), &options);
        assert!(said.contains("the broker is away: ") && said.contains(part), "{host} {port}: {said}");
    }
}

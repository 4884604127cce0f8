//! TLS among the nodes of a cluster (`tls-cluster`), and who does not come in.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;

use super::cluster::{Node, conversation, ports, said};
use super::support::genuine::Genuine;
use super::support::{PATIENCE, until};

/// Settings by which nodes speak TLS to each other, with one certificate that is its own authority. Its files lie in the folder of the node of
/// this name, and go with it.
pub(crate) fn speaks_tls(name: &str) -> Vec<(String, String)> {
    let folder = std::env::temp_dir().join(format!("redis-server-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&certificate, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    [
        ("tls-cluster", "yes".to_owned()),
        ("tls-replication", "yes".to_owned()),
        ("tls-port", ports().0),
        ("tls-cert-file", certificate.clone()),
        ("tls-key-file", key),
        ("tls-ca-cert-file", certificate),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

pub(crate) fn tls_node(name: &str, settings: &[(String, String)], others: &[(&str, &str)]) -> Node {
    let mut all: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    all.extend(others);
    Node::start(name, &all)
}

/// With certificates that both trust, both ways; who shows none is no node.
#[test]
fn nodes_speak_tls_to_each_other() {
    let settings = speaks_tls("cluster-tls-1");
    let other = [("tls-port", ports().0)].map(|(name, value)| (name.to_owned(), value));
    let other: Vec<_> = settings.iter().filter(|(name, _)| name != "tls-port").chain(&other).cloned().collect();
    let (one, two) = (tls_node("cluster-tls-1", &settings, &[]), tls_node("cluster-tls-2", &other, &[]));
    one.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    one.meets(&two);
    until("both know each other", || {
        [&one, &two].iter().all(|node| {
            node.says("CLUSTER INFO", "cluster_state:ok") && node.says("CLUSTER INFO", "cluster_known_nodes:2")
        })
    });
    two.ask(&format!("CLUSTER REPLICATE {}", one.id()));
    until("the replica follows", || two.says("INFO replication", "master_link_status:up"));
    conversation(&one, &[("SET k v", "OK"), ("WAIT 1 5000", "1")]);
    // The bus says nothing to who speaks plainly, whatever is said.
    let mut plain = TcpStream::connect(format!("127.0.0.1:{}", one.bus)).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(&[b"RCmb".as_slice(), &[0; 3000]].concat()).unwrap();
    let mut heard = Vec::new();
    // It ends by a reset, or after an alert of TLS.
    let _ = plain.read_to_end(&mut heard);
    assert!(!heard.starts_with(b"RCmb"), "{heard:?}");
    // A node without TLS, and one whose certificate nobody has signed, do not come in.
    let stranger = tls_node("cluster-tls-3", &speaks_tls("cluster-tls-3"), &[]);
    let simple = Node::start("cluster-tls-4", &[]);
    for outsider in [&stranger, &simple] {
        outsider.meets(&one);
        one.meets(outsider);
    }
    std::thread::sleep(Duration::from_secs(1));
    for outsider in [&stranger, &simple] {
        assert!(!one.says("CLUSTER NODES", &outsider.id()) && !outsider.says("CLUSTER NODES", &one.id()));
    }
    // The error names a missing file, at run time and at the start.
    let no = simple.ask("CONFIG SET tls-cluster yes");
    assert!(no.is_error() && no.text().contains("Unable to update TLS configuration"), "{no:?}");
    assert_eq!(said(&simple.ask("CONFIG GET tls-cluster")), "tls-cluster no");
    let mut refused = simple;
    refused.process.signal(Signal::KILL);
    refused.process.ended();
    refused.process.add_flags(&["--tls-cluster", "yes"]);
    let (status, last) = refused.process.fail_to_start();
    assert!(!status.success() && last.contains("tls-cluster needs tls-ca-cert-file"), "{last}");
}

/// A genuine server's bus is TLS as ours is.
#[test]
fn a_genuine_node_speaks_tls_to_ours() {
    let settings = speaks_tls("cluster-tls-5");
    let (port, bus) = ports();
    let genuine: Vec<(String, String)> = settings
        .iter()
        .filter(|(name, _)| name != "tls-port")
        .cloned()
        .chain(
            [("cluster-enabled", "yes"), ("bind", "127.0.0.1"), ("tls-port", &port), ("cluster-port", &bus)]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        )
        .collect();
    let Some(mut genuine) = Genuine::start(&genuine) else { return };
    let one = tls_node("cluster-tls-5", &settings, &[]);
    one.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    one.ask(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
    until("both know each other", || {
        one.says("CLUSTER INFO", "cluster_known_nodes:2")
            && genuine.ask(&["CLUSTER", "INFO"]).text().contains("cluster_state:ok")
            && one.says("CLUSTER NODES", " connected")
    });
    let id = one.id();
    until("it may follow", || genuine.ask(&["CLUSTER", "REPLICATE", &id]).text() == "OK");
    until("it follows", || genuine.ask(&["INFO", "replication"]).text().contains("master_link_status:up"));
    conversation(&one, &[("SET k v", "OK"), ("WAIT 1 5000", "1")]);
}

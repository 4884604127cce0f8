//! Ways to a genuine Redis: sockets, TLS, users, databases.

use std::process::Command;

use super::support::{Folder, Front, Genuine};

/// Settings of a server with two users, its socket beside.
const USERS: &[&str] = &["--requirepass", "open:sesame", "--user", "ann", "on", ">p@ss/word", "~*", "+@all"];

#[test]
fn sockets_users_and_databases() {
    let Some(redis) = Genuine::start(USERS) else { return };
    let socket = redis.socket();
    let path = socket.to_str().unwrap();
    let check = |login: &str, query: &str, status: u16, expected: &str| {
        let front = Front::start(&["--redis", &format!("unix://{login}{path}{query}"), "--redis-allow", "@all"]);
        let answer = front.put("/v1/ACL/WHOAMI");
        assert_eq!(answer.status, status, "{login}: {}", answer.text());
        assert!(answer.text().contains(expected), "{login}: {}", answer.text());
        assert!(!answer.text().contains("sesame"), "a password is not told");
        assert!(!answer.text().contains(path), "nor where Redis is");
        front.put(&format!("/v1/SET/db{query}/1", query = query.replace('?', "%3F")))
    };
    check(":open%3Asesame@", "", 200, "default");
    check("ann:p%40ss%2Fword@", "?db=3", 200, "ann");
    check("ann:wrong@", "", 502, "Redis is away");
    check("", "", 502, "Redis is away");
    let third = Front::start(&["--redis", &format!("unix://ann:p%40ss%2Fword@{path}?db=3")]);
    assert_eq!(third.get("/v1/DBSIZE").text(), r#"{"result":1}"#);
    let beyond = Front::start(&["--redis", &format!("unix://ann:p%40ss%2Fword@{path}?db=99")]);
    assert_eq!(beyond.get("/v1/DBSIZE").status, 502);
}

#[test]
fn tls() {
    let folder = Folder::new();
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let cert = folder.file("cert.pem", &issued.cert.pem());
    let key = folder.file("key.pem", &issued.signing_key.serialize_pem());
    let port = test_peers::free_port().to_string();
    let speaks_tls = Command::new("redis-server").args(["--tls-port", "0", "--version"]).output().is_ok();
    if !speaks_tls {
        eprintln!("skipped: no redis-server is installed");
        return;
    }
    let settings = ["--port", "0", "--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key];
    let settings = [&settings[..], &["--tls-auth-clients", "no", "--tls-ca-cert-file", &cert]].concat();
    let Some(_redis) = Genuine::start(&settings) else { return };
    let place = format!("rediss://localhost:{port}");
    let front = Front::start(&["--redis", &place, "--redis-ca", &cert]);
    assert_eq!(front.get("/v1/PING").text(), r#"{"result":"PONG"}"#);
    let stranger =
        folder.file("other.pem", &rcgen::generate_simple_self_signed(vec!["x".to_owned()]).unwrap().cert.pem());
    let front = Front::start(&["--redis", &place, "--redis-ca", &stranger]);
    let answer = front.get("/v1/PING");
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(answer.text().contains("Redis is away"), "{}", answer.text());
}

//! Command-line tools as people use them.

use std::path::Path;
use std::process::Command;

use test_peers::{printed, printed_and_logged};

use super::Both;
use super::install::{GO, GO_TOOLS};

/// Flags and address of either place, for a tool that has these flags for cleartext and for the certificate.
fn places(server: &Both, plain: &'static str, certificate: &'static str) -> [(Vec<String>, String); 2] {
    let file = server.certificate.display().to_string();
    // The certificate is for this name.
    let tls = format!("localhost:{}", server.tls.port());
    [(vec![plain.to_owned()], server.plain.to_string()), (vec![certificate.to_owned(), file], tls)]
}

#[test]
fn grpcurl() {
    let Some(folder) = GO.installed() else { return };
    let server = Both::greeter();
    for (flags, address) in places(&server, "-plaintext", "-cacert") {
        let grpcurl = |words: &[&str], method: &[&str]| {
            let mut command = Command::new(folder.join("bin/grpcurl"));
            printed(command.args(&flags).args(words).arg(&address).args(method))
        };
        // By reflection: it is given no definition.
        let services = grpcurl(&[], &["list"]);
        for service in ["helloworld.Greeter", "grpc.health.v1.Health"] {
            assert!(services.lines().any(|line| line == service), "{services}");
        }
        let described = grpcurl(&[], &["describe", "helloworld.Greeter.SayHello"]);
        assert!(described.contains("rpc SayHello ( .helloworld.HelloRequest )"), "{described}");
        let one = grpcurl(&["-d", r#"{"name":"Ann"}"#], &["helloworld.Greeter/SayHello"]);
        assert!(one.contains(r#""message": "Hello Ann""#), "{one}");
        let many = grpcurl(&["-d", r#"{"name":"Ann","count":3}"#], &["helloworld.Greeter/SayHelloManyTimes"]);
        assert_eq!(many.matches("Hello Ann").count(), 3, "{many}");
        let each = grpcurl(&["-d", r#"{"name":"Ann"} {"name":"Bob"}"#], &["helloworld.Greeter/SayHelloToEach"]);
        assert!(each.contains("Hello Ann") && each.contains("Hello Bob"), "{each}");
    }
}

#[test]
fn grpc_health_probe() {
    let Some(folder) = GO.installed() else { return };
    let server = Both::greeter();
    for (flags, address) in places(&server, "-connect-timeout=30s", "-tls-ca-cert") {
        let mut command = Command::new(folder.join("bin/grpc-health-probe"));
        let is_tls = flags[0].starts_with("-tls");
        command.args(&flags).args(is_tls.then_some("-tls")).args(["-rpc-timeout=30s", "-addr", &address]);
        for service in ["", "helloworld.Greeter"] {
            let said = printed_and_logged(command.args(["-service", service]));
            assert!(said.contains("status: SERVING"), "{said}");
        }
    }
}

#[test]
fn ghz() {
    let Some(folder) = GO_TOOLS.installed() else { return };
    let server = Both::greeter();
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/helloworld.proto");
    for (flags, address) in places(&server, "--insecure", "--cacert") {
        let mut command = Command::new(folder.join("bin/ghz"));
        command.args(&flags).arg("--proto").arg(&proto).args(["--call", "helloworld.Greeter.SayHello"]);
        // The published command line with fewer calls: all 5,000 are in flight once, as ghz begins.
        command.args([
            "-d",
            r#"{"name":"world"}"#,
            "--total",
            "10000",
            "--concurrency",
            "5000",
            "--connections",
            "100",
        ]);
        let said = printed(command.args(["--timeout", "60s", &address]));
        assert!(said.contains("[OK]") && said.contains("10000 responses"), "{said}");
        assert!(!said.contains("Error distribution"), "{said}");
    }
}

//! HTTP/2 by the suite that is made for it.

use std::process::Command;

use test_peers::{run_within, skip};

use super::Both;
use super::install::GO_TOOLS;

#[test]
fn h2spec() {
    let Some(folder) = GO_TOOLS.installed() else { return };
    let server = Both::greeter();
    for (address, flags) in [(server.plain, &[][..]), (server.tls, &["--tls", "--insecure"])] {
        let mut command = Command::new(folder.join("bin/h2spec"));
        command.args(["--host", "127.0.0.1", "--strict", "--timeout", "5"]).args(flags);
        command.args(["--path", "/helloworld.Greeter/SayHello", "--port", &address.port().to_string()]);
        let output = run_within(120, &command).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(summary) = text.lines().find(|line| line.contains(" tests, ")) else {
            return skip(&format!("h2spec did not finish: {text}"));
        };
        eprintln!("h2spec {}: {summary}", flags.join(" "));
        assert!(summary.contains(" 0 skipped, 0 failed"), "{text}");
    }
}

//! The suite that is made for HTTP/2, against the examples.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use test_peers::{Kit, kit, run_within, skip};

const H2SPEC: Kit = kit! {
    name: "http2-h2spec",
    sources: &[],
    programs: &["go"],
    install: "GOBIN=\"$PWD\" go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible",
};

/// An example that serves on a port of its own.
struct Example {
    child: Child,
    port: String,
}

impl Example {
    fn start(name: &str) -> Option<Self> {
        let tests = std::env::current_exe().unwrap();
        let program = tests.parent().and_then(|folder| folder.parent()).unwrap().join("examples").join(name);
        if !program.exists() {
            // `cargo test --test it` does not build them.
            eprintln!("skipped: the example {name} is not built");
            return None;
        }
        let mut child = Command::new(program).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        Some(Self { child, port })
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn h2spec() {
    let Some(folder) = H2SPEC.installed() else { return };
    for name in ["tokio-server", "threads-server"] {
        let Some(example) = Example::start(name) else { continue };
        let mut command = Command::new(folder.join("h2spec"));
        command.args(["--host", "127.0.0.1", "--port", &example.port, "--strict", "--timeout", "5"]);
        let output = run_within(120, &command).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(summary) = text.lines().find(|line| line.contains(" tests, ")) else {
            return skip(&format!("h2spec did not finish: {text}"));
        };
        eprintln!("h2spec {name}: {summary}");
        assert!(summary.contains(" 0 skipped, 0 failed"), "{text}");
    }
}

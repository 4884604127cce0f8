//! HTTP/2 by the suite that is made for it.

use std::process::Command;

use test_peers::{run_within, skip};

use super::Both;
use super::install::GO_TOOLS;

/// Cases that do not pass, by their text; README names them too.
///
/// The first two ask by GET for a body, which is no call: it is answered at once, without one. The next three ask by GET
/// too: where the answer is faster than what is wrong with the stream, nothing is wrong with it any more. Then one wants a
/// call refused that is one too many, but all are answered before it comes. In the last one the connection ends as it must,
/// over cleartext by a reset, because what was sent is not read.
const KNOWN: [&str; 7] = [
    "Sends a WINDOW_UPDATE frame on half-closed (remote) stream",
    "Sends a PRIORITY frame on half-closed (remote) stream",
    "Sends a second HEADERS frame without the END_STREAM flag",
    "above 2^31-1 on a stream",
    "\"content-length\" header field which does not equal",
    "advertised concurrent stream limit to be exceeded",
    "Sends invalid connection preface",
];

/// Runs of the suite, of which a case has to pass one: more cases depend on which of answer and error is faster.
const RUNS: usize = 5;

#[test]
fn h2spec() {
    let Some(folder) = GO_TOOLS.installed() else { return };
    let server = Both::greeter();
    for (address, flags) in [(server.plain, &[][..]), (server.tls, &["--tls", "--insecure"])] {
        let mut failing: Option<Vec<String>> = None;
        for _ in 0..RUNS {
            let mut command = Command::new(folder.join("bin/h2spec"));
            command.args(["--host", "127.0.0.1", "--timeout", "3"]).args(flags);
            command.args(["--path", "/helloworld.Greeter/SayHello", "--port", &address.port().to_string()]);
            let output = run_within(120, &command).unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            let Some(summary) = text.lines().find(|line| line.contains(" tests, ")) else {
                return skip(&format!("h2spec did not finish: {text}"));
            };
            eprintln!("h2spec {}: {summary}", flags.join(" "));
            // A case has a line that is written over by its verdict.
            let failed = text.split(['\n', '\r']).map(str::trim).filter(|line| line.starts_with('×'));
            let unknown = failed.filter(|line| !KNOWN.iter().any(|known| line.contains(known)));
            let still = |line: &&str| failing.as_ref().is_none_or(|failing| failing.iter().any(|known| known == line));
            let now: Vec<_> = unknown.filter(still).map(str::to_owned).collect();
            if now.is_empty() {
                failing = None;
                break;
            }
            failing = Some(now);
        }
        assert_eq!(failing, None);
    }
}

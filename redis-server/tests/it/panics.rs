//! A panic in code that can change data ends the process.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;

use crate::support::process::{Process, ask};
use crate::support::resp::request;

#[test]
fn a_panic_while_data_can_be_changed_ends_the_process_and_says_why() {
    let cases: [(&str, &[&[&str]]); 3] = [
        ("debug", &[&["DEBUG", "PANIC"]]),
        ("debug", &[&["MULTI"], &["SET", "k", "v"], &["DEBUG", "PANIC"], &["EXEC"]]),
        (
            "debug",
            &[
                &["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"],
                &["EVAL", "redis.call('set', 'k', 'v') redis.pcall('debug', 'panic')", "0"],
            ],
        ),
    ];
    for (number, (command, requests)) in cases.into_iter().enumerate() {
        let settings = [("enable-debug-command", "yes")];
        let mut process = Process::start(&format!("panics-{number}"), &settings);
        let mut bystander = process.connect();
        assert_eq!(ask(&mut bystander, &["PING"]).text(), "PONG");
        let mut client = process.connect();
        for words in requests {
            client.write_all(&request(words)).unwrap();
        }
        let status = process.ended();
        const ABORTED: i32 = 6;
        assert_eq!(status.signal(), Some(ABORTED), "{status}: {}", process.log());
        let log = process.log();
        assert!(log.contains("DEBUG PANIC called at Unix time "), "the message of the panic: {log}");
        let told = |line: &&str| line.contains("a command panicked while it could change data: the process ends");
        let last = log.lines().find(told).unwrap_or_else(|| panic!("{log}"));
        assert!(log.contains("crashed by signal: 6 (SIGABRT)"), "a report: {log}");
        assert!(last.contains(&format!("command=\"{command}\"")) && last.contains("addr=\""), "{last}");
        let mut rest = Vec::new();
        bystander.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
    }
}

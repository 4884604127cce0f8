//! The command-line client, against the program.

use std::process::Command;

use crate::frames::Program;

#[test]
fn every_command() {
    fn check(addr: &str, words: &str, expected: Result<&str, &str>) {
        let output = Command::new(env!("CARGO_BIN_EXE_grpc-client"))
            .args(words.split_whitespace())
            .args(["--address", addr])
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        match expected {
            Ok(text) => assert_eq!((out.as_str(), output.status.success()), (text, true), "{words}: {err}"),
            Err(part) => assert!(err.contains(part) && !output.status.success(), "{words}: {out} {err}"),
        }
    }
    for flags in [&[][..], &["--compress", "zstd"], &["--compress", "gzip"]] {
        let program = Program::start(flags);
        let addr = program.addr.to_string();
        check(&addr, "say-hello", Ok("Hello world\n"));
        check(&addr, "say-hello --name Ann", Ok("Hello Ann\n"));
        check(&addr, "say-hello --name Ann --compress gzip", Ok("Hello Ann\n"));
        check(&addr, "say-hello --name Ann --compress zstd", Ok("Hello Ann\n"));
        check(&addr, "say-hello-many-times --name Ann --count 2", Ok("Hello Ann\nHello Ann\n"));
        check(&addr, "say-hello-to-all Ann Bob", Ok("Hello Ann, Bob\n"));
        check(&addr, "say-hello-to-each Ann Bob --compress gzip", Ok("Hello Ann\nHello Bob\n"));
        check(&addr, "health", Ok("SERVING\n"));
        check(&addr, "health helloworld.Greeter", Ok("SERVING\n"));
        check(&addr, "health nobody", Err("NotFound"));
        check(&addr, "say-hello-many-times --count 9 --pause-ms 1000 --deadline 0.2", Err("Error"));
        check("127.0.0.1:1", "say-hello", Err("cannot reach http://127.0.0.1:1"));
    }
}

//! No client stops another: turns, slow calls beside the workers, and those who have to be alone.

use std::io::Write as _;

use crate::support::resp::{Value, request};
use crate::support::server::{Server, until_blocked};

#[test]
fn others_have_their_turn_before_all_of_a_long_pipeline_has_run() {
    let server = Server::with(&[("workers", "1")]);
    let (mut pipe, mut other) = (server.connect(), server.connect());
    const COMMANDS: i64 = 400_000;
    // What waits behind a blocking command is in the server when it ends.
    pipe.send(&["BLPOP", "q", "0"]);
    until_blocked(&server.instance, 1);
    pipe.stream.write_all(&request(&["INCR", "n"]).repeat(COMMANDS as usize)).unwrap();
    other.ask("LPUSH q x");
    let Value::Bulk(seen) = other.ask("GET n") else { panic!("some of them have run") };
    let seen: i64 = String::from_utf8(seen).unwrap().parse().unwrap();
    assert!(seen < COMMANDS, "all of them have run before the next client's turn");
    assert!(matches!(pipe.reply(), Value::Array(_)));
    for n in 1..=COMMANDS {
        assert_eq!(pipe.reply(), Value::Int(n));
    }
}

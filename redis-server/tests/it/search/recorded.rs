//! Replies in both protocols as RediSearch 2.10.5 gave them.
//!
//! `REDISEARCH_SOCKET` names the Unix socket of a genuine server, which the test empties: it then replies as recorded, too. With
//! `SEARCH_RECORD=1` the test prints the file anew.

use super::words;
use crate::support::recorded::Recording;

fn check(text: &'static str) {
    let recording = Recording {
        text,
        socket: "REDISEARCH_SOCKET",
        record: "SEARCH_RECORD",
        prepare: &[&["FT.CONFIG", "SET", "TIMEOUT", "0"]],
        words,
    };
    recording.check();
}

#[test]
fn replies_are_those_of_redisearch() {
    check(include_str!("replies.txt"));
}

/// Values of JSON, empty words, bad queries, explanations, FT.PROFILE.
#[test]
fn details_are_those_of_redisearch() {
    check(include_str!("details.txt"));
}

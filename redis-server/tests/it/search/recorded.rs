//! Replies in both protocols as RediSearch 2.10.5 gave them.
//!
//! `REDISEARCH_SOCKET` names the Unix socket of a genuine server, which the test empties: it then replies as recorded, too. With
//! `SEARCH_RECORD=1` the test prints the file anew.

use super::words;
use crate::support::recorded::Recording;

#[test]
fn replies_are_those_of_redisearch() {
    let recording = Recording {
        text: include_str!("replies.txt"),
        socket: "REDISEARCH_SOCKET",
        record: "SEARCH_RECORD",
        prepare: &[&["FT.CONFIG", "SET", "TIMEOUT", "0"]],
        words,
    };
    recording.check();
}

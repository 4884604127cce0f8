//! Replies in both protocols as Redis 8.0.6 gave them.
//!
//! `VECTOR_SETS_SOCKET` names the Unix socket of a genuine server, which the test empties: it then replies as recorded, too. With
//! `VECTOR_SETS_RECORD=1` the test prints the file anew.

use crate::search::words;
use crate::support::recorded::Recording;

#[test]
fn replies_are_those_of_redis() {
    let recording = Recording {
        text: include_str!("replies.txt"),
        socket: "VECTOR_SETS_SOCKET",
        record: "VECTOR_SETS_RECORD",
        prepare: &[],
        words,
    };
    recording.check();
}

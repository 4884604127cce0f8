//! Search indexes: replies, how an index follows the keys, restarts, replicas, and a plain scan as the model.

mod changes;
mod differ;
mod durable;
mod fanout;
mod hostile;
mod judged;
mod kills;
mod model;
mod newer;
mod phonetic;
mod recorded;
mod shapes;
mod temporary;
mod valkey;
mod vectors;

use std::collections::BTreeSet;

use crate::support::resp::{Value, take_bare_errors};
use crate::support::server::Client;

/// The words of a line; single or double quotes around a word hold spaces together.
pub(crate) fn words(line: &str) -> Vec<String> {
    take_bare_errors();
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if word.is_none() && (c == '"' || c == '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == ' ' => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn ask(client: &mut Client, line: &str) -> Value {
    client.send(&words(line));
    client.reply()
}

/// A call that must succeed.
#[track_caller]
fn run(client: &mut Client, line: &str) -> Value {
    let reply = ask(client, line);
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

/// The ids of an answer with NOCONTENT.
#[track_caller]
fn ids(reply: &Value) -> BTreeSet<String> {
    let Value::Array(items) = reply else { panic!("no list of ids: {reply:?}") };
    let found: BTreeSet<String> = items[1..].iter().map(Value::text).collect();
    assert_eq!(items[0], Value::Int(found.len() as i64), "the total counts what is listed");
    found
}

/// The ids that a query finds.
#[track_caller]
fn find(client: &mut Client, index: &str, query: &str) -> BTreeSet<String> {
    client.send(&["FT.SEARCH", index, query, "NOCONTENT", "LIMIT", "0", "100000", "DIALECT", "2", "TIMEOUT", "0"]);
    ids(&client.reply())
}

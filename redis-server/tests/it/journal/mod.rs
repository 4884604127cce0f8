//! The journal: the same commands as a genuine server sends to its replicas, and enough to make an equal server.

mod cases;
mod oracle;
pub(crate) mod replay;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::resp::{Value, parse};

/// Times from here on are moments in milliseconds of Unix time.
const MOMENTS: i64 = 1_000_000_000_000;
/// Moments that far from now, in milliseconds, are printed by their distance, and that exactly.
const NEAR: i64 = 100_000_000;
const EXACT: i64 = 100_000;

/// The cases that one client plays alone, without a look at what the journal should be: commands between ` / `.
pub(crate) fn plain_cases() -> impl Iterator<Item = &'static str> {
    let others = ["& ", "~ ", "{", "wait", "MULTI", "CLIENT"];
    let lines = cases::CASES.iter().map(|case| case.lines);
    lines.filter(move |lines| !others.iter().any(|other| lines.contains(other)))
}

/// Reads a stream of commands as text: `SET k v`, units as `[SET k v | DEL l]`, `3:` in front of commands for database 3.
#[derive(Default)]
struct Reader {
    db: String,
    unit: Option<Vec<String>>,
}

impl Reader {
    /// The commands in `bytes`, and how long they are.
    fn read(&mut self, bytes: &[u8]) -> (Vec<String>, usize) {
        let (mut told, mut at) = (Vec::new(), 0);
        while let Some((value, len)) = parse(&bytes[at..]).expect("a stream of commands") {
            at += len;
            let Value::Array(words) = value else { panic!("no command: {value:?}") };
            let words: Vec<Vec<u8>> = words.into_iter().map(bytes_of).collect();
            let text = words.iter().map(|word| shown(word)).collect::<Vec<_>>().join(" ");
            match text.as_str() {
                "PING" => {}
                "MULTI" => assert!(self.unit.replace(Vec::new()).is_none(), "MULTI in MULTI"),
                "EXEC" => {
                    let unit = self.unit.take().expect("EXEC behind MULTI");
                    told.push(format!("[{}]", unit.join(" | ")));
                }
                _ if text.starts_with("SELECT ") => {
                    let db = text.trim_start_matches("SELECT ");
                    self.db = if db == "0" { String::new() } else { format!("{db}:") };
                }
                _ => self.unit.as_mut().unwrap_or(&mut told).push(format!("{}{text}", self.db)),
            }
        }
        (told, at)
    }
}

fn bytes_of(value: Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes,
        other => panic!("no word: {other:?}"),
    }
}

/// A word; moments near to now as `T+100`, in seconds from now, ids that were made of the time as `T-n`.
fn shown(word: &[u8]) -> String {
    let text = word.escape_ascii().to_string();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let moment = |text: &str| {
        let ahead = text.parse::<i64>().ok().filter(|&moment| moment > MOMENTS)? - now;
        (ahead.abs() < NEAR).then(|| format!("T{:+}", (ahead + EXACT / 2).div_euclid(EXACT) * EXACT / 1000))
    };
    match text.split_once('-') {
        Some((ms, seq)) if moment(ms).is_some() && seq.parse::<u64>().is_ok() => "T-n".into(),
        _ => moment(&text).unwrap_or(text),
    }
}

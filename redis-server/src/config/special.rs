//! The settings with a grammar of their own: save points, output limits, event classes and the like.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bytes::Bytes;

use super::value::{Expected, integer, memory, one_of};

/// The classes of clients in `client-output-buffer-limit`, as `CONFIG GET` names and orders them.
pub(super) const CLIENT_CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

/// The letters of `notify-keyspace-events` and their bits, in the order in which they are printed.
const EVENTS: [(u8, i64); 14] = [
    (b'g', 1 << 2),
    (b'$', 1 << 3),
    (b'l', 1 << 4),
    (b's', 1 << 5),
    (b'h', 1 << 6),
    (b'z', 1 << 7),
    (b'x', 1 << 8),
    (b'e', 1 << 9),
    (b't', 1 << 10),
    (b'd', 1 << 13),
    (b'K', 1 << 0),
    (b'E', 1 << 1),
    (b'm', 1 << 11),
    (b'n', 1 << 14),
];

/// The bit of a letter of `notify-keyspace-events`; 0 if it is none.
pub const fn event_bit(letter: u8) -> i64 {
    let mut at = 0;
    while at < EVENTS.len() {
        if EVENTS[at].0 == letter {
            return EVENTS[at].1;
        }
        at += 1;
    }
    0
}

/// The classes that `A` stands for: those before `K`.
const ALL_EVENTS: i64 = 0x27fc;

/// The bits of the letters.
pub(super) fn events(letters: &[u8]) -> Result<i64, Expected> {
    letters.iter().try_fold(0, |bits, letter| match EVENTS.iter().find(|(known, _)| known == letter) {
        Some((_, bit)) => Ok(bits | bit),
        None if *letter == b'A' => Ok(bits | ALL_EVENTS),
        None => Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into()),
    })
}

pub(super) fn format_events(bits: i64) -> String {
    let all = bits & ALL_EVENTS == ALL_EVENTS;
    let named = EVENTS.iter().filter(|(_, bit)| bits & bit != 0 && !(all && bit & ALL_EVENTS != 0));
    all.then_some('A').into_iter().chain(named.map(|(letter, _)| char::from(*letter))).collect()
}

/// The bits of several words.
pub(super) fn flag_words(table: &[(&str, i64)], words: &[Bytes]) -> Result<i64, Expected> {
    if words.is_empty() {
        return Err(one_of(table.iter().map(|(name, _)| *name)));
    }
    let mut bits = 0;
    for word in words {
        let known = table.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        bits |= known.ok_or_else(|| one_of(table.iter().map(|(name, _)| *name)))?.1;
    }
    let named = |name: &str| table.iter().any(|(known, bit)| *known == name && bits & bit != 0);
    if named("save") && named("nosave") {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    Ok(bits)
}

pub(super) fn format_flag_words(table: &[(&str, i64)], bits: i64) -> String {
    let named = table.iter().filter(|(_, bit)| if bits == 0 { *bit == 0 } else { bits & bit != 0 });
    named.map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
}

/// Pairs of seconds and changes after those of `before`, which may be none; one empty word removes all.
pub(super) fn save_points(words: &[Bytes], before: &[Bytes]) -> Result<Vec<Bytes>, Expected> {
    if matches!(words, [word] if word.is_empty()) {
        return Ok(Vec::new());
    }
    let valid = |pair: &[Bytes]| {
        integer(&pair[0]).is_some_and(|seconds| seconds >= 1) && integer(&pair[1]).is_some_and(|changes| changes >= 0)
    };
    if words.len() % 2 == 1 || !words.chunks_exact(2).all(valid) {
        return Err("Invalid save parameters".into());
    }
    Ok([before, words].concat())
}

/// Groups of class, hard limit, soft limit and seconds, put into the table `before`.
pub(super) fn output_limits(words: &[Bytes], before: &[Bytes]) -> Result<Vec<Bytes>, Expected> {
    if matches!(words, [word] if word.is_empty()) {
        return Ok(before.to_vec());
    }
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    let mut table = if before.is_empty() {
        CLIENT_CLASSES.iter().flat_map(|class| [*class, "0", "0", "0"]).map(Bytes::from).collect()
    } else {
        before.to_vec()
    };
    for group in words.chunks_exact(4) {
        let class = client_class(&group[0]).ok_or("Invalid client class specified in buffer limit configuration.")?;
        let (Some(hard), Some(soft), Some(seconds @ 0..)) = (memory(&group[1]), memory(&group[2]), integer(&group[3]))
        else {
            return Err("Error in hard, soft or soft_seconds setting in buffer limit configuration.".into());
        };
        for (column, number) in [hard, soft, seconds.into()].into_iter().enumerate() {
            table[class * 4 + 1 + column] = number.min(i64::MAX.into()).to_string().into();
        }
    }
    Ok(table)
}

fn client_class(name: &[u8]) -> Option<usize> {
    if name.eq_ignore_ascii_case(b"replica") {
        return Some(1);
    }
    CLIENT_CLASSES.iter().position(|class| name.eq_ignore_ascii_case(class.as_bytes()))
}

/// Percentiles, written the short way: `50 99.9`.
pub(super) fn percentiles(words: &[Bytes]) -> Result<Vec<Bytes>, Expected> {
    if matches!(words, [word] if word.is_empty()) {
        return Ok(Vec::new());
    }
    words.iter().map(|word| percentile(word)).collect()
}

fn percentile(word: &[u8]) -> Result<Bytes, Expected> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok());
    let number = number.ok_or("Invalid latency-tracking-info-percentiles parameters")?;
    if !(0.0..=100.0).contains(&number) {
        return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".into());
    }
    Ok(number.to_string().into())
}

pub(super) fn oom_scores(words: &[Bytes]) -> Result<Vec<Bytes>, Expected> {
    if words.len() != 3 {
        return Err("wrong number of arguments".into());
    }
    if !words.iter().all(|word| integer(word).is_some_and(|score| (-2000..=2000).contains(&score))) {
        return Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".into());
    }
    Ok(words.to_vec())
}

/// Host and port; `no one` and nothing at all are the empty list.
pub(super) fn host_port(words: &[Bytes]) -> Result<Vec<Bytes>, Expected> {
    match words {
        [word] if word.is_empty() => Ok(Vec::new()),
        [no, one] if no.eq_ignore_ascii_case(b"no") && one.eq_ignore_ascii_case(b"one") => Ok(Vec::new()),
        [_, port] if integer(port).is_some_and(|port| (0..=65_535).contains(&port)) => Ok(words.to_vec()),
        [_, _] => Err("Invalid master port".into()),
        _ => Err("wrong number of arguments".into()),
    }
}

/// The absolute path of a directory that exists.
pub(super) fn directory(word: &[u8]) -> Result<Bytes, Expected> {
    let path = Path::new(std::ffi::OsStr::from_bytes(word));
    match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(Bytes::copy_from_slice(path.as_os_str().as_bytes())),
        Ok(_) => Err("Not a directory".into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err("No such file or directory".into()),
        Err(error) => Err(error.to_string().into()),
    }
}

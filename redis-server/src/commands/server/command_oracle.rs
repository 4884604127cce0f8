//! Every row of the table, compared with a genuine server's `COMMAND INFO`.

use std::collections::BTreeMap;

use super::{commands, describe};
use crate::commands::REGISTRY;
use crate::protocol;
use crate::protocol::oracle::{Oracle, Reply};

/// Commands that came after the version compared with (7.0), each on purpose.
const NEWER: &[&str] = &[
    "client|capa",
    "client|import-source",
    "client|no-touch",
    "client|setinfo",
    "cluster|myshardid",
    "cluster|cancelslotmigrations",
    "cluster|flushslot",
    "cluster|getslotmigrations",
    "cluster|migrateslots",
    "cluster|slot-stats",
    "cluster|syncslots",
    "commandlog",
    "commandlog|get",
    "commandlog|help",
    "commandlog|len",
    "commandlog|reset",
    "delex",
    "delifeq",
    "digest",
    "hexpire",
    "hexpireat",
    "hexpiretime",
    "hgetdel",
    "hgetex",
    "hotkeys",
    "hotkeys|get",
    "hotkeys|help",
    "hotkeys|reset",
    "hotkeys|start",
    "hotkeys|stop",
    "hpersist",
    "hpexpire",
    "hpexpireat",
    "hpexpiretime",
    "hpttl",
    "hsetex",
    "httl",
    "increx",
    "msetex",
    "script|show",
    "waitaof",
    "xackdel",
    "xcfgset",
    "xdelex",
    "xidmprecord",
];

/// Groups of commands that the genuine server has by modules.
const OF_MODULES: &[&str] = &["json.", "bf.", "ft.", "v"];

/// Commands that take more arguments since: `WITHSCORE`.
const LONGER: &[&str] = &["zrank", "zrevrank"];

/// The properties in a row, in an order of its own.
#[derive(Debug, PartialEq)]
struct Info {
    arity: String,
    flags: Vec<String>,
    range: [String; 3],
    categories: Vec<String>,
    tips: Vec<String>,
    keys: Vec<String>,
    subcommands: BTreeMap<String, Self>,
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Reply::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" ")),
        Reply::Nil | Reply::Error(_) => format!("{reply:?}"),
    }
}

fn items(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) => items,
        Reply::Text(_) | Reply::Nil | Reply::Error(_) => panic!("no array: {reply:?}"),
    }
}

fn sorted(reply: &Reply) -> Vec<String> {
    let mut words: Vec<String> = items(reply).iter().map(text).collect();
    words.sort();
    words
}

/// A key specification without its notes, which are prose.
fn key_spec(reply: &Reply) -> String {
    let pairs = items(reply).chunks_exact(2).filter(|pair| text(&pair[0]) != "notes");
    pairs.map(|pair| format!("{}: {}", text(&pair[0]), text(&pair[1]))).collect::<Vec<_>>().join(", ")
}

fn info(reply: &Reply) -> (String, Info) {
    let row = items(reply);
    let info = Info {
        arity: text(&row[1]),
        flags: sorted(&row[2]),
        range: [text(&row[3]), text(&row[4]), text(&row[5])],
        categories: sorted(&row[6]),
        tips: sorted(&row[7]),
        keys: items(&row[8]).iter().map(key_spec).collect(),
        subcommands: items(&row[9]).iter().map(info).collect(),
    };
    (text(&row[0]), info)
}

/// Appends what of `ours` differs from the genuine row.
fn compare(name: &str, ours: &Info, genuine: &Info, differences: &mut Vec<String>) {
    let mut differ = |what: &str, ours: String, genuine: String| {
        if ours != genuine {
            differences.push(format!("{name}: {what} is {ours}, genuine {genuine}"));
        }
    };
    if !LONGER.contains(&name) {
        differ("arity", ours.arity.clone(), genuine.arity.clone());
    }
    differ("flags", ours.flags.join(" "), genuine.flags.join(" "));
    differ("first, last, step", ours.range.join(" "), genuine.range.join(" "));
    differ("categories", ours.categories.join(" "), genuine.categories.join(" "));
    differ("tips", ours.tips.join(" "), genuine.tips.join(" "));
    differ("key specifications", format!("{:#?}", ours.keys), format!("{:#?}", genuine.keys));
    for (name, sub) in &ours.subcommands {
        match genuine.subcommands.get(name) {
            Some(genuine) => compare(name, sub, genuine, differences),
            None if NEWER.contains(&name.as_str()) => {}
            None => differences.push(format!("{name}: unknown to the genuine server")),
        }
    }
    for name in genuine.subcommands.keys().filter(|name| !ours.subcommands.contains_key(*name)) {
        println!("not supported: {name}");
    }
}

/// Commands of Redis that are missing: those on scripts, a cluster, replication and files. A name stands for its subcommands too.
const MISSING: &[&str] =
    &["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "function", "save", "script"];

#[test]
fn only_named_commands_of_a_genuine_server_are_missing() {
    let Some(mut oracle) = Oracle::start("command-list") else { return };
    let replies = oracle.run(&[vec![b"COMMAND".as_slice(), b"LIST"]]);
    let is_named = |name: &str| MISSING.iter().any(|known| name.split('|').next() == Some(known));
    let missing: Vec<String> =
        sorted(&replies[0]).into_iter().filter(|name| REGISTRY.lookup_full(name.as_bytes()).is_none()).collect();
    let unexplained: Vec<&String> = missing.iter().filter(|name| !is_named(name)).collect();
    assert!(unexplained.is_empty(), "missing: {unexplained:?}");
}

#[test]
fn every_row_is_that_of_a_genuine_server() {
    let Some(mut oracle) = Oracle::start("commands") else { return };
    let mut differences = Vec::new();
    for row in commands(REGISTRY) {
        let mut reply = protocol::Reply::default();
        describe(&mut reply, REGISTRY, row, crate::config::Level::default());
        let (name, ours) = info(&Reply::read(&mut reply.to_vec().as_slice()));
        let replies = oracle.run(&[vec![b"COMMAND", b"INFO", name.as_bytes()]]);
        match &items(&replies[0])[0] {
            Reply::Nil if NEWER.contains(&name.as_str()) => {}
            Reply::Nil if OF_MODULES.iter().any(|group| name.starts_with(group)) => {}
            Reply::Nil => differences.push(format!("{name}: unknown to the genuine server")),
            genuine => compare(&name, &ours, &info(genuine).1, &mut differences),
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

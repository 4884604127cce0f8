//! The table of commands against a genuine server's own, where one is installed.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::commands::{self, Keys, Kind, Touched};
use crate::redis::reply::{Element, Elements};
use crate::redis::wire::{Scan, Scanner, put_command};

enum Tree {
    Leaf(String),
    List(Vec<Self>),
}

impl Tree {
    fn read(elements: &mut Elements<'_>) -> Self {
        match elements.next() {
            Some(Element::Array(count)) => Self::List((0..count).map(|_| Self::read(elements)).collect()),
            Some(Element::Bytes(text) | Element::Text(text)) => Self::Leaf(String::from_utf8_lossy(text).into_owned()),
            Some(Element::Int(number)) => Self::Leaf(number.to_string()),
            other => Self::Leaf(format!("{other:?}")),
        }
    }

    fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            Self::Leaf(_) => &[],
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Leaf(text) => text,
            Self::List(_) => "",
        }
    }

    fn has(&self, word: &str) -> bool {
        self.list().iter().any(|item| item.text() == word)
    }
}

fn ask(stream: &mut UnixStream, args: &[&str]) -> Tree {
    let mut out = Vec::new();
    put_command(&mut out, args);
    stream.write_all(&out).unwrap();
    let (mut input, mut scanner, mut scanned) = (Vec::new(), Scanner::default(), 0);
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "redis-server hung up");
        input.extend_from_slice(&piece[..read]);
        match scanner.scan(&input[scanned..]).unwrap() {
            Scan::Whole(_) => return Tree::read(&mut Elements::new(&input)),
            Scan::Part(more) => scanned += more,
        }
    }
}

/// Calls whose keys stand behind counts and options.
const CALLS: &[&str] = &[
    "mset a 1 b 2",
    "bitop and d a b",
    "zunion 2 a b weights 1 2",
    "zunionstore d 2 a b aggregate max",
    "sintercard 2 a b limit 1",
    "lmpop 2 a b left",
    "zmpop 1 a min count 2",
    "xread count 1 streams a b 0 0",
    "xreadgroup group g c count 1 streams a b > >",
    "lcs a b",
    "object encoding a",
    "memory usage a",
    "xinfo stream a",
    "xgroup create a g $",
    "rename a b",
    "smove a b m",
    "pfmerge d a b",
    "zrangestore d a 0 1",
    "geosearchstore d a fromlonlat 0 0 byradius 1 m",
];

#[test]
fn the_table_agrees_with_a_genuine_server() {
    let folder = std::env::temp_dir().join(format!("http-oracle-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let server = Command::new("redis-server")
        .args(["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no"])
        .current_dir(&folder)
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut server) = server else {
        return test_peers::skip("there is no redis-server to compare with");
    };
    let connect = || UnixStream::connect(folder.join("socket")).ok();
    let wait = || std::thread::sleep(Duration::from_millis(20));
    let mut stream = (0..1500).find_map(|_| connect().or_else(|| (wait(), None).1)).unwrap();
    let outcome = std::panic::catch_unwind(move || compare(&mut stream));
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    outcome.unwrap();
}

fn compare(stream: &mut UnixStream) {
    let names = ask(stream, &["COMMAND", "LIST"]);
    assert!(names.list().len() > 200);
    for name in names.list().iter().map(Tree::text) {
        let info = ask(stream, &["COMMAND", "INFO", name]);
        let info = &info.list()[0].list();
        let subcommands = info[9].list();
        if subcommands.is_empty() {
            check_row(name, info);
        }
        for subcommand in subcommands {
            check_row(subcommand.list()[0].text(), subcommand.list());
        }
    }
    for call in CALLS {
        let args: Vec<_> = call.split(' ').collect();
        let keys = ask(stream, &[&["COMMAND", "GETKEYS"], &args[..]].concat());
        let mut keys: Vec<_> = keys.list().iter().map(Tree::text).collect();
        let Touched::Keys(ours) = commands::touched(commands::find(&args).1.unwrap(), &args) else { panic!("{call}") };
        let mut ours: Vec<_> = ours.iter().map(|key| std::str::from_utf8(key).unwrap()).collect();
        keys.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, keys, "{call}");
    }
}

/// A command of the genuine server that we know is at least as harmless there as here.
fn check_row(name: &str, info: &[Tree]) {
    let args: Vec<_> = name.split('|').collect();
    let (_, row) = commands::find(&args);
    let (flags, categories) = (&info[2], &info[6]);
    let Some(row) = row else {
        // A command that is not in the table is refused: only explanations may be missing.
        return assert!(name.ends_with("|help"), "{name} is not in the table");
    };
    let is_harmful = categories.has("@dangerous") || categories.has("@admin");
    match row.kind {
        Kind::Read => {
            assert!(!flags.has("write") && !is_harmful && !categories.has("@scripting"), "{name} does not only read");
            assert!(row.keys == Keys::None || flags.has("readonly"), "{name}");
        }
        Kind::Write => assert!(flags.has("write") && !is_harmful, "{name} does not only write"),
        Kind::Publish => assert!(flags.has("pubsub"), "{name}"),
        Kind::Script => assert!(categories.has("@scripting"), "{name}"),
        Kind::Admin | Kind::Connection => {}
    }
    let blocks = flags.has("blocking") && row.keys != Keys::Streams;
    assert!(!blocks || row.kind == Kind::Connection, "{name} blocks");
    let place = |at: usize| info[at].text().parse::<isize>().unwrap();
    if let Keys::Range(first, last, step) = row.keys {
        assert_eq!((first as isize, last, step as isize), (place(3), place(4), place(5)), "{name}");
    }
    if row.keys == Keys::None {
        assert_eq!(place(3), 0, "{name} has keys");
    }
}

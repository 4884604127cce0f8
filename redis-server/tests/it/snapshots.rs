//! Snapshots: files that go to the genuine server and back, and the server's end and start.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use test_peers::skip;

use super::support::genuine::Genuine;
use super::support::process::{Process, ask};
use super::support::resp::Value;

const DUMP: &str = "dump.rdb";

/// Commands that make keys of every type and encoding in databases 0 and 3, one a line.
pub(crate) fn recipes() -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut recipes: Vec<_> = [
        "SET empty ",
        "SET text some-text",
        "SET byte -7",
        "SET word 300",
        "SET int 70000",
        "SET long 12345678901",
        "SET zeros 007",
        "APPEND raw a-short-text",
        "XADD stream 1-1 field value",
        "XADD stream 2-1 field value other more",
        "XGROUP CREATE stream group 0",
        "XGROUP CREATE stream later 2-1",
        "XREADGROUP GROUP group ann COUNT 1 STREAMS stream >",
        "XDEL stream 2-1",
        "PFADD hll a b c d e",
        "GEOADD places 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
        "SETBIT bits 1000 1",
        "SET expires soon EX 100000",
        "FUNCTION LOAD #!lua\u{1}name=lib\nredis.register_function('f',function()return\u{1}7\u{1}end)",
        "SELECT 3",
        "SET in-three value",
        "SADD set-in-three x y",
        "SELECT 0",
    ]
    .map(words)
    .into();
    for recipe in &mut recipes {
        recipe.iter_mut().for_each(|word| *word = word.replace('\u{1}', " "));
    }
    let numbered = |command: &str, key: &str, count: usize, item: &dyn Fn(usize) -> Vec<String>| {
        [command, key].map(str::to_owned).into_iter().chain((0..count).flat_map(item)).collect::<Vec<_>>()
    };
    let long = |n: usize| format!("{}-{n}", "lorem-ipsum-".repeat(1 + n % 20));
    for count in [1, 100, 1500] {
        let key = |name: &str| format!("{name}:{count}");
        recipes.push(numbered("RPUSH", &key("list"), count, &|n| vec![long(n), n.to_string()]));
        recipes.push(numbered("SADD", &key("ints"), count, &|n| vec![(n * n * 70_000).to_string()]));
        recipes.push(numbered("SADD", &key("small-ints"), count, &|n| vec![n.to_string()]));
        recipes.push(numbered("SADD", &key("set"), count, &|n| vec![long(n)]));
        recipes.push(numbered("HSET", &key("hash"), count, &|n| vec![format!("f{n}"), n.to_string()]));
        recipes.push(numbered("HSET", &key("long-hash"), count, &|n| vec![format!("f{n}"), long(n)]));
        recipes.push(numbered("ZADD", &key("sorted"), count, &|n| vec![(n as f64 / 8.0).to_string(), format!("m{n}")]));
        recipes.push(numbered("ZADD", &key("long-sorted"), count, &|n| vec![format!("-{n}"), long(n)]));
        for n in 0..count {
            recipes.push(vec![
                "XADD".into(),
                key("log"),
                "*".into(),
                "n".into(),
                n.to_string(),
                "text".into(),
                long(n),
            ]);
        }
    }
    recipes.push(vec!["SET".into(), "large".into(), "x".repeat(100_000)]);
    recipes.push(words("ZADD infinite inf above -inf below"));
    recipes
}

/// The digest of all data, and that of the function libraries.
fn digest(stream: &mut (impl Read + Write)) -> (String, Value) {
    (ask(stream, &["DEBUG", "DIGEST"]).text(), ask(stream, &["FUNCTION", "LIST", "WITHCODE"]))
}

fn fill(stream: &mut (impl Read + Write)) {
    for recipe in recipes() {
        let words: Vec<&str> = recipe.iter().map(String::as_str).collect();
        let reply = ask(stream, &words);
        assert!(!reply.is_error(), "{:?}: {reply:?}", &words[..2]);
    }
}

/// Whether `redis-check-rdb`, where there is one, finds the file sound.
fn assert_sound(path: &Path) {
    match Command::new("redis-check-rdb").arg(path).output() {
        Err(error) => skip(&format!("there is no redis-check-rdb: {error}")),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && text.contains("RDB looks OK!"), "{text}");
        }
    }
}

#[test]
fn files_of_the_genuine_server_are_loaded_and_those_of_ours_by_it() {
    for program in Genuine::programs() {
        exchange_snapshots(&program);
    }
}

fn exchange_snapshots(program: &Path) {
    for policy in ["noeviction", "allkeys-lru", "allkeys-lfu"] {
        let settings = [("maxmemory-policy".to_owned(), policy.to_owned())];
        let Some(genuine) = Genuine::of(program, &settings, None) else { return };
        let mut theirs = genuine.connect();
        fill(&mut theirs);
        let expected = digest(&mut theirs);
        assert_eq!(ask(&mut theirs, &["SAVE"]).text(), "OK");

        let mut ours = Process::start(
            &format!("snapshots-{policy}"),
            &[("enable-debug-command", "yes"), ("maxmemory-policy", policy)],
        );
        ours.signal(Signal::KILL);
        ours.ended();
        fs::copy(genuine.folder.join(DUMP), ours.folder.join(DUMP)).unwrap();
        ours.restart();
        let mut stream = ours.connect();
        assert_eq!(digest(&mut stream), expected, "{policy}");
        assert_eq!(ask(&mut stream, &["DEBUG", "RELOAD"]).text(), "OK");
        assert_eq!(digest(&mut stream), expected, "{policy}");
        assert_sound(&ours.folder.join(DUMP));

        let again = Genuine::of(program, &settings, Some(&ours.folder.join(DUMP))).unwrap();
        assert_eq!(digest(&mut again.connect()), expected, "{policy}");
    }
}

#[test]
fn messages_that_are_added_once_are_known_again_and_other_servers_pass_by_them() {
    let mut server = Process::start("idempotence", &[]);
    let add = |server: &Process, iid: &str, value: &str| {
        ask(&mut server.connect(), &["XADD", "s", "IDMP", "ann", iid, "*", "f", value])
    };
    let ids = ["1", "2"].map(|iid| add(&server, iid, "v"));
    assert_eq!(ask(&mut server.connect(), &["EXPIRE", "s", "1000"]), Value::Int(1));
    assert_eq!(ask(&mut server.connect(), &["SET", "behind", "it"]).text(), "OK");
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    server.restart();
    assert_eq!(["1", "2"].map(|iid| add(&server, iid, "w")), ids);
    assert_eq!(ask(&mut server.connect(), &["SAVE"]).text(), "OK");
    let file = server.folder.join(DUMP);
    assert_sound(&file);
    for program in Genuine::programs() {
        let Some(genuine) = Genuine::of(&program, &[], Some(&file)) else { continue };
        let mut stream = genuine.connect();
        assert_eq!(ask(&mut stream, &["XLEN", "s"]), Value::Int(2), "{}", program.display());
        assert_eq!(ask(&mut stream, &["GET", "behind"]).text(), "it", "{}", program.display());
    }
}

#[test]
fn data_survives_termination_signals_and_shutdown() {
    let mut server = Process::start("restart", &[]);
    assert_eq!(ask(&mut server.connect(), &["SET", "a", "1"]).text(), "OK");
    server.signal(Signal::INT);
    assert!(server.ended().success());
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["GET", "a"]).text(), "1");
    assert_eq!(ask(&mut server.connect(), &["SET", "b", "2"]).text(), "OK");
    server.connect().write_all(b"SHUTDOWN\r\n").unwrap();
    assert!(server.ended().success());
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["GET", "b"]).text(), "2");
    assert_eq!(ask(&mut server.connect(), &["SET", "c", "3"]).text(), "OK");
    server.connect().write_all(b"SHUTDOWN NOSAVE\r\n").unwrap();
    assert!(server.ended().success());
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["EXISTS", "a", "b", "c"]), Value::Int(2));
    // Without save points only what is asked for is saved.
    assert_eq!(ask(&mut server.connect(), &["CONFIG", "SET", "save", ""]).text(), "OK");
    assert_eq!(ask(&mut server.connect(), &["SET", "d", "4"]).text(), "OK");
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["EXISTS", "d"]), Value::Int(0));
    assert_eq!(fs::read_dir(&server.folder).unwrap().filter(is_temporary).count(), 0);
}

fn is_temporary(file: &std::io::Result<fs::DirEntry>) -> bool {
    file.as_ref().unwrap().file_name().to_string_lossy().starts_with("temp-")
}

#[test]
fn a_snapshot_that_cannot_be_written_keeps_the_server_from_ending() {
    let mut server = Process::start("cannot-save", &[]);
    assert_eq!(ask(&mut server.connect(), &["SET", "a", "1"]).text(), "OK");
    // A folder stands where the file is to go.
    fs::create_dir_all(server.folder.join(DUMP).join("in-the-way")).unwrap();
    assert!(ask(&mut server.connect(), &["SAVE"]).is_error());
    let refused = ask(&mut server.connect(), &["SHUTDOWN"]);
    assert_eq!(refused, Value::Error("ERR Errors trying to SHUTDOWN. Check logs.".into()));
    server.signal(Signal::TERM);
    super::support::until("the signal is refused", || server.log().contains("Errors trying to shut down the server"));
    assert_eq!(ask(&mut server.connect(), &["GET", "a"]).text(), "1");
    fs::remove_dir_all(server.folder.join(DUMP)).unwrap();
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["GET", "a"]).text(), "1");
}

#[test]
fn a_damaged_file_ends_the_start_with_its_last_line() {
    let mut server = Process::start("damaged", &[]);
    assert_eq!(ask(&mut server.connect(), &["SET", "a", "some text"]).text(), "OK");
    server.signal(Signal::TERM);
    server.ended();
    let whole = fs::read(server.folder.join(DUMP)).unwrap();
    let check = |bytes: &[u8], cause: &str| {
        fs::write(server.folder.join(DUMP), bytes).unwrap();
        let (status, last) = server.fail_to_start();
        assert!(!status.success() && last.starts_with("Fatal error loading the DB: offset "), "{last}");
        assert!(last.contains(cause) && last.ends_with(". Exiting."), "{last}");
    };
    check(&whole[..whole.len() - 9], "unexpected end of file");
    check(b"REDIS0013", "can't handle RDB format version 13");
    check(b"RESP, not RDB", "wrong signature");
    let mut flipped = whole.clone();
    flipped[whole.len() - 12] ^= 1;
    check(&flipped, "CRC error");
}

#[test]
fn a_file_is_checked_without_a_server() {
    let mut server = Process::start("check", &[]);
    for line in ["SET a 1 EX 1000", "SADD b x y", "SET c 2", "FUNCTION FLUSH", "SAVE"] {
        let words: Vec<_> = line.split(' ').collect();
        assert!(!ask(&mut server.connect(), &words).is_error(), "{line}");
    }
    server.signal(Signal::KILL);
    server.ended();
    let file = server.folder.join(DUMP);
    let check = || {
        let output = Command::new(env!("CARGO_BIN_EXE_redis-server")).arg("--check").arg(&file).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (is_sound, said) = check();
    let contents = "keys 3, of which 1 expire, in databases 1, function libraries 0";
    assert!(is_sound && said.contains("sound: version 10 by Redis 7.0.15") && said.contains(contents), "{said}");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    let (is_sound, said) = check();
    assert!(!is_sound && said.contains("damaged at offset") && said.contains("unexpected end of file"), "{said}");
    assert!(said.contains(contents), "what stands in front of the damage is told: {said}");
    fs::remove_file(&file).unwrap();
    let (is_sound, said) = check();
    assert!(!is_sound && said.contains("No such file") && !said.contains("damaged"), "{said}");
}

//! Files and folders that are damaged, gone, or in the way: the server says so, what is in memory stays, and it goes on when it can.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use redis_server::commands::TABLE;
use redis_server::exec::core::Instance;
use redis_server::exec::snapshot;
use rustix::process::Signal;

use super::support::process::{Process, ask};
use super::support::resp::{Value, parse, request};
use super::support::server::config;
use super::support::until;

const DEBUG: (&str, &str) = ("enable-debug-command", "yes");

fn said(server: &Process, line: &str) -> String {
    ask(&mut server.connect(), &line.split(' ').collect::<Vec<_>>()).text()
}

fn info(server: &Process, name: &str) -> String {
    let info = said(server, "INFO persistence");
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
    line.unwrap_or_else(|| panic!("{name} in {info}"))
}

/// Rewrites the append-only file; how that has ended.
fn rewrite(server: &Process) -> String {
    assert!(said(server, "BGREWRITEAOF").starts_with("Background"));
    until("the rewrite ends", || info(server, "aof_rewrite_in_progress") == "0");
    info(server, "aof_last_bgrewrite_status")
}

fn save(server: &Process) -> String {
    assert!(said(server, "BGSAVE").starts_with("Background"));
    until("the save ends", || info(server, "rdb_bgsave_in_progress") == "0");
    info(server, "rdb_last_bgsave_status")
}

/// Starts it again, as it would after a power failure of a kind disk; it has the same data.
fn is_the_same_after_a_restart(server: &mut Process) {
    let digest = said(server, "DEBUG DIGEST");
    server.signal(Signal::KILL);
    server.ended();
    server.restart();
    assert_eq!(said(server, "DEBUG DIGEST"), digest);
}

/// Every byte at which a snapshot can end, and every bit of it: never is a part taken for the whole, and never does it panic.
#[test]
fn no_damaged_snapshot_is_loaded() {
    let server = Process::start("damaged-bits", &[("save", "")]);
    for line in [
        "SET text some-text",
        "SET number 70000 EX 100000",
        "RPUSH list a b c 1 2 300",
        "SADD set a b c",
        "SADD ints 1 2 70000",
        "ZADD sorted 1.5 a inf b",
        "HSET hash f v g w",
        "XADD stream 1-1 f v",
        "XGROUP CREATE stream g 0",
        "XREADGROUP GROUP g ann COUNT 1 STREAMS stream >",
        "SAVE",
    ] {
        said(&server, line);
    }
    let path = server.folder.join("dump.rdb");
    let whole = fs::read(&path).unwrap();
    let settings = [("dir", server.folder.to_str().unwrap()), ("shards", "2"), ("databases", "1")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let load = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let instance = Arc::new(Instance::new(Arc::new(config(&settings)), &TABLE));
        catch_unwind(AssertUnwindSafe(|| snapshot::load_at_start(&instance))).expect("nothing panics").is_ok()
    };
    assert!(load(&whole));
    for len in 0..whole.len() {
        assert!(!load(&whole[..len]), "cut at {len}");
    }
    for bit in 0..whole.len() * 8 {
        let mut turned = whole.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        assert!(!load(&turned), "bit {bit}");
    }
}

#[test]
fn a_folder_that_is_gone() {
    let mut server = Process::start("gone", &[("appendonly", "yes"), ("save", ""), DEBUG]);
    assert_eq!(said(&server, "SET a 1"), "OK");
    let folder = server.folder.join("appendonlydir");
    fs::remove_dir_all(&folder).unwrap();
    // It has the file, which has no name any more.
    assert_eq!(said(&server, "SET b 2"), "OK");
    assert_eq!(rewrite(&server), "err");
    assert_eq!(said(&server, "SET c 3"), "OK");
    fs::create_dir(&folder).unwrap();
    assert_eq!(rewrite(&server), "ok");
    assert_eq!(said(&server, "SET d 4"), "OK");
    until("it is written", || info(&server, "aof_buffer_length") == "0");
    is_the_same_after_a_restart(&mut server);
    assert_eq!(said(&server, "DBSIZE"), "4");
}

/// Where a name is taken by a folder, nothing can get it.
#[test]
fn a_rename_that_is_refused() {
    let mut server =
        Process::start("refused", &[("appendonly", "yes"), ("appendfsync", "always"), ("save", ""), DEBUG]);
    let in_the_way = ["appendonlydir/appendonly.aof.2.base.rdb", "appendonlydir/temp-appendonly.aof.manifest"];
    for (number, name) in in_the_way.into_iter().enumerate() {
        assert_eq!(said(&server, &format!("SET before:{number} 1")), "OK");
        let path = server.folder.join(name);
        fs::create_dir_all(path.join("something")).unwrap();
        assert_eq!(rewrite(&server), "err", "{name}");
        assert_eq!(said(&server, &format!("SET behind:{number} 1")), "OK", "{name}");
        assert_eq!(said(&server, "GET before:0"), "1");
        is_the_same_after_a_restart(&mut server);
        fs::remove_dir_all(&path).unwrap();
        assert_eq!(said(&server, &format!("SET again:{number} 1")), "OK");
        is_the_same_after_a_restart(&mut server);
    }
    assert_eq!(rewrite(&server), "ok");
    is_the_same_after_a_restart(&mut server);
    assert_eq!(said(&server, "DBSIZE"), "6");

    let path = server.folder.join("dump.rdb");
    fs::create_dir_all(path.join("something")).unwrap();
    assert_eq!(save(&server), "err");
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(save(&server), "ok");
    assert!(path.is_file());
}

/// A file system of its own, as small as it says, which is gone with this value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, and a line that says so, where none can be made.
    fn mount(folder: PathBuf, megabytes: usize) -> Option<Self> {
        fs::create_dir(&folder).unwrap();
        let disk = Self(folder);
        if disk.mount_with(&format!("size={megabytes}m")) {
            return Some(disk);
        }
        test_peers::skip("no file system can be mounted here");
        None
    }

    fn mount_with(&self, options: &str) -> bool {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(&self.0).output();
        mounted.is_ok_and(|output| output.status.success())
    }

    /// A server whose files are here from now on.
    fn take_over(&self, server: &mut Process) {
        server.signal(Signal::TERM);
        server.ended();
        server.add_flags(&["--dir", self.0.to_str().unwrap(), "--unixsocket", "../socket"]);
        server.restart();
    }

    /// Leaves no room but for so many kilobytes.
    fn fill(&self, left: usize) {
        let mut ballast = fs::OpenOptions::new().create(true).append(true).open(self.0.join("ballast")).unwrap();
        until("the disk is full", || {
            let room = rustix::fs::statvfs(&self.0).unwrap();
            let more = ((room.f_bavail * room.f_bsize) as usize).saturating_sub(left * 1024);
            // The server may take some of it at the same moment, and give it back.
            let _ = ballast.write_all(&vec![0; more]);
            more == 0
        });
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server that still has files on it is ended behind this.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Sets keys of a kilobyte from `first` on until one is refused, or the server has ended; how many were acknowledged, and what was
/// said to the last.
fn set_until_refused(server: &Process, first: usize) -> (usize, Option<String>) {
    let (mut stream, value) = (server.connect(), "v".repeat(1024));
    for number in first.. {
        let words = ["SET", &format!("key:{number}"), &value];
        match replies(&mut stream, &request(&words)) {
            Some(Value::Status(_)) => {}
            other => return (number, other.map(|reply| reply.text())),
        }
    }
    unreachable!("the disk is small")
}

/// The reply; `None`, when the server has ended.
fn replies(stream: &mut UnixStream, bytes: &[u8]) -> Option<Value> {
    stream.write_all(bytes).ok()?;
    let mut input = Vec::new();
    loop {
        if let Some((value, _)) = parse(&input).unwrap() {
            return Some(value);
        }
        let mut chunk = [0; 4096];
        let count = test_peers::read(stream, &mut chunk).ok().filter(|&count| count > 0)?;
        input.extend_from_slice(&chunk[..count]);
    }
}

#[test]
fn a_disk_that_is_full_has_writes_refused_until_there_is_room() {
    let mut server = Process::start("full", &[("save", ""), ("rdbcompression", "no"), DEBUG]);
    let Some(disk) = SmallDisk::mount(server.folder.join("small"), 4) else { return };
    server.add_flags(&["--appendonly", "yes"]);
    disk.take_over(&mut server);
    let mut acknowledged = 0;
    for _ in 0..3 {
        disk.fill(200);
        let (count, refused) = set_until_refused(&server, acknowledged);
        acknowledged = count;
        assert!(refused.unwrap().starts_with("MISCONF Errors writing to the AOF file: No space left"));
        assert!(said(&server, "PING").starts_with("MISCONF"));
        assert_eq!(said(&server, "DBSIZE"), acknowledged.to_string());
        assert_eq!(said(&server, "STRLEN key:0"), "1024");
        assert_eq!(info(&server, "aof_last_write_status"), "err");
        // Neither is there room for a snapshot, or a new base. The unfinished file was removed, which made some room.
        disk.fill(0);
        assert_eq!((save(&server), rewrite(&server)), ("err".into(), "err".into()));
        disk.make_room();
        until("it writes again", || said(&server, "PING") == "PONG");
        assert_eq!(said(&server, "SET behind 1"), "OK");
        assert_eq!(said(&server, "DEL behind"), "1");
        until("everything is written", || info(&server, "aof_buffer_length") == "0");
        is_the_same_after_a_restart(&mut server);
        assert_eq!(said(&server, "DBSIZE"), acknowledged.to_string());
        assert_eq!((save(&server), rewrite(&server)), ("ok".into(), "ok".into()));
    }
    assert!(acknowledged > 100, "{acknowledged}");
}

#[test]
fn a_disk_that_is_full_ends_the_server_under_always_and_nothing_is_lost() {
    let mut server = Process::start("full-always", &[("save", ""), DEBUG]);
    let Some(disk) = SmallDisk::mount(server.folder.join("small"), 4) else { return };
    server.add_flags(&["--appendonly", "yes", "--appendfsync", "always"]);
    disk.take_over(&mut server);
    disk.fill(200);
    let (acknowledged, refused) = set_until_refused(&server, 0);
    assert_eq!(refused, None);
    assert!(!server.ended().success());
    let log = server.log();
    assert!(log.contains("Can't recover from AOF write error when the AOF fsync policy is 'always'"), "{log}");
    disk.make_room();
    server.restart();
    let found: usize = said(&server, "DBSIZE").parse().unwrap();
    // One may have come in and not been answered.
    assert!((acknowledged..=acknowledged + 1).contains(&found) && acknowledged > 50, "{found} of {acknowledged}");
    assert_eq!(said(&server, &format!("EXISTS key:{}", acknowledged - 1)), "1");
}

#[test]
fn a_disk_that_may_only_be_read() {
    let mut server = Process::start("read-only", &[("save", ""), DEBUG]);
    let Some(disk) = SmallDisk::mount(server.folder.join("small"), 1) else { return };
    disk.take_over(&mut server);
    assert_eq!(said(&server, "SET a 1"), "OK");
    assert_eq!(save(&server), "ok");
    assert!(disk.mount_with("remount,ro"));
    assert_eq!(said(&server, "SET b 2"), "OK");
    assert_eq!(save(&server), "err");
    assert!(said(&server, "SAVE").starts_with("ERR"));
    assert!(said(&server, "CONFIG SET appendonly yes").starts_with("ERR"));
    assert_eq!((info(&server, "aof_enabled"), said(&server, "GET b")), ("0".into(), "2".into()));
    server.signal(Signal::TERM);
    server.ended();
    // It reads what is there, and does not serve where it could keep nothing.
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["EXISTS", "a", "b"]), Value::Int(1));
    server.signal(Signal::TERM);
    server.ended();
    server.add_flags(&["--appendonly", "yes"]);
    let (status, last) = server.fail_to_start();
    assert!(!status.success() && last.contains("Can't open or create append-only files"), "{last}");
}

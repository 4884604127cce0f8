//! The behaviour towards clients while a disk hangs or refuses.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use server_runtime::Running;

use super::super::{PATIENCE, layout, start_on};
use super::life::config;
use crate::exec::core::Instance;
use crate::exec::core::clock::{now_ms, steady_ms};
use crate::persistence::disk::simulated::{Fault, SimulatedDisk};
use crate::persistence::disk::{Disk, DiskFile, Open};
use crate::runtime::start_at;

/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// A disk of which one call hangs while it is told to.
#[derive(Clone, Debug)]
struct HangingDisk {
    disk: SimulatedDisk,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Write,
    Sync,
}

#[derive(Debug, Default)]
struct Gate {
    shut: Option<Call>,
    waiting: usize,
}

#[derive(Debug)]
struct HangingFile(Box<dyn DiskFile>, HangingDisk);

impl HangingDisk {
    fn new() -> Self {
        Self { disk: SimulatedDisk::new(1), gate: Arc::default() }
    }

    /// Has this call hang from now on, or none.
    fn hang(&self, call: Option<Call>) {
        self.gate.0.lock().unwrap().shut = call;
        self.gate.1.notify_all();
    }

    /// Whether a thread waits for it.
    fn is_hanging(&self) -> bool {
        self.gate.0.lock().unwrap().waiting > 0
    }

    fn pass(&self, call: Call) {
        let (gate, opened) = &*self.gate;
        let mut gate = gate.lock().unwrap();
        gate.waiting += 1;
        while gate.shut == Some(call) {
            gate = opened.wait(gate).unwrap();
        }
        gate.waiting -= 1;
    }
}

impl Disk for HangingDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(HangingFile(self.disk.open(path, how)?, self.clone())))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        self.disk.read(path)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        self.disk.len(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.disk.make_folder(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_folder(path)
    }
}

impl DiskFile for HangingFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.1.pass(Call::Write);
        self.0.write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.1.pass(Call::Sync);
        self.0.sync()
    }

    fn begin_sync(&self, bytes: Range<u64>) {
        self.0.begin_sync(bytes);
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}

pub(super) type Client = BufReader<TcpStream>;

pub(super) fn connect(running: &Running) -> Client {
    let client = TcpStream::connect(running.local_addrs()[0]).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    BufReader::new(client)
}

pub(super) fn send(client: &mut Client, line: &str) {
    client.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
}

pub(super) fn reply(client: &mut Client) -> String {
    let mut line = String::new();
    client.read_line(&mut line).expect("a reply");
    line.trim_end().to_owned()
}

/// Whether a reply has come.
fn has_reply(client: &mut Client) -> bool {
    if !client.buffer().is_empty() {
        return true;
    }
    let stream = client.get_mut();
    stream.set_nonblocking(true).unwrap();
    let found = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    matches!(found, Ok(1..))
}

/// A server, its disk, and a client.
struct Setting {
    disk: HangingDisk,
    instance: Arc<Instance>,
    client: Client,
    running: Option<Running>,
}

impl Setting {
    fn new(appendfsync: &str) -> Self {
        let config = config(&["--appendfsync", appendfsync, "--workers", "1"]);
        let (running, instance) = start_at(vec!["127.0.0.1:0".parse().unwrap()], config).unwrap();
        let disk = HangingDisk::new();
        start_on(&instance, Arc::new(disk.clone())).unwrap();
        let client = connect(&running);
        Self { disk, instance, client, running: Some(running) }
    }

    fn send(&mut self, line: &str) {
        send(&mut self.client, line);
    }

    fn reply(&mut self) -> String {
        reply(&mut self.client)
    }

    fn connect(&self) -> Client {
        connect(self.running.as_ref().expect("it runs until it is dropped"))
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.reply()
    }

    /// Whether a reply has come.
    fn has_reply(&mut self) -> bool {
        has_reply(&mut self.client)
    }

    /// Has the disk hang, with something that waits for it.
    fn hang(&mut self) {
        self.disk.hang(Some(Call::Sync));
        let mut sent = 0;
        until("the disk hangs", || {
            // Under `everysec` something has to be there that is to be forced to disk.
            if sent == 0 {
                self.client.get_mut().write_all(b"SET a 1\r\n").unwrap();
                sent += 1;
            }
            self.disk.is_hanging()
        });
    }

    fn delayed(&self) -> u64 {
        self.instance.aof.figures.delayed.load(Relaxed)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        self.disk.hang(None);
        self.disk.disk.fail(None);
        self.instance.aof.finish();
        if let Some(running) = self.running.take() {
            running.shutdown_handle().trigger();
            running.wait();
        }
    }
}

#[track_caller]
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn under_everysec_no_reply_waits_for_a_disk_that_hangs_for_a_second() {
    let mut setting = Setting::new("everysec");
    // A machine that itself hangs for so long that replies have to wait proves nothing.
    for _ in 0..10 {
        setting.hang();
        assert_eq!(setting.reply(), "+OK");
        let (since, before) = (Instant::now(), setting.delayed());
        let (mut worst, mut count) = (Duration::ZERO, 0);
        while since.elapsed() < Duration::from_secs(1) && setting.delayed() == before {
            let began = Instant::now();
            setting.send("INCR counter");
            until("a reply or a delay", || setting.has_reply() || setting.delayed() > before);
            if setting.has_reply() {
                setting.reply();
                (worst, count) = (worst.max(began.elapsed()), count + 1);
            }
        }
        let (is_proof, hangs) = (setting.delayed() == before, setting.disk.is_hanging());
        setting.disk.hang(None);
        if is_proof {
            assert!(hangs && count > 0);
            println!("{count} replies while the disk hung, the slowest within {worst:?}");
            return;
        }
        setting.reply();
    }
    panic!("ten times the machine was too slow");
}

#[test]
fn under_everysec_replies_wait_for_a_disk_that_hangs_for_longer() {
    let mut setting = Setting::new("everysec");
    setting.hang();
    assert_eq!(setting.reply(), "+OK");
    until("it has hung for long", || setting.instance.aof.durable_at.load(Relaxed) + PATIENCE < steady_ms());
    setting.send("SET b 2");
    until("a reply waits", || setting.delayed() > 0);
    assert!(!setting.has_reply());
    setting.disk.hang(None);
    assert_eq!(setting.reply(), "+OK");
}

#[test]
fn under_always_a_reply_waits_for_the_disk() {
    let mut setting = Setting::new("always");
    assert_eq!(setting.ask("SET before 1"), "+OK");
    setting.hang();
    assert!(!setting.has_reply());
    // It waits in its place, and so does one that only reads.
    setting.send("GET a");
    assert!(!setting.has_reply());
    setting.disk.hang(None);
    assert_eq!([setting.reply(), setting.reply(), setting.reply()], ["+OK", "$1", "1"]);
}

/// However long the disk refuses, what is in memory is served, and what would change it is refused.
#[test]
fn a_long_disk_failure_does_not_stall_clients() {
    let mut setting = Setting::new("everysec");
    assert_eq!(setting.ask("SET a 1"), "+OK");
    setting.disk.disk.fail(Some(Fault::All(io::ErrorKind::StorageFull)));
    let mut acknowledged = 1;
    until("writes are refused", || {
        let reply = setting.ask("INCR a");
        acknowledged += u64::from(reply.starts_with(':'));
        reply.starts_with("-MISCONF Errors writing to the AOF file: ")
    });
    let since = now_ms();
    until("it has refused for long", || now_ms() > since + PATIENCE + PATIENCE / 2);
    assert_eq!(
        [setting.ask("GET a"), setting.reply()],
        [format!("${}", acknowledged.to_string().len()), acknowledged.to_string()]
    );
    assert!(setting.ask("INCR a").starts_with("-MISCONF"));
    assert!(setting.ask("PING").starts_with("-MISCONF"));
    setting.disk.disk.fail(None);
    until("the disk works again", || setting.ask("INCR a").starts_with(':'));
}

/// A client's commands that change nothing yet, its next command, and the lines of the answer.
const CHANGES: [(&str, &str, &[&str]); 6] = [
    ("", "SET a 1", &["+OK"]),
    ("", "SET a 2\r\nGET a\r\nDEL a", &["+OK", "$1", "2", ":1"]),
    ("MULTI\r\nINCR c\r\nINCR c", "EXEC", &["*2", ":1", ":2"]),
    ("", "EVAL \"return redis.call('INCR', 'd')\" 0", &[":1"]),
    ("", "RPUSH list 1", &[":1"]),
    ("CLIENT REPLY SKIP", "SET a 3\r\nPING", &["+PONG"]),
];

#[test]
fn no_reply_leaves_before_its_write_has_returned() {
    for appendfsync in ["everysec", "no"] {
        let mut setting = Setting::new(appendfsync);
        for (before, sent, answered) in CHANGES {
            if !before.is_empty() {
                setting.send(before);
                let replies = if before.starts_with("MULTI") { 3 } else { 0 };
                (0..replies).for_each(|_| assert!(setting.reply().starts_with('+')));
            }
            setting.disk.hang(Some(Call::Write));
            setting.send(sent);
            until("it is being written", || setting.disk.is_hanging());
            assert!(!setting.has_reply(), "{appendfsync}: {sent}");
            setting.disk.hang(None);
            answered.iter().for_each(|line| assert_eq!(setting.reply(), *line, "{appendfsync}: {sent}"));
        }
    }
}

/// Clients whose commands have changed nothing wait as well, if their replies show changes: readers, clients served with values that
/// others pushed, and subscribers.
#[test]
fn replies_that_show_a_change_await_its_write() {
    for appendfsync in ["everysec", "no"] {
        let mut setting = Setting::new(appendfsync);
        assert_eq!(setting.ask("CONFIG SET notify-keyspace-events KEA"), "+OK");
        let (mut reader, mut popper, mut listener) = (setting.connect(), setting.connect(), setting.connect());
        send(&mut listener, "SUBSCRIBE __keyevent@0__:rpush");
        (0..6).for_each(|_| _ = reply(&mut listener));
        send(&mut popper, "BLPOP queue 0");
        until("somebody waits", || setting.instance.blocked_clients(0) == 1);
        // The keeper writes then, and the worker goes on.
        setting.instance.aof.set_delay(1);
        setting.disk.hang(Some(Call::Write));
        setting.send("RPUSH queue 1 2");
        until("the change is there", || setting.instance.aof.waiters.count() == 3);
        send(&mut reader, "LLEN queue");
        until("all wait", || setting.instance.aof.waiters.count() == 4);
        assert!(!setting.has_reply(), "{appendfsync}");
        [&mut reader, &mut popper, &mut listener]
            .into_iter()
            .for_each(|client| assert!(!has_reply(client), "{appendfsync}"));
        setting.disk.hang(None);
        assert_eq!(setting.reply(), ":2");
        assert_eq!(
            (reply(&mut reader), reply(&mut popper), reply(&mut listener)),
            (":1".into(), "*2".into(), "*3".into())
        );
    }
}

/// A disk that takes long to force something does not keep anything from being written.
#[test]
fn acknowledged_writes_are_written_during_a_hanging_fsync() {
    let mut setting = Setting::new("everysec");
    setting.hang();
    assert_eq!(setting.reply(), "+OK");
    let layout = layout(&setting.instance.config);
    for number in 1..=100 {
        if setting.delayed() > 0 {
            // The machine has hung itself: replies wait for the disk.
            break;
        }
        let number = number.to_string();
        setting.send(&format!("SET key {number}"));
        until("a reply or a delay", || setting.has_reply() || setting.delayed() > 0);
        if setting.has_reply() {
            assert_eq!(setting.reply(), "+OK");
            let written = setting.disk.disk.bytes(&layout.folder().join("appendonly.aof.1.incr.aof"));
            assert!(written.ends_with(format!("${}\r\n{number}\r\n", number.len()).as_bytes()), "{number}");
        }
    }
}

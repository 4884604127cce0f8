//! What clients notice of a disk that hangs or refuses.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use server_runtime::Running;

use super::super::{PATIENCE, start_on};
use super::life::config;
use crate::exec::clock::now_ms;
use crate::exec::instance::Instance;
use crate::persistence::disk::simulated::{Fault, SimulatedDisk};
use crate::persistence::disk::{Disk, DiskFile, Open};
use crate::runtime::start_at;

/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// A disk that hangs, while it is told to, when something is to be forced to it.
#[derive(Clone, Debug)]
struct HangingDisk {
    disk: SimulatedDisk,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

#[derive(Debug, Default)]
struct Gate {
    is_shut: bool,
    waiting: usize,
}

#[derive(Debug)]
struct HangingFile(Box<dyn DiskFile>, HangingDisk);

impl HangingDisk {
    fn new() -> Self {
        Self { disk: SimulatedDisk::new(1), gate: Arc::default() }
    }

    fn hang(&self, is_shut: bool) {
        self.gate.0.lock().unwrap().is_shut = is_shut;
        self.gate.1.notify_all();
    }

    /// Whether somebody waits for it.
    fn is_hanging(&self) -> bool {
        self.gate.0.lock().unwrap().waiting > 0
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
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        let (gate, opened) = &*self.1.gate;
        let mut gate = gate.lock().unwrap();
        gate.waiting += 1;
        while gate.is_shut {
            gate = opened.wait(gate).unwrap();
        }
        gate.waiting -= 1;
        drop(gate);
        self.0.sync()
    }

    fn begin_sync(&mut self, bytes: Range<u64>) {
        self.0.begin_sync(bytes);
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}

/// A server, its disk, and a client.
struct Setting {
    disk: HangingDisk,
    instance: Arc<Instance>,
    client: BufReader<TcpStream>,
    running: Option<Running>,
}

impl Setting {
    fn new(appendfsync: &str) -> Self {
        let config = config(&["--appendfsync", appendfsync, "--workers", "1"]);
        let (running, instance) = start_at(vec!["127.0.0.1:0".parse().unwrap()], config).unwrap();
        let disk = HangingDisk::new();
        start_on(&instance, Arc::new(disk.clone())).unwrap();
        let client = TcpStream::connect(running.local_addrs()[0]).unwrap();
        client.set_nodelay(true).unwrap();
        client.set_read_timeout(Some(LONG)).unwrap();
        Self { disk, instance, client: BufReader::new(client), running: Some(running) }
    }

    fn send(&mut self, line: &str) {
        self.client.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.client.read_line(&mut line).expect("a reply");
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.reply()
    }

    /// Whether a reply has come.
    fn has_reply(&mut self) -> bool {
        let stream = self.client.get_mut();
        stream.set_nonblocking(true).unwrap();
        let found = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        matches!(found, Ok(1..))
    }

    /// Has the disk hang, with something that waits for it.
    fn hang(&mut self) {
        self.disk.hang(true);
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
        self.disk.hang(false);
        self.disk.disk.fail(None);
        self.instance.aof.finish();
        if let Some(running) = self.running.take() {
            running.shutdown_handle().trigger();
            running.wait();
        }
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
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
        setting.disk.hang(false);
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
    until("it has hung for long", || setting.instance.aof.durable_at.load(Relaxed) + PATIENCE < now_ms());
    setting.send("SET b 2");
    until("a reply waits", || setting.delayed() > 0);
    assert!(!setting.has_reply());
    setting.disk.hang(false);
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
    setting.disk.hang(false);
    assert_eq!([setting.reply(), setting.reply(), setting.reply()], ["+OK", "$1", "1"]);
}

/// However long the disk refuses, what is in memory is served, and what would change it is refused.
#[test]
fn a_disk_that_refuses_for_long_makes_nobody_wait() {
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

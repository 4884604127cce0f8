//! A panic in each of the threads of the append-only file.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use server_runtime::Running;

use super::super::{layout, start_on};
use super::life::config;
use super::waits::{connect, reply, send, until};
use crate::config::Config;
use crate::exec::core::Instance;
use crate::persistence::disk::simulated::SimulatedDisk;
use crate::persistence::disk::{Disk, DiskFile, Open, RealDisk};
use crate::runtime::start_at;

/// Where the child has its files.
const FOLDER: &str = "AOF_PANICS_FOLDER";
const ACKNOWLEDGED: usize = 100;

/// The call of the disk that panics: to make files of this name, or to force any to disk.
#[derive(Debug, Default)]
struct Trap {
    at_base: AtomicBool,
    at_sync: AtomicBool,
}

#[derive(Debug)]
struct PanickingDisk<D> {
    disk: D,
    base: PathBuf,
    trap: Arc<Trap>,
}

#[derive(Debug)]
struct PanickingFile(Box<dyn DiskFile>, Arc<Trap>);

impl<D: Disk> Disk for PanickingDisk<D> {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        assert!(path != self.base || !self.trap.at_base.load(Relaxed), "a base that nobody can make");
        Ok(Box::new(PanickingFile(self.disk.open(path, how)?, Arc::clone(&self.trap))))
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

impl DiskFile for PanickingFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        assert!(!self.1.at_sync.load(Relaxed), "a file that nobody can force to disk");
        self.0.sync()
    }

    fn begin_sync(&self, bytes: std::ops::Range<u64>) {
        self.0.begin_sync(bytes);
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}

/// A server that keeps its files on a disk with a trap.
fn start(config: Config, disk: impl Disk + 'static) -> (Running, Arc<Instance>, Arc<Trap>) {
    let (running, instance) = start_at(vec!["127.0.0.1:0".parse().unwrap()], config).unwrap();
    let (base, trap) = (layout(&instance.config).new_base(), Arc::<Trap>::default());
    start_on(&instance, Arc::new(PanickingDisk { disk, base, trap: Arc::clone(&trap) })).unwrap();
    (running, instance, trap)
}

#[test]
fn a_panic_of_the_thread_that_writes_a_base_is_a_failed_rewrite() {
    for preamble in ["yes", "no"] {
        let (running, instance, trap) = start(config(&["--aof-use-rdb-preamble", preamble]), SimulatedDisk::new(1));
        let figures = &instance.aof.figures;
        for (is_trapped, failures) in [(true, 1), (false, 0)] {
            trap.at_base.store(is_trapped, Relaxed);
            let before = figures.rewrites.load(Relaxed);
            instance.aof.rewrite(&instance, false).unwrap();
            until("the rewrite is over", || {
                figures.rewrites.load(Relaxed) > before && !figures.is_rewriting.load(Relaxed)
            });
            assert_eq!(figures.failures.load(Relaxed), failures, "preamble {preamble}");
        }
        instance.aof.finish();
        running.shutdown_handle().trigger();
        running.wait();
    }
}

/// The child: acknowledges changes, and then its keeper panics.
#[test]
#[ignore = "ends its process: the test below starts it"]
fn a_server_whose_keeper_panics() {
    let folder = std::env::var(FOLDER).expect("the folder of the files");
    let (running, instance, trap) = start(config(&["--dir", &folder]), RealDisk);
    let mut client = connect(&running);
    for number in 1..=ACKNOWLEDGED {
        send(&mut client, &format!("SET key:{number} {number}"));
        assert_eq!(reply(&mut client), "+OK");
    }
    trap.at_sync.store(true, Relaxed);
    until("the keeper forces the file to disk", || {
        send(&mut client, "PING");
        assert_eq!(reply(&mut client), "+PONG");
        instance.aof.is_failing()
    });
}

#[test]
fn a_panic_of_the_keeper_ends_the_process_and_loses_nothing_that_was_acknowledged() {
    let folder = std::env::temp_dir().join(format!("redis-server-keeper-panics-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let name = "exec::aof::tests::panics::a_server_whose_keeper_panics";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", name, "--ignored"]).env(FOLDER, &folder).output().unwrap();
    const ABORTED: i32 = 6;
    assert_eq!(output.status.signal(), Some(ABORTED), "{output:?}");
    let written = std::fs::read(folder.join("appendonlydir/appendonly.aof.1.incr.aof")).unwrap();
    let last = format!("$3\r\n{ACKNOWLEDGED}\r\n");
    assert!(written.ends_with(last.as_bytes()), "{}", String::from_utf8_lossy(&written));
    std::fs::remove_dir_all(&folder).unwrap();
}

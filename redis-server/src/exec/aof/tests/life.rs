//! Writer, rewrite and loader, without clients and threads. The data is the number of additions to a counter, and the numbers so far.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use super::super::load::load;
use crate::commands::TABLE;
use crate::config::{Config, Launch};
use crate::exec::core::{Instance, Worker};
use crate::keyspace::{Entry, Object, StrRef, Value, ValueRef};
use crate::persistence::SnapshotFile;
use crate::persistence::aof::{Fsync, Layout, Log, Now, Policy, Writer};
use crate::persistence::disk::Disk;
use crate::persistence::disk::simulated::SimulatedDisk;
use crate::persistence::rdb::{self, Access, WriteOptions};
use crate::runtime::embedded::Session;
use crate::types::{List, ListLimits};

/// Units that one life of the server may say.
const UNITS: u64 = 12;
/// Milliseconds of writes that `everysec` may lose.
const PROMISE: u64 = 2000;

/// Bytes for replicas only, behind every third unit.
const APART: &[u8] = b"*1\r\n$7\r\nUNKNOWN\r\n";

/// A server without clients.
pub(super) struct Life {
    pub(super) disk: SimulatedDisk,
    pub(super) writer: Writer,
    is_rdb: bool,
    /// Units said, where each ends in the stream, and when it was said.
    pub(super) said: u64,
    ends: Vec<(u64, u64, u64)>,
    offset: u64,
    now: u64,
    /// By how much Unix time was set back, in milliseconds.
    set_back: u64,
    /// The numbers kept while the last file does not count: those of its begin.
    floor: u64,
}

fn command(bytes: &mut Vec<u8>, words: &[&str]) {
    write!(bytes, "*{}\r\n", words.len()).unwrap();
    words.iter().for_each(|word| write!(bytes, "${}\r\n{word}\r\n", word.len()).unwrap());
}

/// Adds one, in two commands that belong together.
pub(super) fn unit(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    command(&mut bytes, &["MULTI"]);
    command(&mut bytes, &["INCR", "counter"]);
    command(&mut bytes, &["RPUSH", "list", &number.to_string()]);
    command(&mut bytes, &["EXEC"]);
    bytes
}

/// All units up to this one, as a base.
pub(super) fn base(said: u64, is_rdb: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !is_rdb {
        if said > 0 {
            command(&mut bytes, &["SET", "counter", &said.to_string()]);
            (1..=said).for_each(|number| command(&mut bytes, &["RPUSH", "list", &number.to_string()]));
        }
        return bytes;
    }
    let mut writer = rdb::Writer::new(bytes, WriteOptions { compress: true, ..WriteOptions::default() });
    if said > 0 {
        let mut list = List::default();
        (1..=said).for_each(|number| list.push_back(number.to_string().as_bytes(), ListLimits::default()));
        let list = Entry::new(b"list", Value::Object(Object::List(Box::new(list))), None);
        let counter = said.to_string();
        let counter = ValueRef::Str(StrRef::Bytes { bytes: counter.as_bytes(), raw: false });
        writer.database(0, 2, 0);
        writer.record(b"counter", counter, None, Access::Untold);
        writer.record(b"list", list.value(), None, Access::Untold);
    }
    writer.finish().unwrap()
}

pub(super) fn config(flags: &[&str]) -> Config {
    let all = [&["--databases", "1", "--shards", "2", "--appendonly", "yes"], flags].concat();
    Config::load(&Launch::from_flags(&all).unwrap(), std::iter::empty()).unwrap().0
}

pub(super) fn instance(flags: &[&str]) -> Arc<Instance> {
    Arc::new(Instance::new(Arc::new(config(flags)), &TABLE))
}

pub(super) fn layout() -> Layout {
    super::super::layout(&config(&[]))
}

/// Where a file of this name is.
pub(super) fn path(name: &str) -> PathBuf {
    layout().folder().join(name)
}

/// The counter and the list.
pub(super) fn ask(instance: &Arc<Instance>) -> (u64, Vec<String>) {
    let mut session = Session::new(Rc::new(Worker::new(Arc::clone(instance))));
    let mut request = Vec::new();
    command(&mut request, &["GET", "counter"]);
    command(&mut request, &["LRANGE", "list", "0", "-1"]);
    session.receive(&request);
    let answer = String::from_utf8_lossy(&session.transmit()).into_owned();
    let mut lines = answer.split("\r\n").filter(|line| !line.starts_with('$'));
    let first = lines.next().unwrap_or_default();
    let count = first.parse();
    if count.is_ok() {
        lines.next();
    }
    (count.unwrap_or(0), lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// How many units an instance holds; all of them whole, and in order.
pub(super) fn held(instance: &Arc<Instance>) -> u64 {
    let (count, list) = ask(instance);
    assert!(
        list.iter().map(|text| text.parse::<u64>()).eq((1..=count).map(Ok)),
        "{count} units, of which are there: {list:?}"
    );
    count
}

impl Life {
    /// Starts on what there is; an error, where the disk ends it.
    pub(super) fn start(disk: &SimulatedDisk, is_rdb: bool, acknowledged: u64, most: u64) -> io::Result<Self> {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let instance = instance(&[]);
        let (manifest, _) = load(Worker::of_loader(Arc::clone(&instance)), &shared).map_err(|error| {
            assert!(disk.is_unsound(), "the start must be unattended: {error}");
            io::Error::other(error)
        })?;
        let said = held(&instance);
        assert!((acknowledged..=most).contains(&said), "{said} units, {acknowledged} acknowledged, {most} said");
        let empty = base(0, is_rdb);
        let log = Log::open(shared, layout(), manifest, is_rdb, |file| file.write_all(&empty))?;
        let (writer, ends) = (Writer::new(log, 0), vec![(said, 0, 0)]);
        Ok(Self { disk: disk.clone(), writer, is_rdb, said, ends, offset: 0, now: 1000, set_back: 0, floor: said })
    }

    /// The numbers that must be there from now on, in any case.
    pub(super) fn acknowledged(&mut self) -> u64 {
        if self.writer.log().is_listed() {
            let durable = self.writer.durable();
            let last = self.ends.iter().rev().find(|(_, end, _)| *end <= durable);
            self.floor = last.map_or(0, |(said, ..)| *said);
        }
        self.floor
    }

    pub(super) fn say(&mut self) {
        self.said += 1;
        let mut bytes = unit(self.said);
        self.offset += bytes.len() as u64;
        self.ends.push((self.said, self.offset, self.now));
        let mut apart = Vec::new();
        if self.said.is_multiple_of(3) {
            // Bytes for replicas only are in no file.
            let begin = self.offset;
            bytes.extend_from_slice(APART);
            self.offset += APART.len() as u64;
            apart.push(begin..self.offset);
        }
        self.writer.take(&mut bytes, &mut apart);
    }

    fn now(&self) -> Now {
        Now { unix: self.now.saturating_sub(self.set_back), steady: self.now }
    }

    /// Unix time is set back by an hour.
    pub(super) fn set_back(&mut self) {
        self.set_back = 3_600_000;
    }

    /// Writes what was said; false, where the server has to end.
    pub(super) fn write(&mut self, fsync: Fsync) -> bool {
        self.now += 300;
        // The files may begin to count no longer.
        self.acknowledged();
        let timestamps = self.said.is_multiple_of(2);
        let goes_on = self.writer.advance_and_sync(self.now(), Policy { fsync, timestamps }).is_ok();
        let works = self.writer.failure().is_none() && !self.disk.is_unsound();
        if goes_on && fsync == Fsync::EverySecond && works {
            let durable = self.writer.durable();
            let oldest = self.ends.iter().find(|(_, end, _)| *end > durable);
            assert!(oldest.is_none_or(|(_, _, at)| at + PROMISE > self.now), "{oldest:?} at {}", self.now);
        }
        goes_on
    }

    /// The next file begins in front of what is for replicas only, which is the last that was said.
    pub(super) fn cut_in_front_of_what_is_apart(&mut self) {
        assert!(self.said.is_multiple_of(3) && self.writer.written() == self.offset);
        self.writer.switch_at(self.offset - APART.len() as u64, None);
    }

    /// Does what the keeper does where files could not be forced to disk: makes a new base.
    pub(super) fn heal(&mut self) {
        if self.writer.needs_base() {
            // Where a failure has to wait it is tried again.
            let _ = self.try_rewrite(Fsync::EverySecond);
        }
    }

    fn write_base(&mut self) -> io::Result<()> {
        let base = base(self.said, self.is_rdb);
        let (disk, path) = (Arc::clone(self.writer.log().disk()), self.writer.log().layout().new_base());
        let mut file = SnapshotFile::create(&disk, &path, &path, false)?;
        file.write_all(&base)?;
        file.commit()
    }

    fn adopt(&mut self, written: io::Result<()>) -> io::Result<()> {
        written?;
        if !self.writer.switched()? {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let is_rdb = self.is_rdb;
        let now = self.now();
        self.writer.adopt(is_rdb, true, now)?;
        self.writer.log().remove_history();
        Ok(())
    }

    /// Rewrites the files while more is said. `Ok(false)`: the server has to end; an error: there is no new base.
    pub(super) fn try_rewrite(&mut self, fsync: Fsync) -> io::Result<bool> {
        self.writer.switch_at(self.offset, None);
        let written = self.write_base();
        self.say();
        if !self.write(fsync) {
            return Ok(false);
        }
        self.say();
        let adopted = self.adopt(written);
        let goes_on = self.write(fsync);
        adopted.map(|()| goes_on)
    }

    /// [`Life::try_rewrite`], whatever comes of it. False: the server has to end.
    pub(super) fn rewrite(&mut self, fsync: Fsync) -> bool {
        self.try_rewrite(fsync).unwrap_or(true)
    }

    /// Is switched off and on again. False: it stays off, or the server has to end.
    pub(super) fn begin_anew(&mut self, fsync: Fsync) -> bool {
        // The server says that it could not, and goes on without.
        let _ = self.writer.finish(self.now(), false);
        self.acknowledged();
        self.writer.log().abandon();
        let disk = Arc::clone(self.writer.log().disk());
        let Ok(log) = Log::begin(disk, layout()) else { return false };
        self.writer = Writer::new(log, self.offset);
        let written = self.write_base();
        self.say();
        if !self.write(fsync) {
            return false;
        }
        self.say();
        // It is tried again, as often as it fails.
        let _ = self.adopt(written);
        self.write(fsync)
    }

    /// Lives until it has said enough or the disk ends it. Returns what must be there from then on, and what may.
    pub(super) fn live(mut self, fsync: Fsync) -> (u64, u64) {
        for _ in 0..UNITS {
            let goes_on = match self.disk.below(10) {
                0 | 1 => self.rewrite(fsync),
                2 => self.begin_anew(fsync),
                3 | 4 => {
                    self.say();
                    self.say();
                    self.write(fsync)
                }
                _ => {
                    self.say();
                    self.write(fsync)
                }
            };
            if !goes_on || self.disk.has_crashed() {
                break;
            }
        }
        (self.acknowledged(), self.said)
    }
}

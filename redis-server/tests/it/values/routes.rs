//! The ways by which a value gets from one server into another, and what comes out at their ends.

use std::io::Cursor;
use std::rc::Rc;
use std::sync::Arc;

use redis_server::commands::TABLE;
use redis_server::exec::core::clock::now_ms;
use redis_server::exec::core::{Instance, Worker};
use redis_server::exec::snapshot;
use redis_server::journal::{Reader, User};
use redis_server::keyspace::{Access as Lock, Entry};
use redis_server::persistence::aof::{Buffered, PlainWriter};
use redis_server::persistence::rdb::{self, Access, Encoded, Fork, Records, WriteOptions, Writer};
use redis_server::runtime::embedded::Session;

use super::picture::{Keeps, picture};
use crate::support::resp::{parse, request};
use crate::support::server::{Server, config};

/// Values that are loaded together: a load has its own threads.
const BATCH: usize = 64;
/// The smallest piece in which large values are saved.
const PIECE: usize = 100;
/// A key that lives no longer is not sent by MIGRATE, which says for how long it lives.
const SOON_MS: u64 = 10_000;

/// A server without sockets, and its only session.
pub(super) struct Side {
    pub(super) instance: Arc<Instance>,
    pub(super) session: Session,
}

impl Side {
    pub(super) fn new(settings: &[(&str, &str)]) -> Self {
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let instance = Arc::new(Instance::new(Arc::new(config(&settings)), &TABLE));
        let session = Session::new(Rc::new(Worker::new(Arc::clone(&instance))));
        Self { instance, session }
    }

    /// One that runs what a file says: what is over by then is there until the server serves.
    fn loading(settings: &[(&str, &str)]) -> Self {
        let Self { instance, .. } = Self::new(settings);
        let session = Session::new(Rc::new(Worker::of_loader(Arc::clone(&instance))));
        Self { instance, session }
    }

    /// Runs commands, and returns what is answered.
    pub(super) fn run(&mut self, commands: &[u8]) -> Vec<u8> {
        self.session.receive(commands);
        self.session.transmit()
    }

    /// Looks at a key as it is stored.
    pub(super) fn look<R>(&self, key: &[u8], look: impl FnOnce(Option<&Entry>) -> R) -> R {
        self::look(&self.instance, key, look)
    }

    pub(super) fn picture(&self, key: &[u8], keeps: Keeps) -> String {
        self.look(key, |entry| picture(entry, now_ms(), keeps))
    }
}

fn look<R>(instance: &Instance, key: &[u8], look: impl FnOnce(Option<&Entry>) -> R) -> R {
    let database = instance.database(0);
    let mut keys = [(database.key(key), Lock::Read)];
    let view = database.lock_keys(&mut keys, now_ms());
    look(view.stored(&keys[0].0))
}

/// A value as it was, which is loaded later.
struct Expected {
    key: String,
    all: String,
    by_commands: String,
    /// The command that has made it.
    said: String,
}

/// Servers to which each value of a source goes, each by a way of its own.
pub(super) struct Routes {
    restored: Side,
    loaded: Side,
    plain: Side,
    replayed: Side,
    /// It has a socket, to which MIGRATE sends.
    migrated: Server,
    journal: Reader,
    batch: Vec<Expected>,
    file: Writer<Vec<u8>>,
    records: Records,
    commands: PlainWriter<Buffered<Vec<u8>>>,
    /// Batches so far: how files are written differs.
    batches: usize,
}

/// An error is the difference or the refusal, with its route.
pub(super) type Outcome = Result<(), String>;

impl Routes {
    pub(super) fn new(source: &Side, settings: &[(&str, &str)]) -> Self {
        source.instance.journal.turn_on(User::Aof, &source.instance.exclusive.stop().unwrap());
        let [restored, loaded] = [(); 2].map(|()| Side::new(settings));
        let [plain, replayed] = [(); 2].map(|()| Side::loading(settings));
        let mut routes = Self {
            restored,
            loaded,
            plain,
            replayed,
            migrated: Server::with(settings),
            journal: source.instance.journal.reader(|| {}),
            batch: Vec::new(),
            file: Writer::new(Vec::new(), options(0)),
            records: Records::new(options(0)),
            commands: PlainWriter::to_file(Vec::new()),
            batches: 0,
        };
        routes.begin();
        routes
    }

    fn begin(&mut self) {
        let options = options(self.batches);
        self.file = Writer::new(Vec::new(), options);
        self.file.database(0, BATCH, BATCH);
        self.records = Records::new(options);
        self.commands = PlainWriter::to_file(Vec::new());
        self.commands.database(0);
    }

    /// Has another server do what the source's journal says.
    pub(super) fn replay(&mut self) -> Outcome {
        let mut bytes = Vec::new();
        self.journal.take(&mut bytes, &mut Vec::new());
        accepted("replaying the journal", &self.replayed.run(&bytes), &bytes)
    }

    /// Sends the source's value of `key` by all ways, which `said` has made.
    pub(super) fn send(&mut self, source: &mut Side, key: &str, said: &dyn Fn() -> String) -> Outcome {
        let name = key.as_bytes();
        let now = now_ms();
        let [all, no_producers, by_commands] = source.look(name, |entry| {
            [Keeps::All, Keeps::NoProducers, Keeps::NoMoments].map(|keeps| picture(entry, now, keeps))
        });
        same("journal", &by_commands, &self.replayed.picture(name, Keeps::NoMoments))?;
        let payload = source.look(name, |entry| entry.map(|it| (rdb::dump(it.value(), Fork::Redis), it.expire_at())));
        let Some((payload, expire_at)) = payload else { return Ok(()) };
        // As MIGRATE says it, but for the time to live, which is relative there.
        let at = expire_at.unwrap_or(0).to_string();
        let restore = request(&[b"RESTORE", name, at.as_bytes(), &payload, b"REPLACE", b"ABSTTL"]);
        accepted("RESTORE", &self.restored.run(&restore), &restore)?;
        same("DUMP and RESTORE", &no_producers, &self.restored.picture(name, Keeps::NoProducers))?;
        if expire_at.is_none_or(|at| at > now + SOON_MS) {
            self.migrate(source, key, &no_producers)?;
        }
        self.keep(
            source,
            Expected { key: format!("{}:{key}", self.batch.len()), all, by_commands, said: said() },
            name,
        );
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// Has the source send its value of `key` by MIGRATE.
    fn migrate(&self, source: &mut Side, key: &str, expected: &str) -> Outcome {
        let (host, port) = (self.migrated.addr.ip().to_string(), self.migrated.addr.port().to_string());
        let migrate = request(&["MIGRATE", &host, &port, key, "0", "5000", "COPY", "REPLACE"]);
        accepted("MIGRATE", &source.run(&migrate), &migrate)?;
        let got = look(&self.migrated.instance, key.as_bytes(), |entry| picture(entry, now_ms(), Keeps::NoProducers));
        let ((expected_at, expected), (at, got)) = (split_expiry(expected), split_expiry(&got));
        same("MIGRATE", expected, got)?;
        // It says how long the key lives, not until when.
        let is_same = match (expected_at, at) {
            (Some(expected), Some(at)) => at.abs_diff(expected) < SOON_MS,
            (expected, at) => expected == at,
        };
        if is_same { Ok(()) } else { Err(format!("MIGRATE: expires at {expected_at:?}, not at {at:?}")) }
    }

    /// Writes a value down as a file has it, and as commands.
    fn keep(&mut self, source: &Side, expected: Expected, key: &[u8]) {
        source.look(key, |entry| {
            let Some(entry) = entry else { return };
            let (name, value, at) = (expected.key.as_bytes(), entry.value(), entry.expire_at());
            self.commands.record(name, value, at);
            if self.batches.is_multiple_of(2) {
                return self.file.record(name, value, at, Access::Untold);
            }
            let file = &mut self.file;
            self.records.add_in_pieces(0, (name, value), (at, Access::Idle(1)), PIECE, |records| {
                file.records(&records.take(Encoded::default()));
            });
        });
        self.batch.push(expected);
    }

    /// Loads what was kept.
    pub(super) fn flush(&mut self) -> Outcome {
        let batch = std::mem::take(&mut self.batch);
        self.batches += 1;
        if !self.records.is_empty() {
            self.file.records(&self.records.take(Encoded::default()));
        }
        let empty = Writer::new(Vec::new(), options(0));
        let file = std::mem::replace(&mut self.file, empty).finish().expect("memory takes all");
        let commands = std::mem::replace(&mut self.commands, PlainWriter::to_file(Vec::new()));
        let commands = commands.finish().expect("memory takes all");
        self.begin();
        let len = file.len() as u64;
        // As a replica loads a primary's snapshot, which is how a file is loaded at the start, too.
        let aside = snapshot::load_aside(&self.loaded.instance, Box::new(Cursor::new(file)), len);
        let loaded = aside.and_then(|aside| {
            let alone = self.loaded.instance.exclusive.stop().expect("nobody else is at work");
            aside.take_place(&self.loaded.instance, &alone)
        });
        let all_said = || batch.iter().map(|it| it.said.as_str()).collect::<Vec<_>>().join("\n");
        loaded.map_err(|error| format!("a file is not loaded: {error}\n{}", all_said()))?;
        self.plain.run(&request(&["FLUSHALL"]));
        accepted("commands of a plain base", &self.plain.run(&commands), &commands)?;
        for Expected { key, all, by_commands, said } in &batch {
            let in_context = |why: String| format!("{why}\nbehind {said}");
            same("file", all, &self.loaded.picture(key.as_bytes(), Keeps::All)).map_err(in_context)?;
            let plain = self.plain.picture(key.as_bytes(), Keeps::NoMoments);
            same("plain base", by_commands, &plain).map_err(in_context)?;
        }
        Ok(())
    }
}

/// When the key of a picture expires, and the rest.
fn split_expiry(picture: &str) -> (Option<u64>, &str) {
    let expiry = picture.strip_prefix("expires at ").and_then(|text| text.split_once('\n'));
    expiry.map_or((None, picture), |(at, rest)| (Some(at.parse().expect("a moment is a number")), rest))
}

/// Compressed or not; for Redis 7.4 and later, as fields may expire, or for Valkey 9.
fn options(batch: usize) -> WriteOptions {
    let fork = if batch % 8 < 6 { Fork::Redis } else { Fork::Valkey };
    WriteOptions { compress: batch % 4 < 2, checksum: true, fork, fields_expire: true }
}

fn same(route: &str, expected: &str, got: &str) -> Outcome {
    if expected == got { Ok(()) } else { Err(format!("{route}: sent\n{expected}\nand got\n{got}")) }
}

/// That nothing was refused.
fn accepted(what: &str, replies: &[u8], commands: &[u8]) -> Outcome {
    let mut at = 0;
    while let Some((value, len)) = parse(&replies[at..]).expect("replies are well-formed") {
        if value.is_error() {
            return Err(format!("{what}: refused: {}\n{}", value.text(), commands.escape_ascii()));
        }
        at += len;
    }
    Ok(())
}

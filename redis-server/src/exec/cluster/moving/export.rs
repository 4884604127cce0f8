//! The source's connection to the target, on a thread of its own.

use std::convert::Infallible;
use std::io::{self, Read as _, Write as _};
use std::net::ToSocketAddrs as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::changes::Changes;
use super::dump::dump;
use crate::cluster::NodeId;
use crate::cluster::moves::{Departure, Order, Progress, Word};
use crate::command::Args;
use crate::config::settings;
use crate::exec::cluster::replication_port;
use crate::exec::cluster::state::Line;
use crate::exec::core::pace::Pace;
use crate::exec::core::peers::connect_from_source;
use crate::exec::core::transport::Transport;
use crate::exec::core::{Instance, Worker, priority};
use crate::exec::gate::stand_still;
use crate::protocol::{Parser, RequestLimits, Span, encode_command};
use crate::threads::{self, OnPanic};

/// How long it waits for a word of the target's before it looks at the stream again.
const LISTEN: Duration = Duration::from_millis(1);
/// How many times as long as it works it rests where clients are served: the target rests, too.
const REST: u32 = 3;
/// Bytes that it sends between two rests.
const PIECE: usize = 256 * 1024;
/// Bytes of room that are kept when a large value has gone.
const ROOM_KEPT: usize = 2 * 1024 * 1024;
/// How often it listens while it sends what the slots hold.
const LISTEN_RARELY: Duration = Duration::from_millis(200);
/// Longest answer, or word.
const MAX_WORD: u64 = 4096;

/// Begins to send slots to where they go.
pub(super) fn begin(instance: &Arc<Instance>, line: Arc<Line>, name: NodeId, departure: Departure) {
    let (shared, failed) = (Arc::clone(instance), Arc::clone(instance));
    let run = move || {
        priority::lower(priority::MOVES);
        let export = Export { worker: Worker::of_move(Arc::clone(&shared)), name, line };
        let served = catch_unwind(AssertUnwindSafe(|| export.serve(&departure)));
        let why = match served {
            Ok(Ok(never)) => match never {},
            Ok(Err(Ended::Asked)) => None,
            Ok(Err(Ended::Failed(why))) => Some(why),
            Err(_) => Some("A panic, see the log".to_owned()),
        };
        if let Some(why) = why {
            shared.cluster.progress(&shared, name, Progress::Failed(why));
        }
        shared.cluster.progress(&shared, name, Progress::Ended);
    };
    if let Err(error) = threads::spawn("slots-out", OnPanic::EndProcess, run) {
        let why = format!("There is no thread for it: {error}");
        failed.cluster.progress(&failed, name, Progress::Failed(why));
        failed.cluster.progress(&failed, name, Progress::Ended);
    }
}

/// Why it is over.
enum Ended {
    /// The machine has said so.
    Asked,
    Failed(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // This server's own errors.
            io::ErrorKind::Other => Self::Failed(error.to_string()),
            _ => lost(&error.to_string()),
        }
    }
}

struct Export {
    worker: Worker,
    name: NodeId,
    line: Arc<Line>,
}

impl Export {
    fn instance(&self) -> &Arc<Instance> {
        &self.worker.instance
    }

    fn tell(&self, progress: Progress) {
        let instance = self.instance();
        instance.cluster.progress(instance, self.name, progress);
    }

    fn serve(&self, departure: &Departure) -> Result<Infallible, Ended> {
        let mut wire = Wire::connect(self.instance(), departure)
            .map_err(|error| Ended::Failed(format!("Unable to connect to target node: {error}")))?;
        self.tell(Progress::Connected);
        self.introduce(&mut wire, departure)?;
        self.tell(Progress::Established);
        let mut changes: Option<Journal> = None;
        loop {
            threads::panic_point();
            while let Some(order) = self.line.take() {
                match order {
                    Order::Say(word) => wire.say(word)?,
                    Order::Send => {
                        let journal = changes.insert(Journal::new(self.instance())?);
                        self.send_all(&mut wire, journal, departure)?;
                        self.tell(Progress::Sent);
                    }
                    Order::Drain => self.drain(&mut wire, changes.as_mut())?,
                    _ => return Err(Ended::Asked),
                }
            }
            if let Some(journal) = &mut changes {
                self.pass_on(&mut wire, journal)?;
            }
            self.listen(&mut wire)?;
            if self.instance().is_ending() {
                return Err(Ended::Failed("The server ends".to_owned()));
            }
        }
    }

    /// Says who this is, and what comes.
    fn introduce(&self, wire: &mut Wire, departure: &Departure) -> Result<(), Ended> {
        let config = &self.instance().config;
        if let Some(password) = config.string(settings::MASTERAUTH).filter(|password| !password.is_empty()) {
            let user = config.string(settings::MASTERUSER).filter(|user| !user.is_empty());
            let words = ["AUTH".to_owned()].into_iter().chain(user).chain([password]);
            wire.send(&words.collect::<Vec<_>>())?;
            let answer = wire.answer()?;
            if answer.starts_with('-') {
                return Err(Ended::Failed(format!("Failed to AUTH to target node: {answer}")));
            }
        }
        let mut words = vec!["CLUSTER".to_owned(), "SYNCSLOTS".to_owned(), "ESTABLISH".to_owned()];
        words.extend(["SOURCE".to_owned(), departure.source.to_string(), "NAME".to_owned(), self.name.to_string()]);
        words.push("SLOTSRANGE".to_owned());
        words.extend(
            departure.slots.ranges().iter().flat_map(|range| [range.start().to_string(), range.end().to_string()]),
        );
        wire.send(&words)?;
        let answer = wire.answer()?;
        match answer.starts_with('+') {
            true => Ok(()),
            false => Err(Ended::Failed(format!("Received error during handshake to target: {answer}"))),
        }
    }

    /// Sends what the slots hold, and what is changed in those that were sent.
    fn send_all(&self, wire: &mut Wire, journal: &mut Journal, departure: &Departure) -> Result<(), Ended> {
        let (mut commands, mut pace) = (Vec::new(), Pace::resting(self.instance(), REST));
        for slot in departure.slots.iter() {
            let mut goes_on = || -> io::Result<()> {
                match self.instance().is_ending() || self.line.is_ended() {
                    true => Err(io::ErrorKind::Interrupted.into()),
                    false => Ok(()),
                }
            };
            let offset = dump(&self.worker, slot, &mut commands, &mut pace, &mut goes_on)?;
            for piece in commands.chunks(PIECE) {
                wire.write(piece)?;
                pace.rest(Duration::ZERO);
            }
            commands.clear();
            commands.shrink_to(ROOM_KEPT);
            journal.changes.begin(slot, offset);
            self.pass_on(wire, journal)?;
            while let Some(order) = self.line.take() {
                match order {
                    Order::Say(word) => wire.say(word)?,
                    _ => return Err(Ended::Asked),
                }
            }
            if wire.listened.elapsed() > LISTEN_RARELY {
                self.listen(wire)?;
            }
        }
        Ok(wire.say(Word::SnapshotEnd)?)
    }

    /// Sends a round of changes.
    fn pass_on(&self, wire: &mut Wire, journal: &mut Journal) -> Result<(), Ended> {
        let mut commands = std::mem::take(&mut wire.room);
        commands.clear();
        let round = journal.changes.take(&mut commands)?;
        wire.write(&commands)?;
        wire.room = commands;
        self.tell(Progress::Behind { round, waiting: journal.changes.waiting() });
        Ok(())
    }

    /// Clients cannot write to the slots any more: waits until no call is under way that could before, and sends all.
    fn drain(&self, wire: &mut Wire, journal: Option<&mut Journal>) -> Result<(), Ended> {
        let journal = journal.ok_or_else(|| Ended::Failed("Unexpected state machine transition".to_owned()))?;
        let goes_on = || if self.line.is_ended() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) };
        drop(stand_still(&self.instance().exclusive, goes_on)?);
        let end = self.instance().journal.offset();
        while !journal.changes.has_reached(end) {
            let mut commands = Vec::new();
            journal.changes.take(&mut commands)?;
            wire.write(&commands)?;
        }
        Ok(wire.say(Word::Paused)?)
    }

    /// Takes what the target says.
    fn listen(&self, wire: &mut Wire) -> Result<(), Ended> {
        for word in wire.hear()? {
            self.tell(Progress::Said(word));
        }
        Ok(())
    }
}

/// The journal, which is kept while this is there.
struct Journal {
    changes: Changes,
    instance: Arc<Instance>,
}

impl Journal {
    fn new(instance: &Arc<Instance>) -> Result<Self, Ended> {
        let still = instance.stand_still()?;
        instance.journal.begin_move(&still);
        let changes = Changes::new(instance);
        drop(still);
        Ok(Self { changes, instance: Arc::clone(instance) })
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.instance.journal.end_move();
    }
}

/// The connection.
struct Wire {
    stream: Transport,
    input: Vec<u8>,
    /// Room for changes.
    room: Vec<u8>,
    listened: Instant,
    timeout: Duration,
}

impl Wire {
    fn connect(instance: &Instance, to: &Departure) -> io::Result<Self> {
        let config = &instance.config;
        let timeout = Duration::from_secs(config.uint(settings::REPL_TIMEOUT));
        let addresses = (to.ip.as_str(), replication_port(config, to.port, to.tls_port)).to_socket_addrs()?;
        let mut failure = io::Error::other("it has no address");
        for address in addresses {
            match connect_from_source(config, address, timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    let stream = Transport::of(stream, &to.ip, config)?;
                    let (input, room) = (Vec::new(), Vec::new());
                    return Ok(Self { stream, input, room, listened: Instant::now(), timeout });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.stream.write_all(bytes) }
    }

    fn send(&mut self, words: &[String]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words.iter().map(|word| word.as_bytes()));
        self.write(&bytes)
    }

    fn say(&mut self, word: Word) -> io::Result<()> {
        self.write(&word.encode())
    }

    /// A line of the handshake.
    fn answer(&mut self) -> Result<String, Ended> {
        let began = Instant::now();
        let mut buffer = [0; 1024];
        loop {
            if let Some(end) = self.input.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8_lossy(&self.input[..end]).into_owned();
                self.input.drain(..end + 2);
                return Ok(line);
            }
            if self.input.len() as u64 > MAX_WORD || began.elapsed() > self.timeout {
                return Err(Ended::Failed("The target does not answer as a node does".to_owned()));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(lost("it was closed")),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The target's words, if it says something within a moment.
    fn hear(&mut self) -> Result<Vec<Word>, Ended> {
        self.listened = Instant::now();
        self.stream.socket().set_read_timeout(Some(LISTEN))?;
        let mut buffer = [0; 4096];
        let read = self.stream.read(&mut buffer);
        self.stream.socket().set_read_timeout(Some(self.timeout))?;
        match read {
            Ok(0) => return Err(lost("it was closed")),
            Ok(count) => self.input.extend_from_slice(&buffer[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error.into()),
        }
        self.parse_words()
    }

    fn parse_words(&mut self) -> Result<Vec<Word>, Ended> {
        let limits = RequestLimits { max_bulk_len: MAX_WORD, authenticated: true };
        let unexpected = |what: &str| Ended::Failed(format!("The target has sent {what}"));
        let (mut words, mut used) = (Vec::new(), 0);
        let mut spans: Vec<Span> = Vec::new();
        while used < self.input.len() {
            if self.input[used] == b'-' {
                let line = self.input[used..].split(|byte| *byte == b'\r').next().unwrap_or_default();
                return Err(unexpected(&String::from_utf8_lossy(line)));
            }
            spans.clear();
            let parsed = Parser::default().parse(&self.input, used, &mut spans, &limits);
            let Some(end) = parsed.map_err(|error| unexpected(&error.to_string()))? else { break };
            let args = Args::new(&self.input, &spans);
            let is_word = args.len() > 2 && args.is(0, "cluster") && args.is(1, "syncslots");
            let word = if is_word { Word::parse(args.from(2).iter()) } else { None };
            words.push(word.ok_or_else(|| unexpected("a command"))?);
            used = end;
        }
        self.input.drain(..used);
        if self.input.len() as u64 > MAX_WORD {
            return Err(unexpected("too long a word"));
        }
        Ok(words)
    }
}

fn lost(why: &str) -> Ended {
    Ended::Failed(format!(
        "Connection lost to target: {why}. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information."
    ))
}

//! The target's side of a move. A thread of its own runs the source's commands as those of clients are run, but hidden from all
//! clients. The connection (`runtime/import.rs`) only moves bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::cluster::moves::{Progress, Word};
use crate::cluster::{NodeId, SlotSet};
use crate::command::{Args, Role, Row};
use crate::exec::apply::{Commands, Ends, Failed, Replay, Window};
use crate::exec::cluster::state::Line;
use crate::exec::core::pace::Pace;
use crate::exec::core::{Call, Instance, Worker, priority};
use crate::exec::eviction::{self, Room};
use crate::protocol::Span;
use crate::threads::{self, OnPanic};

/// Chunks of input that wait before the socket does.
const CHUNKS: usize = 8;
/// How long it waits for the disk, or others, between two looks.
const NAP: Duration = Duration::from_millis(1);
/// How often the machine hears that something comes.
const ALIVE: Duration = Duration::from_secs(1);
/// The ratio of rest to work where clients are served: this thread does most of the work of a move.
const REST: u32 = 1;
/// Bytes of room that are kept when a large value has passed.
const ROOM_KEPT: usize = 1024 * 1024;

/// An import whose connection is there.
pub struct Landing {
    /// Takes what comes, up to some chunks at a time.
    pub input: Sender<Bytes>,
    /// The words to be sent, and the end.
    pub line: Arc<Line>,
}

impl Landing {
    /// Begins to run what comes on a connection that is expected. None if there is no thread
    /// for it, or nobody waits for it any more.
    pub fn begin(instance: &Arc<Instance>, name: NodeId) -> Option<Self> {
        let slots = instance.cluster.moves(instance)?.into_iter().find(|job| job.name == name)?.slots;
        let line = instance.cluster.moving.open(name);
        let (input, chunks) = channel(CHUNKS);
        let (shared, own_line) = (Arc::clone(instance), Arc::clone(&line));
        let run = move || {
            priority::lower(priority::MOVES);
            let mut lander = Lander::new(&shared, name, slots);
            let landed = catch_unwind(AssertUnwindSafe(|| {
                threads::panic_point();
                lander.clear_slots(&own_line)?;
                lander.run(chunks)
            }));
            let why = landed.unwrap_or_else(|_| Err("A command panicked, see the log".to_owned())).err();
            if let Some(why) = why {
                shared.cluster.progress(&shared, name, Progress::Failed(why));
            }
            shared.cluster.progress(&shared, name, Progress::Ended);
        };
        match threads::spawn("slots-in", OnPanic::EndProcess, run) {
            Ok(_) => Some(Self { input, line }),
            Err(error) => {
                tracing::error!("there is no thread for slots that come: {error}");
                instance.cluster.progress(instance, name, Progress::Ended);
                None
            }
        }
    }
}

/// Runs what the source sends, in its order.
struct Lander {
    replay: Replay,
    name: NodeId,
    slots: Arc<SlotSet>,
    /// Bytes that have come and have not run, and how far the command at their head is parsed.
    input: Vec<u8>,
    commands: Commands,
    told: Instant,
}

impl Lander {
    fn new(instance: &Arc<Instance>, name: NodeId, slots: Arc<SlotSet>) -> Self {
        Self {
            replay: Replay::new(Worker::of_move(Arc::clone(instance))),
            name,
            slots,
            input: Vec::new(),
            commands: Commands::default(),
            told: Instant::now(),
        }
    }

    fn tell(&self, progress: Progress) {
        let instance = &self.replay.worker.instance;
        instance.cluster.progress(instance, self.name, progress);
    }

    /// Waits until nothing is left of what the slots had when they were this node's before.
    fn clear_slots(&self, line: &Line) -> Result<(), String> {
        let instance = &self.replay.worker.instance;
        for slot in self.slots.iter() {
            while !instance.cluster.drop_lost_slot(instance, slot) {
                if line.is_ended() || instance.is_ending() {
                    return Err(format!("The keys that slot {slot} had are still in use"));
                }
                thread::sleep(NAP);
            }
        }
        Ok(())
    }

    fn run(&mut self, mut chunks: Receiver<Bytes>) -> Result<(), String> {
        let mut pace = Pace::resting(&self.replay.worker.instance, REST);
        while let Some(chunk) = chunks.blocking_recv() {
            pace.rest(Duration::ZERO);
            if self.told.elapsed() > ALIVE {
                self.told = Instant::now();
                self.tell(Progress::Alive);
            }
            self.input.extend_from_slice(&chunk);
            // Commands point into it while they run.
            let input = std::mem::take(&mut self.input);
            let used = self.run_input(&input)?;
            self.input = input;
            self.input.drain(..used);
            if self.input.capacity() > ROOM_KEPT {
                self.input.shrink_to(ROOM_KEPT);
            }
        }
        Ok(())
    }

    /// Runs what is complete. Returns where that ends.
    fn run_input(&mut self, input: &[u8]) -> Result<usize, String> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            let read = self.commands.read(rest).map_err(|error| format!("The source sends no commands: {error}"))?;
            let Some(&(_, end)) = read.last() else { return Ok(at) };
            let spans = std::mem::take(&mut self.commands.spans);
            self.run_commands(rest, &spans, &read)?;
            self.commands.spans = spans;
            at += end;
        }
    }

    fn run_commands(&mut self, input: &[u8], spans: &[Span], ends: &Ends) -> Result<(), String> {
        self.make_room()?;
        let mut calls = Window::new();
        let mut first = 0;
        for &(last, _) in ends {
            let args = Args::new(input, &spans[first..last]);
            first = last;
            if args.is_empty() {
                continue;
            }
            if args.len() > 2 && args.is(0, "cluster") && args.is(1, "syncslots") {
                self.run_window(&mut calls)?;
                self.take_word(args)?;
                continue;
            }
            let row = self.replay.resolve(args).map_err(|error| text(&error))?;
            if row.command.role == Role::Select {
                // There is one database.
                continue;
            }
            self.check_keys(row, args)?;
            if self.replay.batches(row, args) {
                calls.push(Call { row, args });
            } else {
                self.run_window(&mut calls)?;
                self.replay.pass(row, args).map_err(|error| text(&error))?;
            }
        }
        self.run_window(&mut calls)
    }

    fn run_window(&mut self, calls: &mut Window<'_>) -> Result<(), String> {
        self.replay.run_window(calls).map_err(|error| text(&error))
    }

    /// Only the slots of the move are changed, whatever the source says.
    fn check_keys(&self, row: &Row, args: Args<'_>) -> Result<(), String> {
        let keys = row.command.key_positions(args);
        let is_ours = |at: usize| self.slots.has(crate::cluster::slot_of(args.at(at)));
        match !keys.is_empty() && keys.iter().all(|(at, _)| is_ours(*at)) {
            true => Ok(()),
            false => Err(failed(args, "it is not about the slots of the migration")),
        }
    }

    fn make_room(&self) -> Result<(), String> {
        let instance = &self.replay.worker.instance;
        if instance.is_short_of_memory() && eviction::make_room(&self.replay.worker) == Room::None {
            return Err("Ran out of memory (OOM) during slot import".to_owned());
        }
        Ok(())
    }

    /// Handles the source's other words.
    fn take_word(&self, args: Args<'_>) -> Result<(), String> {
        let Some(word) = Word::parse(args.from(2).iter()) else {
            // Valkey tells what else it can do.
            let is_offer = args.is(2, "capa");
            return if is_offer { Ok(()) } else { Err(failed(args, "it is unknown")) };
        };
        if word == Word::Paused {
            // The source has answered its clients that its disk has what it has sent.
            let instance = &self.replay.worker.instance;
            let end = instance.journal.offset();
            while instance.aof.holds_at(instance, end).is_some() {
                thread::sleep(NAP);
            }
        }
        self.tell(Progress::Said(word));
        Ok(())
    }
}

fn failed(args: Args<'_>, why: &str) -> String {
    text(&Failed::new(args, why))
}

fn text(Failed { command, why }: &Failed) -> String {
    format!("Failed to process the command '{command}' during slot migration: {why}")
}

//! The server without sockets: bytes in, bytes out, for other programs and for tests.
//!
//! ```
//! use std::rc::Rc;
//! use std::sync::Arc;
//! use redis_server::commands::TABLE;
//! use redis_server::config::Config;
//! use redis_server::runtime::embedded::Session;
//! use redis_server::exec::core::Instance;
//! use redis_server::exec::core::Worker;
//!
//! let instance = Arc::new(Instance::new(Arc::new(Config::default()), &TABLE));
//! let worker = Rc::new(Worker::new(instance));
//! let mut session = Session::new(Rc::clone(&worker));
//! session.receive(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\nGET k\r\n");
//! assert_eq!(session.transmit(), b"+OK\r\n$1\r\nv\r\n");
//! ```
//!
//! Nothing here waits. A blocking command leaves the session [waiting](Session::is_waiting); its reply comes out of
//! [`Session::transmit`] once another session of the same instance, or its deadline, has ended the wait. [`expire`]
//! removes expired keys that no command asks for; call it now and then.
//!
//! A command that panics ends its session, which is [closed](Session::is_closed) then and has nothing more to say; one that panics
//! where it could change data ends the process, which is the whole program's (docs/internals/redis-server.md, "After a panic").

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::clients::client::{ClientShared, End};
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Instance, Worker};
use crate::exec::run::outcome::Passed;
use crate::exec::run::pipeline::{Pipeline, Received, Runner};
use crate::exec::run::session::ConnectedClient;
use crate::exec::run::{panics, slow};
use crate::protocol::{Reply, Span};

/// Most keys that [`expire`] removes from one shard under one lock.
const EXPIRE_SLICE: usize = 64;

/// Removes every expired key, unless a script runs.
pub fn expire(instance: &Instance) {
    let activity = instance.exclusive.activity();
    let Some(_inside) = instance.exclusive.try_enter(&activity).filter(|_| instance.active_expire()) else { return };
    for database in instance.databases() {
        for shard in 0..database.shards() {
            while !database.expire_shard(shard, now_ms(), EXPIRE_SLICE).is_done {}
        }
    }
}

/// A client's session without a socket.
#[derive(Debug)]
pub struct Session {
    worker: Rc<Worker>,
    client: ConnectedClient,
    /// Bytes that have been received and not been run.
    input: Vec<u8>,
    pipeline: Pipeline,
    /// Room for the arguments of a window.
    spans: Vec<Span>,
    reply: Reply,
}

impl Session {
    /// A client of the worker's instance.
    pub fn new(worker: Rc<Worker>) -> Self {
        let instance = &worker.instance;
        let name = String::from("embedded:0");
        let shared = ClientShared::new(instance.next_client_id(), name.clone(), name, -1, now_ms());
        let client = ConnectedClient::new(instance, shared);
        Self {
            worker,
            client,
            input: Vec::new(),
            pipeline: Pipeline::default(),
            spans: Vec::new(),
            reply: Reply::default(),
        }
    }

    /// Takes requests, cut anywhere, and runs those that are complete.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.advance();
    }

    /// The bytes to be sent to the client: replies, and messages that others have published. Empty while the append-only file does not
    /// have the changes that they show, as `appendfsync` says; the [waker](Session::wake_by) is woken when it has.
    pub fn transmit(&mut self) -> Vec<u8> {
        self.advance();
        if self.awaits_file() {
            return Vec::new();
        }
        let mut out = self.reply.to_vec();
        self.reply.clear();
        let mail = self.client.shared.take_mail();
        mail.messages.iter().for_each(|message| out.extend_from_slice(message));
        self.client.close |= mail.end != End::No;
        out
    }

    fn awaits_file(&self) -> bool {
        let instance = &self.worker.instance;
        let Some(offset) = instance.aof.holds(instance) else { return false };
        instance.aof.wait(instance, &self.client.shared, offset);
        instance.aof.holds_at(instance, offset).is_some()
    }

    /// Wakes this task when a message is left for the client, or its end is near; [`Session::transmit`] has them.
    pub fn wake_by(&self, waker: &std::task::Waker) {
        self.client.shared.wake_by(waker);
    }

    /// Whether a blocking command waits for its keys.
    pub fn is_waiting(&self) -> bool {
        self.client.waiting.is_some()
    }

    /// Whether the server wants the connection to end when its output is sent.
    pub fn is_closed(&self) -> bool {
        self.client.close
    }

    /// Runs what can run.
    fn advance(&mut self) {
        self.end_wait();
        let input = std::mem::take(&mut self.input);
        let mut used = 0;
        let run = || while self.client.waiting.is_none() && !self.client.close && self.run_window(&input, &mut used) {};
        if catch_unwind(AssertUnwindSafe(run)).is_err() {
            let shared = &self.client.shared;
            let (id, command) = (shared.id, panics::command(&self.worker, shared));
            tracing::error!(id, command, "closing embedded session: its command panicked");
            self.client.close = true;
            self.reply.clear();
        }
        self.input = input;
        self.input.drain(..used);
    }

    /// Runs commands behind `used`; false if there is nothing more to run now.
    fn run_window(&mut self, input: &[u8], used: &mut usize) -> bool {
        let before = *used;
        self.reply.set_resp3(self.client.resp3);
        let began = self.worker.ticked();
        let runner = Runner { worker: &self.worker, client: &mut self.client, reply: &mut self.reply, began };
        let received = Received { bytes: input, owner: None };
        match self.pipeline.run(runner, received, &mut self.spans, used) {
            Ok(Passed::Done) => return *used > before && *used < input.len() && !self.pipeline.parser.in_command(),
            Ok(Passed::Blocked(waiting)) => self.client.waiting = Some(waiting),
            // No thread here could go on with an interrupted script or a slow call, so none is interrupted or lent.
            Ok(Passed::Interrupted(_) | Passed::Lent(_)) => self.client.close = true,
            Ok(Passed::Paused(_) | Passed::Held(_)) => {}
            Err(error) => {
                self.reply.error(&format_args!("ERR {error}"));
                self.client.close = true;
            }
        }
        false
    }

    /// Ends the wait if its answer has come, or its deadline.
    fn end_wait(&mut self) {
        let Some(mut waiting) = self.client.waiting.take() else { return };
        slow::serve_due(&self.worker);
        let answer = match waiting.answer.try_recv() {
            Ok(answer) => answer,
            Err(_) if waiting.deadline.is_some_and(|deadline| deadline <= now_ms()) && waiting.parked.abandon() => {
                waiting.parked.null()
            }
            Err(_) => return self.client.waiting = Some(waiting),
        };
        waiting.conclude(&self.client, &mut self.reply, &answer);
    }
}

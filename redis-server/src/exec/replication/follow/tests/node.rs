//! One server.

use std::path::Path;
use std::sync::Arc;

use crate::clients::acl::Identity;
use crate::clients::client::{Client, ClientShared};
use crate::command::Args;
use crate::config::{Config, Launch, settings};
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Instance, Worker};
use crate::exec::gate::Still;
use crate::exec::replication::follow::apply::Applier;
use crate::exec::run::admission::{self, Admission};
use crate::exec::run::dispatch;
use crate::exec::run::outcome::Passed;
use crate::exec::snapshot;
use crate::persistence::disk::simulated::SimulatedDisk;
use crate::protocol::{Parser, Reply, RequestLimits};

const FILE: &str = "/data/dump.rdb";

/// A server, without what would connect it to others.
pub(super) struct Node {
    pub(super) instance: Arc<Instance>,
    pub(super) worker: Worker,
    pub(super) applier: Applier,
    pub(super) writer: Client,
    disk: SimulatedDisk,
    has_saved: bool,
    /// The node that it is to follow.
    pub(super) target: Option<usize>,
    pub(super) generation: u64,
    /// When it tries to connect.
    pub(super) connects_at: u64,
}

pub(in crate::exec::replication) fn client(instance: &Arc<Instance>) -> Client {
    let id = instance.next_client_id();
    let shared = ClientShared::new(id, "127.0.0.1:1".to_owned(), String::new(), -1, now_ms());
    Client::new(Arc::new(shared), Identity::newcomer(&instance.acl))
}

impl Node {
    pub(super) fn new(seed: u64) -> Self {
        let disk = SimulatedDisk::new(seed);
        let instance = instance(None);
        Self::of(instance, disk, false, None)
    }

    fn of(instance: Arc<Instance>, disk: SimulatedDisk, has_saved: bool, target: Option<usize>) -> Self {
        let worker = Worker::new(Arc::clone(&instance));
        let (applier, writer) = (Applier::new(&instance), client(&instance));
        let mut node =
            Self { instance, worker, applier, writer, disk, has_saved, target: None, generation: 0, connects_at: 0 };
        node.follow(target);
        node
    }

    /// Follows another from now on, or none.
    pub(super) fn follow(&mut self, target: Option<usize>) {
        let address = target.map(|target| (format!("node{target}"), 1));
        let still = Still::stop(&self.instance.exclusive).expect("nobody is at work");
        if let Some(generation) = self.instance.replication.set_primary(&self.instance, address, &still) {
            self.generation = generation;
            self.applier = Applier::new(&self.instance);
        }
        self.target = target;
        self.connects_at = 0;
    }

    /// Saves what there is.
    pub(super) fn save(&mut self) {
        let bytes = snapshot::whole(&self.instance).expect("memory does not fail");
        self.disk.put(Path::new(FILE), &bytes);
        self.has_saved = true;
    }

    /// Takes another's snapshot for all data.
    pub(super) fn load(&mut self, bytes: &[u8], id: &str, offset: u64) -> Result<(), String> {
        let path = Path::new("/data/temp.rdb");
        self.disk.put(path, bytes);
        self.instance.replication.note_database(0);
        let alone = self.instance.exclusive.already_stopped();
        snapshot::load_in_place(&self.instance, &self.disk, path, &alone).map_err(|error| error.to_string())?;
        self.instance.replication.begin_as(&self.instance, id, offset, &alone);
        self.applier.begin();
        Ok(())
    }

    /// Starts again, from what was saved last.
    pub(super) fn restart(&mut self) {
        let instance = instance(self.target);
        if self.has_saved {
            snapshot::begin_from(&instance, &self.disk, Path::new(FILE)).expect("what was saved can be loaded");
        }
        let disk = std::mem::replace(&mut self.disk, SimulatedDisk::new(0));
        *self = Self::of(instance, disk, self.has_saved, self.target);
    }

    /// Its answer to its own client.
    pub(super) fn ask(&mut self, words: &[&str]) -> String {
        let mut bytes = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| bytes.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        let mut input = bytes.into_bytes();
        String::from_utf8_lossy(&serve(&self.worker, &mut self.writer, &mut input)).into_owned()
    }

    pub(super) fn offset(&self) -> u64 {
        self.instance.journal.offset()
    }

    /// Removes expired keys.
    pub(super) fn expire(&self, now: u64) {
        for database in self.instance.databases().iter().filter(|database| database.has_deadlines()) {
            (0..database.shards()).for_each(|shard| _ = database.expire_shard(shard, now, 64));
        }
    }
}

fn instance(target: Option<usize>) -> Arc<Instance> {
    let flags = ["--workers", "1", "--shards", "2", "--databases", "3", "--enable-debug-command", "yes"];
    let (config, _) = Config::load(&Launch::from_flags(&flags).unwrap(), std::iter::empty()).unwrap();
    let instance = Arc::new(Instance::new(Arc::new(config), &crate::commands::TABLE));
    if let Some(target) = target {
        instance.config.note(settings::REPLICAOF, &format!("node{target} 1"));
    }
    instance
}

/// Runs what a client has sent, and answers; stops behind a request for the stream.
pub(super) fn serve(worker: &Worker, client: &mut Client, input: &mut Vec<u8>) -> Vec<u8> {
    let limits = RequestLimits { max_bulk_len: 1 << 20, authenticated: true };
    let (mut reply, mut used) = (Reply::default(), 0);
    let mut answers = Vec::new();
    while !client.close && used < input.len() {
        let mut spans = Vec::new();
        let Ok(Some(end)) = Parser::default().parse(input, used, &mut spans, &limits) else { break };
        let args = Args::new(input, &spans);
        match admission::admit(worker, client, args) {
            Admission::Refuse(error, _) => reply.error(&error),
            admission @ (Admission::Run(_) | Admission::Queue(_)) => {
                let passed = dispatch::pass(worker, client, admission, args, &mut reply);
                assert!(matches!(passed, Passed::Done), "nothing waits here");
            }
            Admission::Wait(_) => panic!("nobody pauses"),
            Admission::Abort => panic!("nobody speaks HTTP"),
        }
        answers.extend_from_slice(&reply.to_vec());
        reply.clear();
        used = end;
    }
    input.drain(..used);
    answers
}

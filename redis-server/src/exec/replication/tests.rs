//! Role changes, and cuts, beside calls that are under way.

use std::thread;
use std::time::Duration;

use super::follow::tests::node::client;
use super::*;
use crate::clients::client::Client;
use crate::command::OwnedArgs;
use crate::config::Config;
use crate::config::Launch;
use crate::exec::core::{Call, Worker, resolve};
use crate::exec::run::admission::{self, Admission};
use crate::exec::run::dispatch;
use crate::exec::run::outcome::Passed;
use crate::protocol::{Parser, Reply, RequestLimits};

fn instance(flags: &[&str]) -> Arc<Instance> {
    let flags = [&["--workers", "1", "--shards", "2"], flags].concat();
    let (config, _) = Config::load(&Launch::from_flags(&flags).unwrap(), std::iter::empty()).unwrap();
    Arc::new(Instance::new(Arc::new(config), &crate::commands::TABLE))
}

fn words(line: &str) -> OwnedArgs {
    let words: Vec<_> = line.split(' ').collect();
    let mut bytes = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| bytes.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    let (mut spans, limits) = (Vec::new(), RequestLimits { max_bulk_len: 1 << 20, authenticated: true });
    Parser::default().parse(bytes.as_bytes(), 0, &mut spans, &limits).unwrap();
    Args::new(bytes.as_bytes(), &spans).to_owned()
}

struct Session {
    worker: Worker,
    client: Client,
}

impl Session {
    fn new(instance: &Arc<Instance>) -> Self {
        Self { worker: Worker::new(Arc::clone(instance)), client: client(instance) }
    }

    fn admit(&mut self, line: &str) -> Admission {
        admission::admit(&self.worker, &mut self.client, words(line).args())
    }

    fn pass(&mut self, admission: Admission, line: &str) -> String {
        let mut reply = Reply::default();
        let passed = dispatch::pass(&self.worker, &mut self.client, admission, words(line).args(), &mut reply);
        assert!(matches!(passed, Passed::Done), "{line}: {passed:?}");
        String::from_utf8_lossy(&reply.to_vec()).into_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        let admission = self.admit(line);
        self.pass(admission, line)
    }
}

/// Has the server follow another one, or none, without a thread for the link.
fn turn(instance: &Arc<Instance>, follows: bool) {
    let still = Still::stop(&instance.exclusive).expect("no slow call is at work");
    let target = follows.then(|| ("nowhere".to_owned(), 1));
    instance.replication.set_primary(instance, target, &still).expect("the role is another one");
}

/// A primary whose stream is kept, as it has had replicas.
fn primary(flags: &[&str]) -> Arc<Instance> {
    let instance = instance(flags);
    let still = Still::stop(&instance.exclusive).expect("nobody is at work");
    instance.replication.begin_stream(&instance, &still);
    drop(still);
    instance
}

/// Admission lets a write in, the server becomes a replica, and then the write's window opens. The write's changes would be in the data
/// and not in the stream, with which the server asks its new primary to go on: a silent difference for ever. A role change is alone, so
/// a window opens in front of it or behind it, never around it. A window that opens behind it looks again.
#[test]
fn a_write_that_was_admitted_before_a_role_change_changes_nothing_behind_it() {
    for line in ["SET k v", "RPUSH k v", "EVAL redis.call('SET','k','v') 0", "EXEC"] {
        let instance = primary(&[]);
        let mut session = Session::new(&instance);
        if line == "EXEC" {
            for line in ["MULTI", "SET k v"] {
                session.ask(line);
            }
        }
        let admission = session.admit(line);
        assert!(matches!(admission, Admission::Run(_)), "{line}");
        turn(&instance, true);
        let said = session.pass(admission, line);
        assert!(said.contains("READONLY") || said.contains("read only replica"), "{line}: {said}");
        assert!(instance.database(0).is_empty(), "{line}");
        assert_eq!(instance.journal.offset(), 0, "{line}");
        assert_eq!(session.ask("GET k"), "$-1\r\n", "{line}");
    }
}

/// The calls of a pipeline share a window; each is judged for itself.
#[test]
fn reads_of_a_window_run_whose_writes_are_refused() {
    let instance = primary(&[]);
    let mut session = Session::new(&instance);
    let lines = ["GET k", "SET k v", "GET k"].map(words);
    let row = |args: &OwnedArgs| resolve::find(&instance, args.args()).expect("a command");
    let calls = lines.each_ref().map(|args| Call { row: row(args), args: args.args() });
    turn(&instance, true);
    let mut reply = Reply::default();
    let (done, passed) = dispatch::run(&session.worker, &mut session.client, &calls, &mut reply);
    assert!(done == 3 && matches!(passed, Passed::Done));
    let said = String::from_utf8_lossy(&reply.to_vec()).into_owned();
    assert!(said.starts_with("$-1\r\n-READONLY ") && said.ends_with("\r\n$-1\r\n"), "{said}");
}

/// The changes of a transaction on either side of the role change that it makes are in the stream, or refused.
#[test]
fn a_transaction_may_change_the_role_in_its_middle() {
    let instance = primary(&[]);
    let mut session = Session::new(&instance);
    let mut reader = instance.journal.reader(|| {});
    let mut run = |lines: &[&str]| {
        let said: Vec<_> = lines.iter().map(|line| session.ask(line)).collect();
        let mut bytes = Vec::new();
        reader.take(&mut bytes, &mut Vec::new());
        (said.last().cloned().unwrap_or_default(), String::from_utf8_lossy(&bytes).into_owned())
    };
    let (said, stream) = run(&["MULTI", "SET a 1", "REPLICAOF 127.0.0.1 1", "SET b 2", "EXEC"]);
    assert!(said.starts_with("*3\r\n+OK\r\n+OK\r\n-READONLY "), "{said}");
    assert!(stream.contains("\r\na\r\n") && !stream.contains("\r\nb\r\n"), "{stream}");
    // Of a replica that takes writes.
    run(&["CONFIG SET replica-read-only no"]);
    let (said, stream) = run(&["MULTI", "REPLICAOF NO ONE", "SET c 3", "EXEC"]);
    assert_eq!(said, "*2\r\n+OK\r\n+OK\r\n");
    assert!(stream.contains("\r\nc\r\n"), "{stream}");
}

/// The offset up to which the old name is good is where the primary's stream ends, in front of all that this server says itself.
#[test]
fn a_promotion_waits_for_open_windows() {
    let instance = primary(&["--replica-read-only", "no"]);
    turn(&instance, true);
    let activity = instance.exclusive.activity();
    let inside = instance.exclusive.enter(&activity).expect("nobody is alone");
    thread::scope(|scope| {
        let promotion = scope.spawn(|| turn(&instance, false));
        thread::sleep(Duration::from_millis(20));
        assert!(instance.replication.is_replica() && !promotion.is_finished());
        drop(inside);
    });
    let ids = instance.replication.ids();
    assert_eq!(ids.second.map(|(_, offset)| offset), Some(instance.journal.offset()));
    Session::new(&instance).ask("SET own 1");
    assert!(instance.journal.offset() > 0);
}

/// The link has agreed with its primary when another role is taken: that primary's name is not this server's stream's.
#[test]
fn an_answer_of_a_primary_that_is_followed_no_more_names_nothing() {
    let instance = primary(&[]);
    turn(&instance, true);
    let generation = instance.replication.state().generation;
    turn(&instance, false);
    let before = instance.replication.ids();
    assert!(!instance.replication.go_on_as(&instance, Some("f".repeat(40)), generation));
    assert_eq!(instance.replication.ids(), before);
}

/// A part of a unit is in the data and not in the stream. A snapshot of that moment would say an offset from which the part comes again.
#[test]
fn bgsave_makes_its_cut_between_units() {
    let folder = tempfile::tempdir().unwrap();
    let instance = primary(&["--dir", folder.path().to_str().unwrap()]);
    turn(&instance, true);
    let unit = instance.exclusive.units.lock();
    thread::scope(|scope| {
        let saving = scope.spawn(|| Session::new(&instance).ask("BGSAVE"));
        thread::sleep(Duration::from_millis(20));
        assert!(instance.background.running().is_none(), "the unit is under way");
        drop(unit);
        assert_eq!(saving.join().unwrap(), "+Background saving started\r\n");
    });
    while instance.background.running().is_some() {
        thread::sleep(Duration::from_millis(1));
    }
}

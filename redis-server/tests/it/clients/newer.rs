//! Client libraries' own tests of commands that the genuine server is too old for: ours alone runs them, and what fails is named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::languages::{GLIDE_SUITE, GO_SUITE, PYTHON_SUITE};
use super::suites::{RETRIES, Results, Tests, Verdict, ginkgo, go_redis_verdict, passed, pytest, redis_py_verdict};
use crate::cluster::Node;
use crate::support::server::Server;
use crate::support::until;

/// Tests that our server runs.
pub(super) struct Newer {
    pub(super) tests: Tests,
    /// The server that they expect: its `compatibility`.
    pub(super) level: &'static str,
    /// Those that the library can be told.
    pub(super) protocols: &'static [&'static str],
    /// Whether they want a cluster, too: a node that has all slots.
    pub(super) cluster: bool,
    /// Tests that fail, and why. A name that ends with `*` stands for all that begin so, of which at least one fails.
    pub(super) known: &'static [(&'static str, &'static str)],
    /// Fewer tests than this that pass are no verdict: the suite has hardly run.
    pub(super) least: usize,
}

/// Those in `test_hash.py` that want a newer server than 7.0: they wait for fields to expire, most of the time.
const REDIS_PY_HASHES: Newer = Newer {
    tests: Tests {
        name: "redis-py, newer commands of hashes",
        kit: PYTHON_SUITE,
        command: |ports, protocol| newer_pytest(ports, protocol, "hash"),
        verdict: redis_py_verdict,
    },
    level: "8.0",
    protocols: &["2", "3"],
    cluster: false,
    known: &[],
    least: 45,
};

/// All others that want one.
const REDIS_PY: Newer = Newer {
    tests: Tests {
        name: "redis-py, other newer commands",
        kit: PYTHON_SUITE,
        command: |ports, protocol| {
            newer_pytest(
                ports,
                protocol,
                "commands pipeline pubsub keyspace_notifications connection encoding function",
            )
        },
        verdict: redis_py_verdict,
    },
    level: "8.0",
    protocols: &["2", "3"],
    cluster: false,
    known: &[
        ("tests/test_commands.py::TestRedisCommands::test_ar*", "arrays (AR…) of Redis 8.8 are no type of ours"),
        ("tests/test_commands.py::TestRedisCommands::test_lmovem", MOVE_MANY),
        ("tests/test_commands.py::TestRedisCommands::test_blmovem", MOVE_MANY),
        ("tests/test_commands.py::TestRedisCommands::test_sdiffcard", "SDIFFCARD is not supported"),
        ("tests/test_commands.py::TestRedisCommands::test_sunioncard", "SUNIONCARD is not supported"),
        ("tests/test_commands.py::TestRedisCommands::test_zinter_count", COUNTING),
        ("tests/test_commands.py::TestRedisCommands::test_zinterstore_count*", COUNTING),
        ("tests/test_commands.py::TestRedisCommands::test_zunion_count", COUNTING),
        ("tests/test_commands.py::TestRedisCommands::test_zunionstore_count*", COUNTING),
        ("tests/test_commands.py::TestRedisCommands::test_xgroup_create_entriesread_fixed_max_entries_read", AS_TOLD),
        ("tests/test_commands.py::TestRedisCommands::test_xgroup_setid_fixed_max_entries_read", AS_TOLD),
        ("tests/test_commands.py::TestRedisCommands::test_xnack*", "XNACK is not supported"),
        ("tests/test_commands.py::TestRedisCommands::test_xread_with_max_*", BOUNDED),
        ("tests/test_commands.py::TestRedisCommands::test_xread_max_count_cumulative_across_streams", BOUNDED),
        ("tests/test_commands.py::TestRedisCommands::test_xreadgroup_with_max_count", BOUNDED),
        ("tests/test_commands.py::TestRedisCommands::test_xreadgroup_max_count_cumulative_across_streams", BOUNDED),
        ("tests/test_commands.py::TestRedisCommands::test_xinfo_stream_idempotent_fields", PRODUCERS),
        ("tests/test_keyspace_notifications.py::TestSubkeyNotifications::*", "there are no events of fields"),
    ],
    least: 90,
};

const PRODUCERS: &str =
    "XINFO STREAM has the fields of 8.0, as compatibility 8.0 says; those of producers came with 8.6";
const MOVE_MANY: &str = "LMOVEM and BLMOVEM are not supported";
const COUNTING: &str = "AGGREGATE COUNT is not supported";
const AS_TOLD: &str = "ENTRIESREAD is taken as it is told, as by Redis until 8.2.1";
const BOUNDED: &str = "MAXCOUNT and MAXSIZE of XREAD and XREADGROUP are not supported";

const GO_REDIS: Newer = Newer {
    tests: Tests { name: "go-redis, newer commands", kit: GO_SUITE, command: newer_ginkgo, verdict: go_redis_verdict },
    level: "8.0",
    protocols: &["2", "3"],
    cluster: false,
    known: &[("Commands streams xinfo should XINFO STREAM", PRODUCERS)],
    least: 125,
};

const GLIDE: Newer = Newer {
    tests: Tests { name: "valkey-glide", kit: GLIDE_SUITE, command: glide_command, verdict: glide_verdict },
    level: "valkey-9",
    // The library chooses this protocol itself.
    protocols: &["3"],
    cluster: true,
    known: &[],
    least: 80,
};

/// redis-py's tests in these files that its plugin, `newer.py`, has marked.
fn newer_pytest(ports: &[u16], protocol: &str, files: &str) -> Command {
    let mut pytest = pytest(ports, protocol, "newer and not redismod", files);
    pytest.env("PYTHONPATH", "..").args(["-p", "newer"]);
    pytest
}

/// By the commands' names, which stand in those of the tests, and these behind the suite's.
const GO_REDIS_TESTS: &str = "\
    ^go-redis (Commands (hashes should (HP?Expire|HP?TTL|HPersist|HGET|HSETEX|return nil responses for HGETDEL)\
    |strings should (BitOp(Diff|AndOr|One)|DelExArgs|(use )?Digest|IncrEX|MSetEX|SetArgs with IF|SetIF)\
    |streams (group should XReadGroup|should (XAckDel|XAdd|XCfgSet|XDelEx|XRead LastEntry|XTrim)|xinfo should)\
    |server should (ClientKill|ClientSetInfo|ClientInfo|ClientList)|scanning should HScan|Geo |Latency )\
    |HotKeys|ScanIterator should hscan)";

fn newer_ginkgo(ports: &[u16], protocol: &str) -> Command {
    // Of whatever version of Redis 8.
    let mut suite = ginkgo(ports, protocol, "8.99");
    suite.args(["-test.run", "^TestGinkgoSuite", "-ginkgo.focus", GO_REDIS_TESTS]);
    suite
}

/// By the names of commands, too. Others of the suite's tests want replicas, zones, modules, files beside them or minutes.
const GLIDE_TESTS: &str = "\
    ^Test(H[DEGPST]|SetWithOptions_Only|BitOp|Geo|Latency|X(Add|Del|Trim|Info|Group|Ack)\
    |(Cluster)?Register|Client(Id|Set|Get)|ClusterClientGet|(Cluster)?CustomCommand.*Info)";

fn glide_command(ports: &[u16], _: &str) -> Command {
    let [single, cluster] = *ports else { panic!("it wants a cluster") };
    let mut suite = Command::new("./suite");
    suite
        .args(["-test.v", "-test.run", "^TestGlideTestSuite$", "-testify.m", GLIDE_TESTS])
        .arg(format!("-standalone-endpoints=127.0.0.1:{single}"))
        .arg(format!("-cluster-endpoints=127.0.0.1:{cluster}"));
    suite
}

/// Reads `    --- PASS: TestGlideTestSuite/TestName (0.00s)`, and not its parts, which stand further to the right.
fn glide_verdict(line: &str) -> Option<Verdict> {
    let (state, name) = line.strip_prefix("    --- ")?.split_once(": TestGlideTestSuite/")?;
    let name = name.split(' ').next()?.to_owned();
    match state {
        "PASS" => Some((name, Ok(()))),
        "FAIL" => Some((name, Err("fails".to_owned()))),
        _ => None,
    }
}

impl Newer {
    /// Runs them with servers of their own.
    fn run(&self, folder: &Path, protocol: &str) -> Results {
        let level = ("compatibility", self.level);
        // Its clients say SAVE, too.
        let single = Server::with(&[level, ("dir", folder.to_str().unwrap())]);
        let mut ports = vec![single.addr.port()];
        let node = self.cluster.then(|| Node::start("newer", &[level, ("enable-debug-command", "yes")]));
        if let Some(node) = &node {
            node.ask("CLUSTER ADDSLOTSRANGE 0 16383");
            until("the node serves", || node.says("CLUSTER INFO", "cluster_state:ok"));
            ports.push(node.port.parse().unwrap());
        }
        self.tests.run(folder, &ports, protocol)
    }

    /// Unknown failures, and names in `known` that no longer apply: complaints by name.
    #[track_caller]
    fn complaints(&self, protocol: &str, results: &Results) -> Results {
        let (name, all) = (self.tests.name, passed(results));
        println!("{name}, RESP{protocol}: {all} of {} pass", results.len());
        assert!(all >= self.least, "the suite has not run: {results:?}");
        let stands_for = |known: &str, name: &str| match known.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == known,
        };
        let mut untrue: BTreeSet<_> = self.known.iter().map(|(known, _)| *known).collect();
        let mut complaints = Results::new();
        for (name, result) in results.iter().filter(|(_, result)| result.is_err()) {
            match self.known.iter().find(|(known, _)| stands_for(known, name)) {
                Some((known, _)) => _ = untrue.remove(known),
                None => _ = complaints.insert(name.clone(), result.clone()),
            }
        }
        complaints.extend(untrue.into_iter().map(|name| (name.to_owned(), Err("fails no longer".to_owned()))));
        complaints
    }
}

/// Tests, the folder that they are in, and a protocol.
pub(super) type Run<'n> = (&'n Newer, PathBuf, &'static str);

/// Runs tests, and those again that fail and are not known to.
pub(super) fn check(runs: &[Run<'_>]) {
    thread::scope(|scope| {
        // Each run sleeps most of its time: all of them take little longer than one.
        let started = runs.iter().map(|(newer, folder, protocol)| scope.spawn(move || newer.run(folder, protocol)));
        let started: Vec<_> = started.collect();
        for ((newer, folder, protocol), run) in runs.iter().zip(started) {
            let mut complaints = newer.complaints(protocol, &run.join().unwrap());
            // A random failure, under the load of all other tests, does not repeat each time.
            for _ in 0..RETRIES {
                if complaints.is_empty() {
                    break;
                }
                println!("once more, because of {complaints:?}");
                let again = newer.complaints(protocol, &newer.run(folder, protocol));
                complaints.retain(|name, _| again.contains_key(name));
            }
            assert!(complaints.is_empty(), "{}, RESP{protocol}: {complaints:#?}", newer.tests.name);
        }
    });
}

#[test]
fn own_tests_of_newer_commands() {
    let all = [REDIS_PY_HASHES, REDIS_PY, GO_REDIS, GLIDE];
    let installed = all.iter().filter_map(|newer| Some((newer, newer.tests.installed()?)));
    let runs: Vec<Run<'_>> = installed
        .flat_map(|(newer, folder)| newer.protocols.iter().map(move |protocol| (newer, folder.clone(), *protocol)))
        .collect();
    check(&runs);
}

//! Client libraries' own integration tests, by the genuine server and by ours: what passes there passes here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, Scope, ScopedJoinHandle};

use test_peers::{Kit, run_within};

use super::languages::{GO_SUITE, PYTHON_SUITE};
use crate::support::genuine::Genuine;
use crate::support::server::Server;

/// A test's name and what it complains of.
pub(super) type Verdict = (String, Result<(), String>);

/// Tests of a library.
pub(super) struct Tests {
    pub(super) name: &'static str,
    pub(super) kit: Kit,
    /// The program that runs them on these ports, in a protocol. There is one, and a second of a cluster if they want a cluster, too.
    pub(super) command: fn(ports: &[u16], protocol: &str) -> Command,
    /// Reads a line of what it prints.
    pub(super) verdict: fn(line: &str) -> Option<Verdict>,
}

/// Tests that both servers run.
struct Suite {
    tests: Tests,
    /// Whether the genuine server needs RedisJSON and RedisBloom.
    modules: bool,
    /// Tests that the genuine server passes and ours does not, and why.
    known: &'static [(&'static str, &'static str)],
    /// Fewer tests than this that the genuine server passes are no verdict: the suite has hardly run.
    least: usize,
}

const GO_REDIS: Suite = Suite {
    tests: Tests { name: "go-redis", kit: GO_SUITE, command: go_redis_command, verdict: go_redis_verdict },
    modules: false,
    known: &[],
    least: 530,
};

const REDIS_PY: Suite = Suite {
    tests: Tests { name: "redis-py", kit: PYTHON_SUITE, command: redis_py_command, verdict: redis_py_verdict },
    modules: false,
    known: &[],
    least: 620,
};

/// Its tests of JSON and of probabilistic structures, of which Bloom filters are ours.
const REDIS_PY_MODULES: Suite = Suite {
    tests: Tests {
        name: "redis-py, modules",
        kit: PYTHON_SUITE,
        command: redis_py_modules_command,
        verdict: redis_py_verdict,
    },
    modules: true,
    known: &[
        ("tests/test_bloom.py::test_create", CUCKOO),
        ("tests/test_bloom.py::test_bf_reserve", CUCKOO),
        ("tests/test_bloom.py::test_cf_add_and_insert", CUCKOO),
        ("tests/test_bloom.py::test_cf_exists_and_del", CUCKOO),
        ("tests/test_bloom.py::test_cms", COUNT_MIN),
        ("tests/test_bloom.py::test_cms_merge", COUNT_MIN),
        ("tests/test_bloom.py::test_topk", TOP_K),
        ("tests/test_bloom.py::test_topk_incrby", TOP_K),
        ("tests/test_bloom.py::test_topk_list_with_special_words", TOP_K),
        ("tests/test_bloom.py::test_tdigest_create", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_reset", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_merge", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_min_and_max", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_quantile", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_cdf", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_trimmed_mean", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_rank", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_revrank", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_byrank", T_DIGEST),
        ("tests/test_bloom.py::test_tdigest_byrevrank", T_DIGEST),
    ],
    least: 60,
};

/// Types that this server lacks.
const CUCKOO: &str = "CF.* is not supported";
const COUNT_MIN: &str = "CMS.* is not supported";
const TOP_K: &str = "TOPK.* is not supported";
const T_DIGEST: &str = "TDIGEST.* is not supported";

/// Its tests of search, by ours alone: the genuine module needs a newer Redis than Debian has.
const REDIS_PY_SEARCH: Tests =
    Tests { name: "redis-py, search", kit: PYTHON_SUITE, command: redis_py_search_command, verdict: redis_py_verdict };

/// Tests of search that ours does not pass, and why. RediSearch 2.10.5 passes them.
const SEARCH_KNOWN: &[(&str, &str)] = &[];

/// Fewer tests of search than this are no verdict.
const SEARCH_LEAST: usize = 60;

/// Bound of one run: a minute, nearly all of it the sleep of tests, and patience for a busy machine.
const SECONDS: u32 = 600;

/// Files with tests of what is no single server of Redis 7, or of no server at all.
const OTHER_FILES: &str =
    "osscluster_|ring_|sentinel_|search_|json_|probabilistic_|timeseries_|vectorset_|internal_|options_";
/// Such tests in other files; the credentials are shown to whatever listens on port 6379.
const OTHER_TESTS: &str = "[cC]luster|failover|Credentials Provider Priority";
/// Its example panics where CLIENT has no SETINFO, and takes all examples behind it along.
const OTHER_EXAMPLES: &str = "setInfo";

fn go_redis_command(ports: &[u16], protocol: &str) -> Command {
    let mut suite = ginkgo(ports, protocol, "7.0");
    suite.args(["-test.run", "^(TestGinkgoSuite|Example)", "-test.skip", OTHER_EXAMPLES]).args([
        "-ginkgo.skip-file",
        OTHER_FILES,
        "-ginkgo.skip",
        OTHER_TESTS,
    ]);
    suite
}

/// go-redis' tests, told that the server is of this version.
pub(super) fn ginkgo(ports: &[u16], protocol: &str, version: &str) -> Command {
    let mut suite = Command::new("./suite");
    suite
        // A fixed order. Failed tests run once more: many tests measure time, or wait a little and look.
        .args(["-test.v", "-ginkgo.no-color", "-ginkgo.seed", "1", "-ginkgo.flake-attempts", "2"])
        .env("SERVER_PORT", ports[0].to_string())
        .env("SERVER_PROTOCOL", protocol)
        .env("RE_CLUSTER", "true")
        .env("REDIS_VERSION", version);
    suite
}

/// Reads `passed<tab>name<tab>message`, as hook_test.go prints it, and `--- PASS: ExampleName (0.00s)`.
pub(super) fn go_redis_verdict(line: &str) -> Option<Verdict> {
    if let Some((state, name)) = line.strip_prefix("--- ").and_then(|line| line.split_once(": Example")) {
        let name = format!("Example{}", name.split(' ').next().unwrap_or(name));
        return Some((name, if state == "PASS" { Ok(()) } else { Err("prints something else".to_owned()) }));
    }
    let [state, name, message] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
    match state {
        "passed" => Some((name.to_owned(), Ok(()))),
        "failed" | "panicked" | "timedout" | "interrupted" | "aborted" => {
            Some((name.to_owned(), Err(message.to_owned())))
        }
        _ => None,
    }
}

fn redis_py_command(ports: &[u16], protocol: &str) -> Command {
    // Files with tests of what a single server without modules does.
    let files = "commands pipeline pubsub scripting lock encoding function hash monitor";
    pytest(ports, protocol, "not redismod", files)
}

fn redis_py_modules_command(ports: &[u16], protocol: &str) -> Command {
    let mut pytest = pytest(ports, protocol, "redismod", "json bloom");
    pytest.arg(format!("--redis-mod-url=redis://localhost:{}/0", ports[0]));
    pytest
}

fn redis_py_search_command(ports: &[u16], protocol: &str) -> Command {
    let mut pytest = pytest(ports, protocol, "redismod", "search");
    pytest.arg(format!("--redis-mod-url=redis://localhost:{}/0", ports[0]));
    pytest
}

/// Runs those of redis-py's tests in these files that have these marks and want neither a cluster, nor a replica, nor credentials.
pub(super) fn pytest(ports: &[u16], protocol: &str, marks: &str, files: &str) -> Command {
    let mut pytest = Command::new("../venv/bin/python");
    let marks = format!("{marks} and not onlycluster and not replica and not cp_integration");
    pytest
        .args(["-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore", "-m", &marks])
        .arg(format!("--redis-url=redis://localhost:{}/9", ports[0]))
        .arg(format!("--protocol={protocol}"))
        // A line is not cut at the width of a terminal.
        .env("COLUMNS", "1000")
        .args(files.split(' ').map(|name| format!("tests/test_{name}.py")));
    pytest
}

/// Reads `PASSED tests/file.py::Class::name`, `FAILED tests/file.py::Class::name - message`.
pub(super) fn redis_py_verdict(line: &str) -> Option<Verdict> {
    let (state, rest) = line.split_once(' ').filter(|(_, rest)| rest.starts_with("tests/"))?;
    let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
    match state {
        "PASSED" => Some((name.to_owned(), Ok(()))),
        "FAILED" | "ERROR" => Some((name.to_owned(), Err(message.to_owned()))),
        _ => None,
    }
}

/// How often a run is repeated that differs.
pub(super) const RETRIES: usize = 3;

/// The results of the tests, by name; an error is the test's message.
pub(super) type Results = BTreeMap<String, Result<(), String>>;

/// A run with the genuine server and one with ours.
type Pair<'s> = [ScopedJoinHandle<'s, Results>; 2];

impl Tests {
    /// The folder where they are installed.
    #[track_caller]
    pub(super) fn installed(&self) -> Option<PathBuf> {
        Some(self.kit.installed()?.join("suite"))
    }

    /// Runs them in that folder.
    pub(super) fn run(&self, folder: &Path, ports: &[u16], protocol: &str) -> Results {
        let mut command = (self.command)(ports, protocol);
        // Some tests fail on a genuine server too: the status says nothing.
        let output = run_within(SECONDS, command.current_dir(folder)).unwrap();
        let mut results = Results::new();
        for (name, result) in String::from_utf8_lossy(&output.stdout).lines().filter_map(self.verdict) {
            // Of several tests with a name all must pass.
            let all = results.entry(name).or_insert(Ok(()));
            if result.is_err() {
                *all = result;
            }
        }
        results
    }
}

/// How many have passed.
pub(super) fn passed(results: &Results) -> usize {
    results.values().filter(|result| result.is_ok()).count()
}

impl Suite {
    /// Both servers' results, genuine ones first; nothing where no genuine server is installed.
    fn pair<'s>(&'s self, scope: &'s Scope<'s, '_>, folder: &'s Path, protocol: &'static str) -> Option<Pair<'s>> {
        let mut genuine = if self.modules { Genuine::with_modules(&[])? } else { Genuine::start(&[])? };
        let genuine = scope.spawn(move || self.tests.run(folder, &[genuine.listen().port()], protocol));
        // Its clients say SAVE, too.
        let settings = [("dir", folder.to_str().unwrap())];
        let ours = scope.spawn(move || self.tests.run(folder, &[Server::with(&settings).addr.port()], protocol));
        Some([genuine, ours])
    }

    /// Results of the genuine server that differ from ours, and names in `known` that no longer apply: complaints by name.
    #[track_caller]
    fn differences(&self, protocol: &str, pair: Pair<'_>) -> Results {
        let [genuine, ours] = pair.map(|run| run.join().unwrap());
        let (theirs, all) = (passed(&genuine), passed(&ours));
        println!("{}, RESP{protocol}: {theirs} pass with redis-server, {all} with ours", self.tests.name);
        assert!(theirs >= self.least, "the suite has not run: {genuine:?}");
        let mut differences = Results::new();
        for name in genuine.into_iter().filter(|(_, result)| result.is_ok()).map(|(name, _)| name) {
            let is_known = self.known.iter().any(|(known, _)| *known == name);
            let complaint = match ours.get(&name) {
                Some(Ok(())) if is_known => "passes, it is known no longer",
                Some(Err(message)) if !is_known => message,
                None => "did not run",
                Some(_) => continue,
            };
            let complaint = Err(complaint.to_owned());
            differences.insert(name, complaint);
        }
        differences
    }

    fn check(&self) {
        let Some(folder) = &self.tests.installed() else { return };
        thread::scope(|scope| {
            // Each run sleeps most of its time: all of them take little longer than one.
            let start = |protocol| Some((protocol, self.pair(scope, folder, protocol)?));
            let runs: Vec<_> = ["2", "3"].into_iter().map_while(start).collect();
            for (protocol, pair) in runs {
                let mut differences = self.differences(protocol, pair);
                // Many tests measure time, or wait a little and look: what differs by chance, with all other tests beside, does not
                // do so each time.
                for _ in 0..RETRIES {
                    if differences.is_empty() {
                        break;
                    }
                    println!("once more, because of {differences:?}");
                    let again = self.pair(scope, folder, protocol).expect("it was there a moment ago");
                    let again = self.differences(protocol, again);
                    differences.retain(|name, _| again.contains_key(name));
                }
                assert!(differences.is_empty(), "{}, RESP{protocol}: {differences:#?}", self.tests.name);
            }
        });
    }
}

#[test]
fn go_redis_own_tests() {
    GO_REDIS.check();
}

#[test]
fn redis_py_own_tests() {
    REDIS_PY.check();
}

#[test]
fn redis_py_own_tests_of_json_and_bloom_filters() {
    REDIS_PY_MODULES.check();
}

#[test]
fn redis_py_own_tests_of_search() {
    let Some(folder) = &REDIS_PY_SEARCH.installed() else { return };
    let run = &|protocol: &str| {
        // The module wants a server with that version's replies.
        let settings = [("dir", folder.to_str().unwrap()), ("compatibility", "7.2")];
        let server = Server::with(&settings);
        let results = REDIS_PY_SEARCH.run(folder, &[server.addr.port()], protocol);
        println!("{}, RESP{protocol}: {} pass", REDIS_PY_SEARCH.name, passed(&results));
        assert!(passed(&results) >= SEARCH_LEAST, "the suite has not run: {results:?}");
        let known = |name: &str| SEARCH_KNOWN.iter().any(|(known, _)| name.ends_with(known));
        // These make clients of their own, which `--protocol=3` confuses with any server.
        let is_confused = |name: &str| protocol == "3" && name.ends_with("[default-resp3]");
        let wrong = results.into_iter().filter(|(name, result)| result.is_ok() == known(name) && !is_confused(name));
        wrong.collect::<Results>()
    };
    // Each run sleeps most of its time.
    thread::scope(|scope| {
        for started in ["2", "3"].map(|protocol| scope.spawn(move || (protocol, run(protocol)))) {
            let (protocol, mut wrong) = started.join().unwrap();
            for _ in 0..RETRIES {
                if wrong.is_empty() {
                    break;
                }
                println!("once more, because of {wrong:?}");
                let again = run(protocol);
                wrong.retain(|name, _| again.contains_key(name));
            }
            assert!(wrong.is_empty(), "RESP{protocol}: fail, or pass and are known to fail: {wrong:#?}");
        }
    });
}

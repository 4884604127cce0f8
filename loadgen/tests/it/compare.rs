//! `loadgen compare`, `report` and `gate` as a user calls them, against genuine servers, and the page in a genuine browser.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use loadgen::compare::{Record, Run};
use test_peers::{chromium, is_there, printed};

/// A folder that is removed when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadgen-it-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn loadgen(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(arguments).current_dir(&folder.0).stdin(Stdio::null());
    command
}

#[track_caller]
fn run(folder: &Folder, arguments: &[&str]) -> Output {
    let output = loadgen(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}

/// Twice the same server under two names, and one that is not there.
const REDIS: &str = r#"
title = "Redis and <itself>"
rounds = 2
warm-up-rounds = 0

[[subject]]
name = "redis"
version = "redis-server --version"
start = "redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly no"
ready = "redis"
stop = "redis-cli -p {port} shutdown nosave"

[[subject]]
name = "again"
start = "redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly no"
ready = "command: redis-cli -p {port} ping"

[[subject]]
name = "absent"
install = "a hint"
start = "a-server-that-is-not-there --port {port}"

[[scenario]]
name = "GET"
command = "redis -c 4 -d 300ms --warm-up 100ms -r 1000 --verify GET key:{key}"
prepare = "redis -c 1 -n 1000 -r 1000 --key-choice sequential SET key:{key} {value}"
"#;

#[test]
fn a_comparison_makes_record_tables_and_page() {
    if !is_there("redis-server") || !is_there("redis-cli") {
        return;
    }
    let folder = Folder::new("compare");
    folder.file("plan.toml", REDIS);
    run(&folder, &["compare", "plan.toml", "-o", "a", "--quiet"]);
    let record = Record::read(&folder.0.join("a.jsonl")).unwrap();
    assert!(record.end.as_ref().is_some_and(|end| end.complete) && record.failed.is_empty(), "{record:?}");
    let order: Vec<(&str, usize)> = record.runs.iter().map(|run| (run.subject.as_str(), run.round)).collect();
    assert_eq!(order, [("redis", 0), ("again", 0), ("again", 1), ("redis", 1)]);
    for Run { outcome, .. } in &record.runs {
        assert!(outcome.answers() > 0 && outcome.failed() == 0, "{outcome:?}");
        assert!(outcome.server_cpu_micros().is_some_and(|micros| micros > 0.0), "{outcome:?}");
    }
    let redis = &record.header.subjects[0];
    assert!(redis.version.as_ref().is_some_and(|version| version.contains("v=")), "{redis:?}");
    assert!(record.header.subjects[2].absent.is_some());

    let markdown = fs::read_to_string(folder.0.join("a.md")).unwrap();
    for part in ["# Redis and \\<itself>", "| redis | 2 |", "| again | 2 |", "absent: there is no program"] {
        assert!(markdown.contains(part), "`{part}` is not in:\n{markdown}");
    }
    // Other tests run at the same time: rounds that they have disturbed make no ratio.
    let disturbed = markdown.matches("disturbed: other programs").count() > 0;
    assert!(markdown.contains("| ratio to redis | again |") || disturbed, "neither ratio nor why not:\n{markdown}");
    // The same again, from the record alone.
    run(&folder, &["report", "a.jsonl", "--html", "b.html", "--markdown", "b.md"]);
    for extension in ["md", "html"] {
        let read = |name: &str| fs::read(folder.0.join(format!("{name}.{extension}"))).unwrap();
        assert_eq!(read("a"), read("b"), "{extension}");
    }
    look_at(&folder, "a.html");

    let gate = |arguments: &[&str]| {
        let output = loadgen(&folder, &[&["gate", "--baseline", "a.jsonl"], arguments].concat()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = gate(&["a.jsonl", "--metric", "throughput"]);
    assert!(
        code == Some(4) && text.contains("inconclusive    GET: redis: throughput") && text.contains("5 are needed"),
        "{code:?} {text}"
    );
}

/// redis-benchmark as the load, and as what is compared.
const PROGRAMS: &str = r#"
title = "programs"
rounds = 1
warm-up-rounds = 0

[[subject]]
name = "redis"
start = "redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly no"
ready = "redis"

[[subject]]
name = "redis-benchmark"
check = "redis-benchmark --version"

[[subject]]
name = "loadgen"
check = "true"

[[target]]
name = "server"
start = "redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly no"
ready = "redis"

[[scenario]]
name = "asked"
program = "redis-benchmark --csv -p {port} -t set -n 20000"

[[scenario]]
name = "asking"
target = "server"
[scenario.programs]
redis-benchmark = "redis-benchmark --csv -p {port} -t set -n 20000"
loadgen = "LOADGEN redis 127.0.0.1:{port} -c 50 -t 1 -n 20000 --json - --quiet SET a b"
"#;

#[test]
fn genuine_programs_ask_and_are_compared() {
    if !is_there("redis-server") || !is_there("redis-benchmark") {
        return;
    }
    let folder = Folder::new("programs");
    folder.file("plan.toml", &PROGRAMS.replace("LOADGEN", env!("CARGO_BIN_EXE_loadgen")));
    run(&folder, &["compare", "plan.toml", "-o", "a", "--quiet"]);
    let record = Record::read(&folder.0.join("a.jsonl")).unwrap();
    assert!(record.failed.is_empty(), "{:?}", record.failed);
    let mut subjects: Vec<&str> = record.runs.iter().map(|run| run.subject.as_str()).collect();
    subjects.sort_unstable();
    assert_eq!(subjects, ["loadgen", "redis", "redis-benchmark"]);
    for Run { outcome, .. } in &record.runs {
        let told = outcome.told.unwrap();
        assert!(told.answers == 20_000 && told.p99 >= told.p50 && told.p50 > Some(0.0), "{outcome:?}");
        assert!(outcome.per_second() > 0.0 && outcome.server_cpu_micros() > Some(0.0), "{outcome:?}");
        assert!(outcome.generator.cpu.total() > 0.0, "{outcome:?}");
    }
}

/// Opens a page in a browser: its charts must be drawn, in light and in dark.
fn look_at(folder: &Folder, page: &str) {
    if !is_there("chromium") {
        return;
    }
    let address = format!("file://{}", folder.0.join(page).display());
    let dom = printed(chromium(&folder.0).args(["--dump-dom", &address]));
    assert!(dom.matches("<svg").count() >= 5 && dom.matches("class=\"whisker\"").count() >= 12, "{dom}");
    for (name, scheme, colours) in [
        (
            "light.png",
            "--blink-settings=preferredColorScheme=1",
            [[0xff, 0xff, 0xff], [0x25, 0x63, 0xb8], [0xc8, 0x50, 0x1e]],
        ),
        (
            "dark.png",
            "--blink-settings=preferredColorScheme=0",
            [[0x15, 0x18, 0x1c], [0x6e, 0xa8, 0xff], [0xff, 0x94, 0x66]],
        ),
    ] {
        let path = folder.0.join(name);
        let shot = format!("--screenshot={}", path.display());
        let mut browser = chromium(&folder.0);
        let _ = printed(browser.args(["--window-size=1000,1800", "--hide-scrollbars", scheme, &shot, &address]));
        let pixels = pixels(&path);
        for colour in colours {
            // A bar alone has more than 20 × 100 pixels.
            let count = pixels.iter().filter(|pixel| **pixel == colour).count();
            assert!(count > 2000, "{name}: {count} pixels have the colour {colour:02x?}");
        }
        if let Some(kept) = std::env::var_os("KEEP_SCREENSHOTS") {
            fs::copy(&path, Path::new(&kept).join(name)).unwrap();
        }
    }
}

fn wait(child: &mut std::process::Child, limit: Duration) -> std::process::ExitStatus {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it does not end within {limit:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Red, green and blue of every pixel of a picture.
fn pixels(path: &Path) -> Vec<[u8; 3]> {
    let mut reader = png::Decoder::new(std::io::BufReader::new(File::open(path).unwrap())).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(frame.bit_depth, png::BitDepth::Eight);
    bytes[..frame.buffer_size()]
        .chunks_exact(frame.color_type.samples())
        .map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect()
}

#[test]
fn ctrl_c_ends_servers_and_keeps_the_results() {
    if !is_there("redis-server") {
        return;
    }
    let folder = Folder::new("interrupt");
    let plan = REDIS.replace("rounds = 2", "rounds = 1000").replace("-d 300ms", "-d 50ms").replace("stop = ", "# ");
    let plan = plan.replace("warm-up-rounds", "servers = \"kept\"\nwarm-up-rounds");
    folder.file("plan.toml", &plan.replace("command: redis-cli -p {port} ping", "redis"));
    let mut child =
        loadgen(&folder, &["compare", "plan.toml", "-o", "a", "--quiet"]).stdout(Stdio::null()).spawn().unwrap();
    let record = folder.0.join("a.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    let lines = || fs::read_to_string(&record).unwrap_or_default().lines().count();
    while lines() < 4 {
        assert!(Instant::now() < deadline, "nothing happens");
        thread::sleep(Duration::from_millis(20));
    }
    let servers = servers_below(child.id());
    assert_eq!(servers.len(), 2, "{servers:?}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(wait(&mut child, Duration::from_secs(60)).code(), Some(130));
    for pid in servers {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "server {pid} is left behind");
    }
    let record = Record::read(&record).unwrap();
    assert!(record.runs.len() >= 3 && record.end.is_some_and(|end| !end.complete));
    let markdown = fs::read_to_string(folder.0.join("a.md")).unwrap();
    assert!(markdown.contains("The comparison was interrupted"), "{markdown}");
    assert!(folder.0.join("a.html").exists());
}

/// The children of a process' threads.
fn servers_below(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let children = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    children.flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

#[test]
fn invalid_plans_are_refused_before_anything_starts() {
    let folder = Folder::new("wrong");
    let check = |from: &str, to: &str, expected: &[&str]| {
        folder.file("plan.toml", &REDIS.replacen(from, to, 1));
        let output = loadgen(&folder, &["compare", "plan.toml", "-o", "a"]).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        for part in expected {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
        assert!(!folder.0.join("a.jsonl").exists());
    };
    check("rounds = 2", "rounds = 0", &["plan.toml", "`rounds`", "expected 1 to 1000"]);
    check("-d 300ms", "-d soon", &["scenario GET", "'soon'", "--duration", "expected a time"]);
    check("\"redis -c 4", "\"rediss -c 4", &["scenario GET", "rediss"]);
    check("[[subject]]", "[[subjekt]]", &["unknown field `subjekt`", "`subject`"]);
    let missing = loadgen(&folder, &["compare", "missing.toml"]).output().unwrap();
    assert!(String::from_utf8(missing.stderr).unwrap().contains("cannot read missing.toml"));
    let no_record = loadgen(&folder, &["report", "plan.toml"]).output().unwrap();
    assert_eq!(no_record.status.code(), Some(1));
    assert!(String::from_utf8(no_record.stderr).unwrap().contains("expected a comparison's record"));
}

#[test]
#[ignore = "takes half a minute, and a machine that does nothing else"]
fn the_same_plan_twice_gives_overlapping_intervals() {
    if !is_there("redis-server") || !is_there("redis-cli") {
        return;
    }
    let folder = Folder::new("twice");
    folder.file("plan.toml", &REDIS.replace("rounds = 2", "rounds = 10").replace("warm-up-rounds = 0", ""));
    let intervals = ["a", "b"].map(|name| {
        run(&folder, &["compare", "plan.toml", "-o", name, "--quiet"]);
        let record = Record::read(&folder.0.join(format!("{name}.jsonl"))).unwrap();
        let rate = |subject: &str| -> Vec<f64> {
            let mut runs: Vec<&Run> = record.runs.iter().filter(|run| run.subject == subject).collect();
            runs.sort_by_key(|run| run.round);
            runs.iter().map(|run| run.outcome.per_second()).collect()
        };
        let pairs: Vec<(f64, f64)> = rate("again").into_iter().zip(rate("redis")).collect();
        loadgen::compare::stats::paired_ratio(&pairs).unwrap().among(1)
    });
    println!("{intervals:?}");
    let [a, b] = intervals;
    assert!(a.low <= b.high && b.low <= a.high, "{a:?} {b:?}");
    assert!(a.low <= 1.05 && a.high >= 0.95, "a server is as fast as itself: {a:?}");
}

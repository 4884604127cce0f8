//! Every gate, quiet where all is well.

mod machete;
mod program;
mod races;
mod second_try;
mod selection;

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use self::program::{Lab, Xtask};
use self::second_try::SecondTry;
use self::selection::{Gate, Selection};

/// Lines of a panic that are reported.
const PANIC_LINES: usize = 20;

/// Redis' own suite, and the parts of it that full runs have besides.
const SUITES: [(&str, &[&str]); 8] = [
    ("suite", &[]),
    ("suite-spawn", &["--spawn"]),
    ("suite-cluster", &["--cluster"]),
    ("suite-cluster-mixed", &["--cluster", "--mixed"]),
    ("suite-search", &["--search"]),
    ("suite-valkey-search", &["--valkey-search"]),
    ("suite-sentinel", &["--sentinel"]),
    ("suite-sentinel-mixed", &["--sentinel", "--mixed"]),
];

/// Unit tests that tests leave out because they take minutes.
const SIMULATIONS: [&str; 3] = ["simulation::ten_thousand", "simulation::moves", "machine::tests::mutation"];

/// Tests of programs of others, which tests leave out because they take minutes.
const APPLICATIONS: [&str; 10] = [
    "test",
    "--package",
    "redis-server",
    "--test",
    "it",
    "--",
    "--ignored",
    "applications::",
    "stores::",
    "vector_sets::suite",
];

/// Options of `cargo xtask ci`.
#[derive(Args)]
pub(crate) struct Options {
    /// Leave out Redis' own suite.
    #[arg(long)]
    no_suite: bool,
    /// Run what takes long, too: all of Redis' suites with servers that they start, kills and cuts by the hundred, simulations by the ten
    /// thousand, cases that are loaded again, failovers, faults picked by hand, fuzz targets.
    #[arg(long)]
    full: bool,
    /// Seconds for each fuzz target of a full run; 0 leaves them out.
    #[arg(long, default_value_t = 10)]
    fuzz_seconds: u32,
    /// Run this gate alone; may be repeated. A gate that needs programs takes those that are built.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print the names of the gates in their order, and run none.
    #[arg(long)]
    list: bool,
}

/// Runs the gates and ends with the summary lines of the tests.
///
/// # Errors
/// At the first gate that fails, after its whole output was printed. A name of `--only` that no gate has.
pub(crate) fn run(options: &Options) -> Result<()> {
    let selection = Selection::new(&options.only, options.list);
    let lab = Lab::new(selection.is_all());
    let gates = Gates { options, selection, xtask: Xtask::this()?, lab };
    gates.static_checks()?;
    let fuzzer = Fuzzer::find(options)?;
    told(&beside(gates.builds()?)?);
    // Tests wait for half of their time: that is for a compiler that gives way to them.
    let fuzz_build = fuzzer.is_some().then(|| gates.selection.one("fuzz-build", Fuzzer::build)).flatten();
    let tests = thread::scope(|scope| {
        let fuzz_build = fuzz_build.map(|(name, command)| scope.spawn(move || gate(&name, giving_way(&command))));
        let tests = if gates.selection.includes("tests") { tests(options) } else { Ok(String::new()) };
        let built = fuzz_build.map_or(Ok(String::new()), |build| build.join().unwrap_or_else(|_| bail!("a panic")));
        built.and(tests)
    })?;
    gates.programs()?;
    // Neither looks at the time.
    let mut untimed = Vec::new();
    if gates.selection.includes("differ") {
        untimed.extend(gates.differ()?);
    }
    if let Some(fuzzer) = &fuzzer {
        untimed.extend(gates.selection.of(fuzzer.runs(options)?));
    }
    gates.suites(untimed)?;
    gates.selection.finish()?;
    // Last, so that the end of the output shows how many tests ran; binaries without tests are left out.
    let summaries = tests.lines().filter(|line| line.starts_with("test result:") && !line.contains(" 0 passed"));
    summaries.for_each(|line| println!("{line}"));
    Ok(())
}

/// The gates in groups, in the order of the cheapest failure.
struct Gates<'a> {
    options: &'a Options,
    selection: Selection,
    xtask: Xtask,
    lab: Lab,
}

impl Gates<'_> {
    /// Gates that need no program: the sources and the tarballs.
    fn static_checks(&self) -> Result<()> {
        self.alone("format", || cargo(&["fmt", "--all", "--check"]))?;
        let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
        self.alone("lints", || cargo(&lints))?;
        self.alone("docs", || {
            // With the examples, so that what the lints have built of the libraries serves here too: their tests' features are on.
            let targets = ["--lib", "--bins", "--examples"];
            let doc = ["doc", "--workspace", "--all-features", "--no-deps", "--document-private-items"];
            let mut doc = cargo(&[&doc[..], &targets].concat());
            doc.env("RUSTDOCFLAGS", "-Dwarnings");
            doc
        })?;
        if self.selection.includes("tidy") {
            crate::tidy::run()?;
        }
        if self.selection.includes("machete")
            && let Some(machete) = machete::command()?
        {
            gate("machete", machete)?;
        }
        // In full each is built from its tarball, which takes minutes.
        let package = ["package", "--build"];
        let package = &package[..if self.options.full { 2 } else { 1 }];
        print_lines(&self.alone("tarballs", || self.xtask.task(package))?);
        Ok(())
    }

    /// Gates that compile, the longest first. None waits for another: each has a folder of its own, but for public items and the tests,
    /// which come one after the other. A compiler that optimises a whole program has one thread, and leaves the rest of the machine to what
    /// runs beside it.
    fn builds(&self) -> Result<Vec<Gate>> {
        let tests = ["test", "--workspace", "--no-run"];
        let models = ["test", "--quiet", "--manifest-path", "models/Cargo.toml", "--target-dir", "models/target"];
        // In full with the tests over the sockets of other systems, which have a build of their own.
        let systems: &[&str] = if self.options.full { &["systems"] } else { &["systems", "--check"] };
        let builds = [
            // Instructions are counted by one thread, which counts the same whatever runs beside it.
            self.of_lab("paths", &["paths"])?,
            self.selection.one("api", || self.xtask.task(&["api"])),
            self.selection.one("test-build", || cargo(&tests)),
            self.of_lab("systems", systems)?,
            self.of_lab("bare", &["bare"])?,
            self.selection.one("models", || cargo(&models)),
            self.selection.one("fuzz-check", Fuzzer::check),
        ];
        Ok(builds.into_iter().flatten().collect())
    }

    /// Gates that call the programs that the tests have built, with http-server's features beside its defaults: HTTP/3, too.
    fn programs(&self) -> Result<()> {
        let programs = xtask::workspace::target_dir().join("debug");
        let task = |arguments: &[&str]| {
            let mut task = self.xtask.task(arguments);
            task.arg("--programs").arg(&programs);
            task
        };
        if let Some((name, mut attacks)) = self.of_lab("attacks", &["attacks", "--short"])? {
            attacks.arg("--programs").arg(&programs);
            gate(&name, attacks)?.lines().last().into_iter().for_each(|line| println!("{line}"));
        }
        // Also by the peers that the tests have fetched.
        print_lines(&self.alone("readme", || {
            let mut readme = task(&["readme"]);
            readme.arg("--redis-server").arg(xtask::workspace::shipped_server());
            readme
        })?);
        // Its links outside are for people who ask for them.
        let book = self.alone("book", || task(&["book"]))?;
        book.lines().filter(|line| !line.starts_with("outside: ")).for_each(|line| println!("{line}"));
        print_lines(&self.alone("deploy", || task(&["deploy"]))?);
        Ok(())
    }

    /// Redis' suites. They wait most of the time: the processors are for what computes, and gives way to them. In full runs that takes
    /// long, and failovers follow.
    fn suites(&self, untimed: Vec<Gate>) -> Result<()> {
        let (mut suites, mut sentinels) = (Vec::new(), Vec::new());
        if self.options.no_suite {
            println!("skipped: Redis' own suite (--no-suite)");
        } else {
            for (name, arguments) in &SUITES[..if self.options.full { SUITES.len() } else { 1 }] {
                let suites = if arguments.contains(&"--sentinel") { &mut sentinels } else { &mut suites };
                suites.extend(self.of_lab(name, &[&["suite"], *arguments].concat())?);
            }
        }
        let untimed = untimed.into_iter().map(|(name, command)| (name, giving_way(&command)));
        if !self.options.full {
            told(&in_lanes([suites, untimed.collect()])?);
            return Ok(());
        }
        // Sentinels' come behind the computations, beside clusters.
        let computations = self.computations()?;
        told(&in_lanes([suites, computations.into_iter().chain(sentinels).chain(untimed).collect()])?);
        // Kills and cuts under clients that keep account. Failovers are timed, so nothing runs beside them.
        let failovers = ["failovers", "--ours-only", "--rounds", "1", "--only", "kill,cut", "--ours"];
        if let Some((name, mut failovers)) = self.of_lab("failovers", &failovers)? {
            failovers.arg(xtask::workspace::target_dir().join("debug/redis-server"));
            print_lines(&gate(&name, failovers)?);
        }
        Ok(())
    }

    /// Gates that compute for long, the longest first.
    fn computations(&self) -> Result<Vec<Gate>> {
        let simulations =
            ["test", "--profile", xtask::workspace::SHIPPED, "--package", "redis-server", "--lib", "--", "--ignored"];
        let mut simulations = cargo(&[&simulations[..], &SIMULATIONS].concat());
        simulations.env("PACKETS", "10000000");
        let computations = [
            self.of_lab("mutants", &["mutants"])?,
            self.selection.one("simulations", || simulations),
            self.of_lab("miri", &["miri", "--seeds", "4"])?,
            self.selection.one("applications", || cargo(&APPLICATIONS)),
        ];
        Ok(computations.into_iter().flatten().map(|(name, command)| (name, giving_way(&command))).collect())
    }

    /// Random commands to ours and a genuine server, where one is installed.
    fn differ(&self) -> Result<Option<Gate>> {
        if Command::new("redis-server").arg("--version").output().is_err() {
            if xtask::workspace::requires_peers() {
                bail!("REQUIRE_PEERS=1, and no redis-server is installed to compare with");
            }
            println!("skipped: random commands (no redis-server is installed to compare with)");
            return Ok(None);
        }
        // The same commands each time: whether the gate holds depends neither on luck nor on how fast a machine is.
        let task = ["differ", "--commands", "500000", "--seconds", "120"];
        let again: &[&str] = if self.options.full { &["--reload-each", "10", "--replicate-each", "10"] } else { &[] };
        Ok(Some(("differ".to_owned(), self.lab_task(&[&task[..], again].concat())?)))
    }

    /// A gate that is a command of lab, if it runs.
    fn of_lab(&self, name: &'static str, arguments: &[&str]) -> Result<Option<Gate>> {
        let gate = || Ok((name.to_owned(), self.lab_task(arguments)?));
        self.selection.includes(name).then(gate).transpose()
    }

    /// A command of lab, which is built for the first.
    fn lab_task(&self, arguments: &[&str]) -> Result<Command> {
        if let Some(build) = self.lab.build() {
            gate("build of lab", build)?;
        }
        Ok(Lab::task(arguments))
    }

    /// Runs a gate beside which no other runs; its output, or nothing if the gate is not selected.
    fn alone(&self, name: &'static str, command: impl FnOnce() -> Command) -> Result<String> {
        self.selection.one(name, command).map_or_else(|| Ok(String::new()), |(name, command)| gate(&name, command))
    }
}

fn print_lines(text: &str) {
    text.lines().for_each(|line| println!("{line}"));
}

/// Prints what gates have to tell beside that they hold.
fn told(outputs: &[String]) {
    let is_told =
        |line: &&str| ["suite:", "differ:", "mutants:", "miri:", "skipped:"].iter().any(|told| line.starts_with(told));
    outputs.iter().flat_map(|output| output.lines()).filter(is_told).for_each(|line| println!("{line}"));
}

/// The same, with what others leave of the processors.
fn giving_way(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args()).current_dir(xtask::workspace::root());
    command.get_envs().for_each(|(name, value)| match value {
        Some(value) => _ = nice.env(name, value),
        None => _ = nice.env_remove(name),
    });
    nice
}

/// Runs the tests; what their programs have printed. Unless all is to be run, the few that fail are tried a second time.
fn tests(options: &Options) -> Result<String> {
    let start = Instant::now();
    let first = in_two_lanes(options)?;
    let second = (!options.full && !first.status.success()).then(|| SecondTry::of(&first)).flatten();
    let Some(second) = second else { return judge("tests", &test_command(&[]), &first, start) };
    let mut test = test_command(&second.arguments());
    let again = under_load(|| output(&mut test))?;
    let text = String::from_utf8_lossy(&first.stdout);
    if !second.holds(&again) {
        print!("{text}");
        return judge("tests, tried twice", &test, &again, start)
            .and_then(|_| bail!("{:?} did not run again", second.names));
    }
    println!(
        "ok: tests ({} s), but for those that passed at a second try only: {:?}",
        start.elapsed().as_secs(),
        second.names
    );
    let panics = panics(&text);
    panics.iter().for_each(|panic| println!("at the first: {panic}"));
    races::note(&xtask::workspace::root().join(races::LIST), &today()?, &second.names, &panics)?;
    println!("They are noted in {}: mend or explain them there.", races::LIST);
    let passed = text.replace("test result: FAILED.", "test result: first try:");
    Ok(passed + &String::from_utf8_lossy(&again.stdout))
}

/// Runs something while a busy program for each core, of lower priority, keeps the scheduler at work: the load beside which a test failed
/// would be gone otherwise.
fn under_load<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let busy = || Command::new("nice").args(["-n", "5", "sh", "-c", "while :; do :; done"]).spawn();
    let mut load: Vec<_> = (0..cores).map_while(|_| busy().ok()).collect();
    let outcome = run();
    for program in &mut load {
        program.kill().and_then(|()| program.wait()).context("cannot end a busy program")?;
    }
    outcome
}

/// The day, as 2026-12-31, in UTC.
fn today() -> Result<String> {
    let date = Command::new("date").args(["-u", "+%F"]).output().context("cannot run date")?;
    Ok(String::from_utf8_lossy(&date.stdout).trim().to_owned())
}

/// `cargo test` of everything, with these arguments.
fn test_command(arguments: &[&str]) -> Command {
    cargo(&[&["test", "--workspace", "--no-fail-fast"], arguments].concat())
}

/// The first run of all tests. Programs in `tests/` mostly wait for servers, clients and time-outs, unit tests mostly compute: so the ones
/// run beside the others, and those that wait are twice as many as there are cores.
fn in_two_lanes(options: &Options) -> Result<Output> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let run = |arguments: &[&str], threads: usize| {
        let mut test = test_command(arguments);
        test.env("RUST_TEST_THREADS", threads.to_string());
        if options.full {
            test.envs([
                ("AOF_KILLS", "200"),
                ("LINK_CUTS", "200"),
                ("SIMULATED_RUNS", "10000"),
                ("PACKETS", "10000000"),
                ("VALUES_STEPS", "300000"),
                ("VALUES_GENUINE_STEPS", "100000"),
                ("SOAK_ITERATIONS", "10000000"),
                ("OTHER_REDIS_SERVERS", "newest"),
                ("VALKEY_SERVER", "newest"),
            ]);
        }
        output(&mut test)
    };
    thread::scope(|scope| {
        let units = scope.spawn(|| [run(&["--lib", "--bins", "--examples"], cores), run(&["--doc"], cores)]);
        let programs = run(&["--test", "*"], 2 * cores)?;
        let Ok([units, docs]) = units.join() else { bail!("a panic") };
        Ok(joined([programs, units?, docs?]))
    })
}

/// Runs as one, which has succeeded if all have.
fn joined<const RUNS: usize>(runs: [Output; RUNS]) -> Output {
    let mut joined = Output { status: ExitStatus::default(), stdout: Vec::new(), stderr: Vec::new() };
    for run in runs {
        joined.stdout.extend(run.stdout);
        joined.stderr.extend(run.stderr);
        if joined.status.success() {
            joined.status = run.status;
        }
    }
    joined
}

/// Builds every fuzz target with the nightly tools, and runs it for a short while.
struct Fuzzer {
    targets: Vec<String>,
}

impl Fuzzer {
    /// The fuzz targets of a full run, where there are the tools to build them.
    fn find(options: &Options) -> Result<Option<Self>> {
        if !options.full {
            return Ok(None);
        }
        if options.fuzz_seconds == 0 {
            println!("skipped: fuzz targets (--fuzz-seconds 0)");
            return Ok(None);
        }
        let list = Self::cargo().arg("list").output().ok().filter(|output| output.status.success());
        let Some(list) = list else {
            if xtask::workspace::requires_peers() && !options.list {
                bail!("REQUIRE_PEERS=1, and no nightly Rust with cargo-fuzz is installed to build the fuzz targets");
            }
            println!("skipped: fuzz targets (nightly Rust with cargo-fuzz is not installed)");
            return Ok(None);
        };
        let targets = String::from_utf8_lossy(&list.stdout).split_whitespace().map(str::to_owned).collect();
        Ok(Some(Self { targets }))
    }

    fn cargo() -> Command {
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz"]).current_dir(xtask::workspace::root());
        command
    }

    /// The target triple, which a sanitizer needs.
    fn host() -> String {
        format!("{}-unknown-linux-gnu", env::consts::ARCH)
    }

    /// A folder apart from that of developers' builds, which have lines of sources.
    fn folder() -> PathBuf {
        xtask::workspace::target_dir().join("fuzz")
    }

    /// Looks whether all targets compile; no tool of others is needed for that.
    fn check() -> Command {
        let mut check = cargo(&["check", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
        check.arg(Self::folder());
        check
    }

    /// Builds all targets without lines of sources for debuggers, which are most of them: a panic says where it was without, and `cargo
    /// fuzz run` has them, to run a failing input again.
    fn build() -> Command {
        let mut build = Self::cargo();
        build.args(["build", "--codegen-units", "16", "--target", &Self::host(), "--target-dir"]).arg(Self::folder());
        build.env("RUSTFLAGS", "-Cdebuginfo=0 -Cstrip=debuginfo");
        // Compilers work longer than the few seconds of fuzzing that the gate has: fast programs would not pay for themselves.
        build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
        build
    }

    /// A run of each: of the programs themselves, as cargo-fuzz would look each time whether they are built.
    fn runs(&self, options: &Options) -> Result<Vec<Gate>> {
        let built = Self::folder().join(Self::host()).join("release");
        let run = |target: &String| {
            let folder = |name: &str| xtask::workspace::root().join("fuzz").join(name).join(target);
            let (corpus, artifacts) = (folder("corpus"), folder("artifacts"));
            fs::create_dir_all(&corpus)?;
            fs::create_dir_all(&artifacts)?;
            let mut run = Command::new(built.join(target));
            run.arg(format!("-artifact_prefix={}/", artifacts.display()));
            run.arg(format!("-max_total_time={}", options.fuzz_seconds));
            run.arg(corpus).current_dir(xtask::workspace::root()).env("ASAN_OPTIONS", "detect_odr_violation=0");
            Ok((format!("fuzz-{target}"), run))
        };
        self.targets.iter().map(run).collect()
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = xtask::workspace::cargo();
    command.args(arguments);
    command
}

/// Runs one gate; prints one line when it holds, everything when it does not.
///
/// # Errors
/// A command that cannot be started, or that fails.
pub(crate) fn gate(name: &str, mut command: Command) -> Result<String> {
    let start = Instant::now();
    let output = output(&mut command)?;
    judge(name, &command, &output, start)
}

fn output(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))
}

fn judge(name: &str, command: &Command, output: &Output, start: Instant) -> Result<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        print!("{text}");
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        // The end of the output shows the panic, and whether the machine was the cause.
        panics(&text).iter().for_each(|panic| eprintln!("{panic}"));
        let free = [xtask::workspace::target_dir(), env::temp_dir()].map(|folder| free_megabytes(&folder));
        bail!("{name}: {command:?} failed ({}); MB free for target/ and temporary files: {free:?}", output.status);
    }
    println!("ok: {name} ({} s)", start.elapsed().as_secs());
    Ok(text)
}

/// The panics in a test runner's output, each in a line: where it was, and its message.
fn panics(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let begins =
        (0..lines.len()).filter(|at| lines[*at].starts_with("thread '") && lines[*at].contains("panicked at "));
    let is_message = |line: &&&str| !line.is_empty() && !line.starts_with("note: ");
    let message = |at: usize| lines[at..].iter().take_while(is_message).take(PANIC_LINES).map(|line| line.trim());
    begins.map(|at| message(at).collect::<Vec<_>>().join(" ")).collect()
}

/// Megabytes left on the file system of `folder`, if known.
fn free_megabytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize) >> 20)
}

/// Runs gates two at a time, in their order; what each has printed, as they ended. No further one begins when one has failed.
fn beside(gates: Vec<Gate>) -> Result<Vec<String>> {
    let queue = Mutex::new(VecDeque::from(gates));
    in_turn(&[&queue, &queue])
}

/// The same by lanes, in each of which one runs at a time.
fn in_lanes<const LANES: usize>(lanes: [Vec<Gate>; LANES]) -> Result<Vec<String>> {
    let lanes = lanes.map(|lane| Mutex::new(VecDeque::from(lane)));
    in_turn(&lanes.each_ref())
}

type Queue = Mutex<VecDeque<Gate>>;

/// Empties each queue by a thread of its own, which takes one gate after the other.
fn in_turn(queues: &[&Queue]) -> Result<Vec<String>> {
    let has_failed = AtomicBool::new(false);
    let outputs = Mutex::new(Vec::new());
    let locked = |queue: &Queue| queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = |queue: &Queue| {
        while !has_failed.load(Relaxed)
            && let Some((name, command)) = locked(queue)
        {
            let output = gate(&name, command);
            has_failed.fetch_or(output.is_err(), Relaxed);
            outputs.lock().unwrap_or_else(PoisonError::into_inner).push(output);
        }
    };
    thread::scope(|scope| queues.iter().for_each(|queue| _ = scope.spawn(|| work(queue))));
    outputs.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_run_beside_each_other_until_one_fails() {
        let gates = |scripts: &[&str]| {
            let command = |script: &&str| {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                ((*script).to_owned(), command)
            };
            let mut outputs = beside(scripts.iter().map(command).collect()).map_err(|error| error.to_string())?;
            outputs.sort();
            Ok::<_, String>(outputs)
        };
        assert_eq!(gates(&[]), Ok(Vec::new()));
        assert_eq!(gates(&["printf a", "printf b", "printf c"]), Ok(["a", "b", "c"].map(str::to_owned).to_vec()));
        let folder = xtask::workspace::target_dir().join("tmp/beside");
        fs::create_dir_all(&folder).unwrap();
        let (first, second, never) = (folder.join("first"), folder.join("second"), folder.join("never"));
        [&first, &second, &never].into_iter().for_each(|file| _ = fs::remove_file(file));
        // Each of the two waits for the other: one alone would wait for ever.
        let wait = |own: &PathBuf, other: &PathBuf, code: u8| {
            let (own, other) = (own.display(), other.display());
            format!("touch {own}; until test -e {other}; do sleep 0.01; done; exit {code}")
        };
        let scripts = [wait(&first, &second, 3), wait(&second, &first, 3), format!("touch {}", never.display())];
        let error = gates(&scripts.each_ref().map(String::as_str)).unwrap_err();
        assert!(error.contains("failed (exit status: 3); MB free "), "{error}");
        assert!(!never.exists());
    }

    #[test]
    fn lanes_run_at_one_time() {
        let command = |script: String| {
            let mut command = Command::new("sh");
            command.args(["-c", &script]);
            (script, command)
        };
        let folder = xtask::workspace::target_dir().join("tmp/lanes");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        // The first of a lane waits for the second of the other, which could not come before it in one queue.
        let file = folder.join("file").display().to_string();
        let wait = command(format!("until test -e {file}; do sleep 0.01; done; printf waited"));
        let other = [command("printf first".to_owned()), command(format!("touch {file}; printf second"))];
        let outputs = in_lanes([vec![wait], other.into()]).unwrap();
        assert_eq!(outputs.len(), 3);
        assert_eq!(outputs[0], "first");
    }

    #[test]
    fn a_failure_of_one_run_is_that_of_all() {
        let run = |script: &str| output(Command::new("sh").args(["-c", script])).unwrap();
        let all = joined([run("printf a"), run("printf b; exit 3"), run("printf c; printf e >&2")]);
        assert_eq!(
            (all.stdout.as_slice(), all.stderr.as_slice(), all.status.code()),
            (&b"abc"[..], &b"e"[..], Some(3))
        );
        assert!(joined([run("true"), run("true")]).status.success());
    }

    #[test]
    fn panics_are_reported_with_thread_and_message() {
        let text = "test a ... FAILED\n\n---- a stdout ----\n\nthread 'a' (17) panicked at tests/it.rs:3:5:\n\
            No space left on device\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(panics(text), ["thread 'a' (17) panicked at tests/it.rs:3:5: No space left on device"]);
        let list = "thread 'a' (1) panicked at a.rs:1:1:\nassertion failed: [\n    \"one\",\n    \"two\",\n]\n\ntest b";
        assert_eq!(panics(list), ["thread 'a' (1) panicked at a.rs:1:1: assertion failed: [ \"one\", \"two\", ]"]);
        assert_eq!(panics("test a ... ok\n"), [""; 0]);
    }

    #[test]
    fn free_space_is_known_only_for_existing_paths() {
        assert!(free_megabytes(&env::temp_dir()).is_some());
        assert_eq!(free_megabytes(Path::new("/no/such/folder")), None);
    }
}

//! Reported figures equal the target's record of its actions.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use loadgen::record::{Ending, Failure, Outcome};
use loadgen::watch::Watch;

use crate::target::{Behaviour, Delay, Dialect, Fault, Target};

/// Runs a command line, with `{}` for the target's address; a `_` is a space within a word.
fn run(target: &Target, line: &str) -> Outcome {
    let line = line.replace("{}", &target.address.to_string());
    let words: Vec<String> = line.split_whitespace().map(|word| word.replace('_', " ")).collect();
    loadgen::cli::scenario(&words).unwrap().run(&mut |_| Watch::GoOn)
}

/// A command line for each dialect, with these options.
const SUBJECTS: [(Dialect, &str); 5] = [
    (Dialect::Redis, "redis {} OPTIONS PING"),
    (Dialect::Http, "http http://{}/x OPTIONS"),
    (Dialect::WebSocket, "websocket ws://{}/x OPTIONS"),
    (Dialect::EchonetTcp, "echonet {} --tcp OPTIONS get 013001 80=30"),
    (Dialect::EchonetUdp, "echonet {} OPTIONS get 013001 80=30"),
];

/// How often a test that needs a quiet moment tries again. Each attempt asserts the invariants.
const ATTEMPTS: usize = 8;

/// How many attempts that nothing disturbed must fail for the test to fail.
const PROOF: usize = 3;

/// Threads that sleep are woken this late at most, or the machine has disturbed an attempt.
const QUIET: Duration = Duration::from_millis(3);

/// Runs until the machine let a run pass undisturbed. Where it never does, nothing is known about the time that things
/// take, and the test says so.
#[track_caller]
pub(crate) fn eventually(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut troubles = Vec::new();
    for _ in 0..ATTEMPTS {
        let (result, lateness) = watched(&mut attempt);
        let Err(trouble) = result else { return };
        if lateness < QUIET {
            troubles.push(trouble);
            assert!(troubles.len() < PROOF, "{troubles:#?}");
        }
    }
    eprintln!("undecided: the machine was too seldom quiet; {troubles:#?}");
}

/// Does `work`, and says by how much a sleeping thread was woken too late meanwhile, at worst.
fn watched<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    const NAP: Duration = Duration::from_millis(1);
    let is_done = AtomicBool::new(false);
    let watch = || {
        let mut worst = Duration::ZERO;
        while !is_done.load(Ordering::Relaxed) {
            let start = Instant::now();
            thread::sleep(NAP);
            worst = worst.max(start.elapsed().saturating_sub(NAP));
        }
        worst
    };
    thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let watchers: Vec<_> = (0..processors).map(|_| scope.spawn(watch)).collect();
        let result = panic::catch_unwind(AssertUnwindSafe(work));
        is_done.store(true, Ordering::Relaxed);
        let lateness = watchers.into_iter().map(|watcher| watcher.join().unwrap()).max().unwrap();
        (result.unwrap_or_else(|panic| panic::resume_unwind(panic)), lateness)
    })
}

/// The value that `percent` of sorted values do not exceed.
pub(crate) fn percentile(sorted: &[u64], percent: f64) -> Duration {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
    Duration::from_nanos(sorted[rank.min(sorted.len()) - 1])
}

#[test]
fn percentiles_are_those_that_the_target_made() {
    let (fast, slow) = (Duration::from_millis(10), Duration::from_millis(60));
    for delay in [Delay::Constant(fast), Delay::Bimodal(fast, 5, slow)] {
        for (dialect, line) in SUBJECTS {
            eventually(|| {
                let target = Target::start(Behaviour { dialect, delay, ..Behaviour::default() });
                let outcome = run(&target, &line.replace("OPTIONS", "-c 10 -t 2 -n 200 --verify"));
                assert_eq!((outcome.answers(), outcome.failed()), (200, 0), "{:?}", outcome.failures);
                assert_eq!(target.requests(), 200);
                let (latencies, delays) = (outcome.latencies(), target.delays());
                for percent in [1.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0] {
                    let (reported, made) = (latencies.percentile(percent), percentile(&delays, percent));
                    // Each latency holds the delay of its request, but for the histogram's three digits.
                    assert!(reported >= made.mul_f64(0.999), "{dialect:?} p{percent}: {reported:?}, made {made:?}");
                    // The rest of the latency is the transfer of the request and of its answer.
                    if reported > made.mul_f64(1.001) + Duration::from_millis(4) && percent < 95.0 {
                        return Err(format!("{dialect:?} p{percent}: {reported:?}, made {made:?}"));
                    }
                }
                Ok(())
            });
        }
    }
}

/// Length of the run of the stall test, and of the stall. With STALL_SECONDS=10, those of the published comparison.
fn stall_lengths() -> (Duration, Duration) {
    let seconds = std::env::var("STALL_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3.0);
    (Duration::from_secs_f64(seconds), Duration::from_secs_f64(seconds / 10.0))
}

#[test]
fn an_open_loop_shows_a_stall() {
    let (length, stall) = stall_lengths();
    for (dialect, line) in SUBJECTS {
        eventually(|| {
            let behaviour = Behaviour { dialect, stall: Some((length / 3, stall)), ..Behaviour::default() };
            let target = Target::start(behaviour);
            let options = format!("-c 20 -t 1 --rate 2000 --warm-up 0s -d {}ms", length.as_millis());
            let outcome = run(&target, &line.replace("OPTIONS", &options));
            let requests = (2000.0 * length.as_secs_f64()) as u64;
            let answers = outcome.answers();
            assert_eq!(outcome.failed(), 0, "{:?}", outcome.failures);
            assert!(answers.abs_diff(requests) <= 2, "{answers} of {requests}");
            // Requests are intended evenly while the target stalls, and wait for its end: the share of all that waits
            // longer than t is (stall - t) / length. No connection stalls for less than it is told, and one that the
            // machine lets sleep on stalls for more.
            for percent in [92.0, 95.0, 99.0, 99.9] {
                let expected = |stall: Duration| stall.saturating_sub(length.mul_f64(1.0 - percent / 100.0));
                let (least, most) = (expected(stall), expected(target.stalled()));
                let reported = outcome.latencies().percentile(percent);
                assert!(
                    reported + Duration::from_millis(2) >= least.mul_f64(0.97),
                    "{dialect:?} p{percent}: {reported:?}, at least {least:?}"
                );
                if reported > most.mul_f64(1.05) + Duration::from_millis(15) {
                    return Err(format!("{dialect:?} p{percent}: {reported:?}, at most {most:?}"));
                }
            }
            Ok(())
        });
    }
}

#[test]
fn a_closed_loop_hides_a_stall() {
    let (length, stall) = stall_lengths();
    eventually(|| {
        let target = Target::start(Behaviour { stall: Some((length / 3, stall)), ..Behaviour::default() });
        let options = format!("redis {{}} -c 20 -t 1 --warm-up 0s -d {}ms PING", length.as_millis());
        let outcome = run(&target, &options);
        let (p99, longest) = (outcome.latencies().percentile(99.0), outcome.latencies().max());
        if longest < stall.mul_f64(0.9) || p99 > stall / 10 {
            return Err(format!("longest {longest:?}, p99 {p99:?}, stall {stall:?}"));
        }
        Ok(())
    });
}

#[test]
fn wrong_answers_are_counted_exactly() {
    #[track_caller]
    fn check(dialect: Dialect, line: &str, right_first: u64) {
        let behaviour = Behaviour { dialect, wrong_every: Some(100), right_first, ..Behaviour::default() };
        let target = Target::start(behaviour.clone());
        let outcome = run(&target, &format!("{line} --verify"));
        let (wrong, requests) = (target.wrong(), target.requests() - right_first);
        assert!(wrong >= 20, "{wrong}");
        assert_eq!(outcome.failures_of(Failure::Wrong), wrong, "{dialect:?} {:?}", outcome.failures);
        assert_eq!((outcome.failed(), outcome.answers()), (wrong, requests - wrong), "{:?}", outcome.failures);
        // Without `--verify`, wrong answers count as answers.
        let target = Target::start(behaviour);
        let outcome = run(&target, line);
        assert_eq!((outcome.failed(), outcome.answers()), (0, requests), "{:?}", outcome.failures);
    }
    check(Dialect::Redis, "redis {} -c 5 -t 2 -n 3000 --pipeline 4 --keys 100 --preload --mix 1:GET_key:{key}", 100);
    check(Dialect::Http, "http http://{}/x -c 5 -t 2 -n 3000", 0);
    check(Dialect::WebSocket, "websocket ws://{}/x -c 5 -t 2 -n 3000 --depth 4 --value-size 10..500", 0);
    check(Dialect::EchonetTcp, "echonet {} --tcp -c 5 -t 2 -n 3000 --window 4 --mix 1:get_013001_80=30", 0);
    check(Dialect::EchonetUdp, "echonet {} -c 5 -t 2 -n 3000 --window 4 --mix 1:get_013001_80=30", 0);
}

#[test]
fn the_same_seed_sends_the_same_requests() {
    #[track_caller]
    fn check(dialect: Dialect, line: &str) {
        let requests = |seed: u64| {
            let target = Target::start(Behaviour { dialect, keeps_requests: true, ..Behaviour::default() });
            let outcome = run(&target, &format!("{line} -c 1 -n 500 --seed {seed}"));
            assert_eq!((outcome.answers(), outcome.failed()), (500, 0), "{:?}", outcome.failures);
            // The `Host` header has the port, which is another each time.
            let host = target.address.to_string();
            let texts = target.kept().into_iter().map(|bytes| String::from_utf8_lossy(&bytes).replace(&host, "host"));
            texts.collect::<Vec<_>>()
        };
        let first = requests(7);
        assert_eq!(first.len(), 500);
        assert!(first == requests(7), "{dialect:?}: the same seed");
        assert!(first != requests(8), "{dialect:?}: another seed");
    }
    check(Dialect::Redis, "redis {} --pipeline 3 --mix 9:GET_key:{key} --mix 1:SET_key:{key}_{value}");
    check(
        Dialect::Redis,
        "redis {} --rate 20000 --arrivals poisson --mix 9:GET_key:{key} --mix 1:SET_key:{key}_{value}",
    );
    check(Dialect::Http, "http http://{}/?key={key} --key-choice zipf");
    check(Dialect::EchonetUdp, "echonet {} --window 1 --mix 1:get_013001_80 --mix 1:set_013001_80=31");
}

#[test]
fn datagrams_that_are_lost_late_or_doubled_are_what_they_are() {
    #[track_caller]
    fn check(fault: Fault, kind: Option<Failure>) {
        let behaviour = Behaviour { dialect: Dialect::EchonetUdp, fault: Some((50, fault)), ..Behaviour::default() };
        let target = Target::start(behaviour);
        let outcome = run(&target, "echonet {} -c 2 -t 1 -n 1000 --window 8 --timeout 300ms --verify get 013001 80=30");
        let faults = target.faults();
        assert_eq!((outcome.ending.clone(), faults), (Ending::Complete, 20), "{fault:?}");
        let failed = if kind.is_some() { faults } else { 0 };
        assert_eq!(outcome.answers(), 1000 - failed, "{fault:?} {:?}", outcome.failures);
        match kind {
            Some(kind) => assert_eq!(outcome.failures_of(kind), faults, "{fault:?} {:?}", outcome.failures),
            None => assert_eq!(outcome.failed(), 0, "{fault:?} {:?}", outcome.failures),
        }
    }
    check(Fault::Silence, Some(Failure::TimedOut));
    check(Fault::Late(Duration::from_millis(450)), Some(Failure::TimedOut));
    check(Fault::Twice, None);
    // A datagram that is none: it is reported, and its request times out.
    check(Fault::Garbage, Some(Failure::TimedOut));
    check(Fault::HalfAnswer, Some(Failure::TimedOut));
}

//! `loadgen pubsub`: deliveries take as long as they do, each is counted, and genuine servers make them.

use std::time::Duration;

use loadgen::record::{Ending, Failure, Outcome};
use loadgen::watch::Watch;
use test_peers::is_there;

use crate::drop_in::RedisServer;
use crate::target::{Broker, Delay, Harm};
use crate::truth::{eventually, percentile};

/// Runs a command line.
fn run(line: &str) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    loadgen::cli::scenario(&words).unwrap().run(&mut |_| Watch::GoOn)
}

#[test]
fn deliveries_take_as_long_as_the_broker_lets_them() {
    let (fast, slow) = (Duration::from_millis(10), Duration::from_millis(60));
    for delay in [Delay::Constant(fast), Delay::Bimodal(fast, 5, slow)] {
        for pace in ["--rate 400", ""] {
            eventually(|| {
                let broker = Broker::start(delay, Harm::Nothing);
                let line =
                    format!("pubsub {} -c 2 -t 2 --subscribers 3 --channels 2 -n 200 --verify {pace}", broker.address);
                let outcome = run(&line);
                assert_eq!((outcome.answers(), outcome.failed()), (200, 0), "{:?}", outcome.failures);
                let (deliveries, delays) = (outcome.deliveries.unwrap(), broker.delays());
                // One channel has two subscribers, the other one has one.
                assert!(deliveries.promised > 200 && deliveries.promised < 400, "{deliveries:?}");
                assert_eq!((deliveries.arrived, delays.len() as u64), (deliveries.promised, deliveries.promised));
                for percent in [1.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0] {
                    let (reported, made) = (deliveries.latencies.percentile(percent), percentile(&delays, percent));
                    // Each latency holds the delay of its delivery, but for the histogram's three digits.
                    assert!(reported >= made.mul_f64(0.999), "{pace} p{percent}: {reported:?}, made {made:?}");
                    if reported > made.mul_f64(1.001) + Duration::from_millis(4) && percent < 95.0 {
                        return Err(format!("{pace} p{percent}: {reported:?}, made {made:?}"));
                    }
                }
                // The latency of PUBLISH itself is another figure.
                let answered = outcome.operations[0].latencies.percentile(50.0);
                if answered > fast / 2 { Err(format!("{pace}: PUBLISH took {answered:?}")) } else { Ok(()) }
            });
        }
    }
}

#[test]
fn lost_and_changed_deliveries_are_counted_exactly() {
    let line =
        |broker: &Broker| format!("pubsub {} -c 2 -t 2 --subscribers 2 -n 300 --timeout 1s --verify", broker.address);
    let broker = Broker::start(Delay::None, Harm::Lost(50));
    let outcome = run(&line(&broker));
    assert_eq!((outcome.ending.clone(), broker.harmed()), (Ending::Complete, 12), "{outcome:?}");
    let deliveries = outcome.deliveries.clone().unwrap();
    assert_eq!((deliveries.promised, deliveries.arrived), (600, 588));
    assert_eq!((outcome.failures_of(Failure::Undelivered), outcome.failed()), (12, 12), "{:?}", outcome.failures);

    let broker = Broker::start(Delay::None, Harm::Changed(50));
    let outcome = run(&line(&broker));
    let deliveries = outcome.deliveries.clone().unwrap();
    assert_eq!((deliveries.arrived, deliveries.latencies.count(), broker.harmed()), (600, 588, 12));
    assert_eq!((outcome.failures_of(Failure::Wrong), outcome.failed()), (12, 12), "{:?}", outcome.failures);
}

#[test]
fn publishing_waits_for_all_subscriptions() {
    let late = |late| Broker::start(Delay::None, Harm::LateSubscriptions(late));
    let line = |broker: &Broker, timeout| {
        format!("pubsub {} -c 2 -t 2 --subscribers 3 -n 100 --timeout {timeout} --verify", broker.address)
    };
    let outcome = run(&line(&late(Duration::from_millis(100)), "10s"));
    let deliveries = outcome.deliveries.clone().unwrap();
    assert_eq!((outcome.answers(), outcome.failed()), (100, 0), "{:?}", outcome.failures);
    assert_eq!((deliveries.promised, deliveries.arrived), (300, 300));

    // A subscription without a reply counts as timed out, and does not stall the run for ever.
    let outcome = run(&line(&late(Duration::from_secs(3600)), "300ms"));
    assert_eq!((outcome.ending.clone(), outcome.answers()), (Ending::Complete, 100));
    assert!(outcome.failures_of(Failure::TimedOut) >= 3, "{:?}", outcome.failures);
}

#[test]
fn a_genuine_server_delivers() {
    if !is_there("redis-server") {
        return;
    }
    let server = RedisServer::start();
    #[track_caller]
    fn check(port: u16, options: &str, each: u64) {
        let outcome = run(&format!("pubsub 127.0.0.1:{port} -c 3 -t 2 -n 2000 --verify {options}"));
        let deliveries = outcome.deliveries.clone().unwrap();
        assert_eq!((outcome.answers(), outcome.failed()), (2000, 0), "{options}: {:?}", outcome.failures);
        let expected = (each * 2000, each * 2000, each * 2000);
        assert_eq!((deliveries.promised, deliveries.arrived, deliveries.latencies.count()), expected, "{options}");
        assert!(deliveries.latencies.min() > Duration::ZERO);
    }
    check(server.port, "", 1);
    check(server.port, "--subscribers 4 -3", 4);
    check(server.port, "--subscribers 2 --channels 7 --depth 16 --batch", 1);
    check(server.port, "--subscribers 6 --channels 3 --rate 5000 --value-size 1..3000", 2);
    check(server.port, "--sharded --channels 5 --subscribers 5", 1);
}

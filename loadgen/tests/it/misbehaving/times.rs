//! Rates and times that a window's edges, a short run, or a stopped generator could make wrong.

use std::io::Result;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::server::{Conversation, serve};
use super::{Holds, OK, Row, Server, answer_all, check};
use crate::command::loadgen;

const RATE: &str = "/summary/all/per_second";

const ROWS: &[Row] = &[
    Row {
        behaviour: "answers after 900 ms, a window of 300 ms",
        server: Server::Plain(after_900_ms),
        line: "http http://{}/ -c 9 -t 1 -d 300ms --warm-up 0s",
        exit: 0,
        prints: &["answers took long beside the window"],
        // 9 connections by 0.9 s, not 9 answers by 0.3 s.
        holds: &[Holds::Most(RATE, 10.05), Holds::Is("/summary/all/answers", 9.0)],
    },
    Row {
        behaviour: "answers after 900 ms, a window of 2 s",
        server: Server::Plain(after_900_ms),
        line: "http http://{}/ -c 9 -t 1 -d 2s --warm-up 0s",
        exit: 0,
        prints: &[],
        holds: &[Holds::Most(RATE, 10.05), Holds::Least("/summary/all/answers", 18.0)],
    },
    Row {
        behaviour: "answers after 900 ms, requests of the warm-up reach into the window",
        server: Server::Plain(after_900_ms),
        line: "http http://{}/ -c 9 -t 1 -d 1s --warm-up 500ms",
        exit: 0,
        prints: &[],
        holds: &[Holds::Most(RATE, 10.05), Holds::Is("/summary/all/answers", 9.0)],
    },
    Row {
        behaviour: "answers after 900 ms, so that no request begins in the window",
        server: Server::Plain(after_900_ms),
        line: "http http://{}/ -c 2 -t 1 -d 200ms --warm-up 300ms",
        exit: 1,
        prints: &["nothing was measured"],
        holds: &[Holds::Is("/summary/all/answers", 0.0), Holds::Null("/summary/all/p99")],
    },
    Row {
        behaviour: "has no request to answer: the first is due behind the window",
        server: Server::Plain(answer_all),
        line: "http http://{}/ -c 1 -t 1 --rate 0.5 -d 300ms --warm-up 500ms",
        exit: 1,
        prints: &["nothing was measured"],
        holds: &[],
    },
    Row {
        behaviour: "answers 50 requests a second at most, a short open loop of four times as many",
        server: Server::Plain(after_20_ms),
        line: "http http://{}/ -c 1 -t 1 --rate 200 -d 500ms --warm-up 0s --timeout 10s",
        exit: 0,
        prints: &["could not keep up"],
        holds: &[Holds::Most(RATE, 50.05), Holds::Is("/summary/all/answers", 100.0)],
    },
    Row {
        behaviour: "answers 50 requests a second at most, behind since the warm-up",
        server: Server::Plain(after_20_ms),
        line: "http http://{}/ -c 1 -t 1 --rate 100 -d 500ms --warm-up 500ms --timeout 10s",
        exit: 0,
        prints: &["could not keep up"],
        holds: &[Holds::Most(RATE, 50.05), Holds::Is("/summary/all/answers", 50.0)],
    },
    Row {
        behaviour: "is asked once a second",
        server: Server::Plain(answer_all),
        line: "http http://{}/ -c 1 -t 1 --rate 1 -d 3s --warm-up 0s",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is("/summary/all/answers", 3.0)],
    },
    Row {
        behaviour: "is asked at a rate whose gaps are no whole nanoseconds",
        server: Server::Plain(answer_all),
        line: "http http://{}/ -c 8 -t 1 --rate 3000 -d 1s --warm-up 0s",
        exit: 0,
        prints: &[],
        holds: &[Holds::Is("/summary/all/answers", 3000.0)],
    },
];

#[test]
fn rates_are_those_of_the_server() {
    check(ROWS);
}

/// The generator is stopped for half a second, as by SIGSTOP, a hypervisor, or a limit of its control group.
#[test]
fn a_stopped_generator_is_told() {
    const STOPPED: Duration = Duration::from_millis(500);
    let address = serve(answer_all);
    let target = address.to_string();
    let json = std::env::temp_dir().join(format!("loadgen-stalled-{}.json", std::process::id()));
    let words = ["http", &target, "-c", "2", "-t", "1", "--rate", "500", "-d", "3s", "--warm-up", "0s", "--no-live"];
    let mut command = loadgen(&[&words[..], &["--json", json.to_str().unwrap()]].concat());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Its second line is the first second's result: it is being measured.
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    assert!(lines.by_ref().nth(1).is_some());
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).unwrap();
    let began = Instant::now();
    while began.elapsed() < STOPPED {
        thread::sleep(STOPPED.saturating_sub(began.elapsed()));
    }
    kill_process(pid, Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_file(&json).unwrap();
    assert!(text.contains("generator stalled: "), "{text}");
    assert_eq!(result["summary"]["stalled"], true);
    assert!(result["generator"]["stalls"]["longest"].as_f64().unwrap() >= 0.3, "{}", result["generator"]);
    // The stall is in the latencies, where it belongs in an open loop.
    assert!(result["summary"]["all"]["max"].as_f64().unwrap() >= 0.3);
}

fn after_900_ms(client: &mut Conversation) -> Result<()> {
    answer_after(client, 900)
}

fn after_20_ms(client: &mut Conversation) -> Result<()> {
    answer_after(client, 20)
}

fn answer_after(client: &mut Conversation, millis: u64) -> Result<()> {
    loop {
        client.request()?;
        client.wait(millis);
        client.say(OK)?;
    }
}

//! Users as bytes and times, without sockets.

use super::*;
use crate::record::Window;

const FILE: &str = r#"
[random]
n = [5, 5]

[feeder.rows]
file = "rows.csv"
end = "stop"

[[flow]]
name = "buy"

[[flow.step]]
name = "log in"
path = "/login?{{rows.id}}"
body = "{{n}}"
check = [{ status = [200, 201] }, { json = "$.id" }]
take.id = { json = "$.id" }
think = "5us"

[[flow.step]]
name = "order"
path = "/orders/{{id}}"
headers = { X = "{{iteration}}" }
think = "7us"
"#;

struct Run {
    flows: Flows,
    user: FlowUser,
    tally: Tally,
    source: Source,
}

impl Run {
    fn new() -> Self {
        Self::of(FILE)
    }

    fn of(file: &str) -> Self {
        let read = |_: &str| Ok("id\n1\n2\n".to_owned());
        let headers = [("Host".to_owned(), "h".to_owned())];
        let flows = Flows::new(Plan::parse(file, &read, &headers).unwrap(), Site::new("h", false));
        let mut tally = Tally::new(2);
        tally.set_iterations(flows.iterations());
        tally.set_window(Window::Open { from: 0, until: u64::MAX });
        Self { user: flows.connect(3), flows, tally, source: Source::new(1, 0, 1) }
    }

    /// Begins an iteration that is due at `at`, and gives the request.
    fn begin(&mut self, at: Nanos) -> String {
        self.tally.set_now(at);
        let mut out = Vec::new();
        self.flows.begin(&mut self.user, at, &mut self.source, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Ends the user's pause at `at`, and gives the request.
    fn wake(&mut self, at: Nanos) -> String {
        self.tally.set_now(at);
        let mut out = Vec::new();
        self.flows.wake(&mut self.user, at);
        self.flows.control(&mut self.user, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// An answer comes at `at`, byte by byte.
    fn answer(&mut self, at: Nanos, text: &str) -> Result<bool, Broken> {
        self.tally.set_now(at);
        let (mut unread, mut closes) = (Vec::new(), false);
        for byte in text.bytes() {
            unread.push(byte);
            let received = self.flows.receive(&mut self.user, &unread, &mut self.tally)?;
            unread.drain(..received.consumed);
            closes |= received.close;
        }
        Ok(closes)
    }

    /// Requests and iterations: answered, failed; and examples of failures.
    #[track_caller]
    fn check(&self, steps: [u64; 2], iterations: [u64; 2], examples: &[&str]) {
        let iterations_now = self.tally.iterations().unwrap();
        let found = [0, 1].map(|step| self.tally.latencies()[step].count());
        assert_eq!((found, [iterations_now.complete(), iterations_now.failed()]), (steps, iterations));
        let failures = self.tally.failures().list();
        assert_eq!(failures.iter().flat_map(|failure| &failure.examples).collect::<Vec<_>>(), examples);
    }
}

const ID: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"id\": 42}";
const EMPTY: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[test]
fn an_iteration_takes_its_steps() {
    let mut run = Run::new();
    assert_eq!(run.begin(1_000), "POST /login?1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n5");
    assert_eq!((run.flows.room(&run.user), run.flows.in_flight(&run.user)), (0, 1));
    assert_eq!(run.answer(3_000, ID), Ok(false));
    assert_eq!(run.flows.pause(&run.user), Some(8_000));
    assert_eq!(run.wake(7_999), "");
    assert_eq!(run.wake(9_000), "GET /orders/42 HTTP/1.1\r\nHost: h\r\nX: 0\r\n\r\n");
    assert_eq!(run.answer(10_000, EMPTY), Ok(false));
    run.check([1, 1], [1, 0], &[]);
    // The second step was due when the user had thought, so that its lateness counts; the iteration is without the think time.
    let slowest = |run: &Run, step: usize| run.tally.latencies()[step].max().as_nanos();
    assert_eq!((slowest(&run, 0), slowest(&run, 1)), (2_000, 2_000));
    // Three digits are kept.
    let iteration = run.tally.iterations().unwrap().flows[0].latencies.max().as_nanos();
    assert!((3_996..=4_004).contains(&iteration), "{iteration}");
    // The user rests before the next iteration.
    assert_eq!((run.flows.room(&run.user), run.flows.in_flight(&run.user)), (0, 0));
    assert_eq!((run.flows.pause(&run.user), run.wake(17_000)), (Some(17_000), String::new()));
    assert_eq!(run.flows.room(&run.user), 1);
    assert!(run.begin(17_000).starts_with("POST /login?2 "));
}

#[test]
fn a_wrong_answer_ends_the_iteration() {
    #[track_caller]
    fn check(answer: &str, kind: Failure, example: &str, checks: [[u64; 2]; 2]) {
        let mut run = Run::new();
        run.begin(1_000);
        assert_eq!(run.answer(2_000, answer), Ok(false));
        run.check([0, 0], [0, 1], &[example]);
        assert_eq!(run.tally.failures().count(kind), 1);
        let found = &run.tally.iterations().unwrap().checks;
        assert_eq!([0, 1].map(|check| [found[check].passed, found[check].failed]), checks);
        assert_eq!(run.flows.room(&run.user), 1);
    }
    let refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    check(refused, Failure::Rejected, "log in: check `log in: status [200, 201]` failed, status 403", [[0, 1], [0, 1]]);
    let other = "HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\n{\"id\":1}";
    check(other, Failure::Wrong, "log in: check `log in: status [200, 201]` failed, status 202", [[0, 1], [1, 0]]);
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    check(empty, Failure::Wrong, "log in: check `log in: $.id` failed, status 200", [[1, 0], [0, 1]]);
}

#[test]
fn an_error_fails_a_step_without_checks() {
    let mut run = Run::new();
    run.begin(0);
    run.answer(1, ID).unwrap();
    run.wake(10_000);
    run.answer(10_001, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n").unwrap();
    run.check([1, 0], [0, 1], &["order: status 500"]);
}

#[test]
fn an_iteration_goes_on_with_another_connection() {
    let mut run = Run::new();
    run.begin(0);
    let closing = ID.replace("Content", "Connection: close\r\nContent");
    assert_eq!(run.answer(1, &closing), Ok(true));
    run.flows.abandon(&mut run.user, Failure::Closed, &mut run.tally);
    assert!(run.flows.listens(&run.user));
    run.user = run.flows.reconnect(&mut run.user, 3, 0);
    assert!(run.wake(5_001).starts_with("GET /orders/42 "));
    // This time a request is under way.
    run.flows.end(&mut run.user, &mut run.tally);
    run.flows.abandon(&mut run.user, Failure::Closed, &mut run.tally);
    run.check([1, 0], [0, 1], &[]);
    assert_eq!((run.tally.failures().count(Failure::Closed), run.flows.listens(&run.user)), (1, false));
}

#[test]
fn steps_time_out() {
    let mut run = Run::new();
    run.begin(1_000);
    run.tally.set_now(9_000);
    assert!(!run.flows.expire(&mut run.user, 1_000, &mut run.tally));
    assert!(run.flows.expire(&mut run.user, 1_001, &mut run.tally));
    run.check([0, 0], [0, 1], &["log in: no answer within the time-out"]);
}

#[test]
fn a_feeder_that_ends_ends_the_load() {
    let mut run = Run::new();
    for _ in 0..2 {
        run.begin(0);
        run.flows.abandon(&mut run.user, Failure::Reset, &mut run.tally);
        assert!(!run.flows.is_exhausted());
    }
    assert_eq!((run.begin(0), run.flows.is_exhausted(), run.flows.in_flight(&run.user)), (String::new(), true, 0));
    run.flows.rewind();
    assert!(run.begin(0).starts_with("POST /login?1 ") && !run.flows.is_exhausted());
}

#[test]
fn an_answer_without_a_request_breaks_the_connection() {
    let mut run = Run::new();
    let broken = run.answer(1, EMPTY).unwrap_err();
    assert_eq!(broken.example, "a response that nobody asked for: status 204");
}

#[test]
fn no_answer_panics_and_each_iteration_ends_once() {
    let mut random = Source::new(7, 0, 1).rng;
    let answers =
        [ID, EMPTY, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{\"id\": [1]\r\n1\r\n}\r\n0\r\n\r\n"];
    for round in 0..20_000 {
        let mut run = Run::new();
        run.begin(0);
        let mut bytes = answers[round % answers.len()].repeat(2).into_bytes();
        for _ in 0..rand::Rng::random_range(&mut random, 0..4) {
            let place = rand::Rng::random_range(&mut random, 0..bytes.len());
            bytes[place] = b"\r\n:;{}[]\"019aHC \\\0\xff"[rand::Rng::random_range(&mut random, 0..18)];
        }
        let mut consumed = 0;
        for end in 0..=bytes.len() {
            run.tally.set_now(end as u64);
            match run.flows.receive(&mut run.user, &bytes[consumed..end], &mut run.tally) {
                Ok(received) if !received.close => consumed += received.consumed,
                _ => break,
            }
        }
        run.flows.end(&mut run.user, &mut run.tally);
        run.user = run.flows.reconnect(&mut run.user, 0, 0);
        run.flows.abandon(&mut run.user, Failure::Closed, &mut run.tally);
        let iterations = run.tally.iterations().unwrap();
        assert_eq!(iterations.complete() + iterations.failed(), 1, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn users_keep_their_cookies() {
    let mut run = Run::of(&format!("cookies = true\n{FILE}"));
    let cookie = |request: &str| {
        let line = request.lines().find_map(|line| line.strip_prefix("Cookie: "));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!(cookie(&run.begin(0)), "");
    let head = "HTTP/1.1 200 OK\r\nSet-Cookie: sid=7; Path=/\r\nset-cookie: a=1; Path=/orders; Max-Age=10\r\n";
    run.answer(1_000, &format!("{head}Content-Length: 8\r\n\r\n{{\"id\":3}}")).unwrap();
    let request = run.wake(6_000);
    assert_eq!(cookie(&request), "a=1; sid=7");
    assert!(request.starts_with("GET /orders/3 HTTP/1.1\r\nCookie: a=1; sid=7\r\nHost: h\r\n"), "{request}");
    run.answer(7_000, "HTTP/1.1 200 OK\r\nSet-Cookie: sid=8; Path=/\r\nContent-Length: 0\r\n\r\n").unwrap();
    run.wake(14_000);
    // The next iteration is the same user's, and so is the next connection.
    run.user = run.flows.reconnect(&mut run.user, 3, 0);
    assert_eq!(cookie(&run.begin(20_000)), "sid=8");
    let deleted = "HTTP/1.1 200 OK\r\nSet-Cookie: sid=; Path=/; Max-Age=0\r\nContent-Length: 8\r\n\r\n{\"id\":3}";
    run.answer(11_000_000_000, deleted).unwrap();
    assert_eq!(cookie(&run.wake(11_000_010_000)), "");
}

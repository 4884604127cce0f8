//! Scenarios against the shop of `examples/shop.rs`, and against servers that are played here.

mod soak;

#[allow(dead_code, reason = "the example's own main")]
#[path = "../../../examples/shop.rs"]
mod shop;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::shop::Counts;
use crate::command::loadgen;

/// The output of a command, and the JSON that it wrote.
struct Done {
    code: Option<i32>,
    text: String,
    json: Value,
}

impl Done {
    #[track_caller]
    fn number(&self, pointer: &str) -> u64 {
        self.json.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {}", self.text))
    }
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// Runs `loadgen scenario` with these options; at the end it writes JSON.
fn run(address: SocketAddr, file: &Path, options: &str) -> Done {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let json = std::env::temp_dir().join(format!("loadgen-flows-{}-{number}.json", std::process::id()));
    let (target, file, written) = (format!("http://{address}"), file.display().to_string(), json.display().to_string());
    let mut words = vec!["scenario", &target, &file, "-q", "--json", &written];
    words.extend(options.split_whitespace());
    let output = loadgen(&words).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    let result = fs::read_to_string(&json).ok().and_then(|text| serde_json::from_str(&text).ok());
    let _ = fs::remove_file(&json);
    Done { code: output.status.code(), text, json: result.unwrap_or_default() }
}

/// Runs a file with this text.
fn run_text(address: SocketAddr, text: &str, options: &str) -> Done {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("loadgen-flows-{}-{number}.toml", std::process::id()));
    fs::write(&file, text).unwrap();
    let done = run(address, &file, options);
    let _ = fs::remove_file(&file);
    done
}

/// A server that answers by `answer`: the method, the path and the body become the whole response.
fn serve(answer: impl Fn(&str, &str, &str) -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || converse(stream, &*answer));
        }
    });
    address
}

/// Answers until a response closes the connection, or the client does.
fn converse(stream: TcpStream, answer: &dyn Fn(&str, &str, &str) -> String) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        loop {
            let mut field = String::new();
            reader.read_line(&mut field).ok().filter(|read| *read > 0)?;
            if field == "\r\n" {
                break;
            }
            if let Some(value) = field.strip_prefix("Content-Length: ") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let mut words = line.split(' ');
        let (method, path) = (words.next()?, words.next()?);
        let response = answer(method, path, std::str::from_utf8(&body).ok()?);
        writer.write_all(response.as_bytes()).ok()?;
        if response.contains("Connection: close") {
            return None;
        }
    }
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// One flow of one step to `/`.
const ONE: &str = "[[flow]]\nname = 'f'\n[[flow.step]]\nname = 's'\npath = '/'\n";

#[test]
fn counts_are_those_of_the_server() {
    for load in ["-c 8 -t 2", "-c 20 --rate 4000", "-c 20 --rate 4000 --arrivals poisson -t 2"] {
        let (address, counts) = shop::serve("127.0.0.1:0").unwrap();
        let done = run(address, &example("shop.toml"), &format!("-n 2000 {load} --slo errors=0%"));
        assert_eq!(done.code, Some(0), "{}", done.text);
        let Counts { logins, lists, orders, views, refused } = &*counts;
        let served = [logins, lists, orders, views, refused].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(served, [2000, 2000, 2000, 2000, 0], "{load}");
        let steps = [0, 1, 2, 3].map(|step| done.number(&format!("/summary/operations/{step}/answers")));
        assert_eq!(steps, [2000; 4], "{load}");
        assert_eq!(done.number("/summary/iterations/flows/0/answers"), 2000);
        for check in 0..5 {
            assert_eq!(done.number(&format!("/iterations/checks/{check}/passed")), 2000);
        }
    }
}

#[test]
fn a_refused_login_fails_its_iteration_alone() {
    let (address, counts) = shop::serve("127.0.0.1:0").unwrap();
    let folder = std::env::temp_dir().join(format!("loadgen-flows-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::copy(example("shop.toml"), folder.join("shop.toml")).unwrap();
    // Every fourth user has a wrong password.
    let user =
        |user: usize| format!("user{user},{}\n", if user % 4 == 3 { "x".to_owned() } else { format!("secret{user}") });
    fs::write(folder.join("shop-users.csv"), format!("user,password\n{}", (0..100).map(user).collect::<String>()))
        .unwrap();
    let done = run(address, &folder.join("shop.toml"), "-n 1000 -c 5 --slo errors=50% --slo order:errors=20%");
    assert_eq!(counts.refused.load(Ordering::SeqCst), 250);
    let figures = [
        "/summary/iterations/flows/0/answers",
        "/summary/iterations/flows/0/failed",
        "/summary/iterations/steps/0/failed",
    ];
    assert_eq!(figures.map(|figure| done.number(figure)), [750, 250, 250]);
    assert_eq!((done.number("/iterations/checks/0/passed"), done.number("/iterations/checks/0/failed")), (750, 250));
    for text in [
        "log in: check `log in: status 200` failed, status 401",
        "750 complete, 250 ended with a failure",
        "log in: status 200: 750 passed, 250 FAILED",
        "errors=50% met: errors 7.692 %",
        "order:errors=20% MISSED: errors 25 %",
    ] {
        assert!(done.text.contains(text), "{text}: {}", done.text);
    }
    assert_eq!(done.code, Some(3));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn merged_runs_add_up() {
    let (address, _) = shop::serve("127.0.0.1:0").unwrap();
    let folder = std::env::temp_dir();
    let files = ["a", "b"].map(|name| folder.join(format!("loadgen-flows-{}-{name}.json", std::process::id())));
    for file in &files {
        fs::write(file, run(address, &example("shop.toml"), "-n 300 -c 3").json.to_string()).unwrap();
    }
    let [one, other] = files.each_ref().map(|file| file.display().to_string());
    let output = loadgen(&["merge", &one, &other, "--json", "-", "--slo", "log in:errors=0%"]).output().unwrap();
    let merged: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{merged}");
    assert_eq!(merged.pointer("/summary/iterations/flows/0/answers"), Some(&600.into()));
    assert_eq!(merged.pointer("/iterations/checks/4/passed"), Some(&600.into()));
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn iterations_survive_connections_that_end() {
    let count = AtomicU64::new(0);
    // Each third answer ends its connection.
    let address = serve(move |_, path, _| {
        let closes = count.fetch_add(1, Ordering::SeqCst) % 3 == 2;
        let body = path.len().to_string();
        let close = if closes { "Connection: close\r\n" } else { "" };
        format!("HTTP/1.1 200 OK\r\n{close}Content-Length: {}\r\n\r\n{body}", body.len())
    });
    let text = "[[flow]]\nname = 'f'\n\
        [[flow.step]]\nname = 'a'\npath = '/'\ntake.x = { json = '$' }\nthink = '1ms'\n\
        [[flow.step]]\nname = 'b'\npath = '/{{x}}'\ncheck = [{ is = '2' }]\n";
    let done = run_text(address, text, "-n 200 -c 4");
    assert_eq!((done.code, done.number("/summary/failed")), (Some(0), 0), "{}", done.text);
    assert_eq!(done.number("/summary/iterations/flows/0/answers"), 200);
}

#[test]
fn users_think() {
    let address = serve(|_, _, _| ok(""));
    let text = "[[flow]]\nname = 'f'\n\
        [[flow.step]]\nname = 'a'\npath = '/'\nthink = '100ms'\n\
        [[flow.step]]\nname = 'b'\npath = '/'\nthink = ['50ms', '60ms']\n";
    let begin = Instant::now();
    let done = run_text(address, text, "-n 20 -c 4");
    // Five iterations of each user, of which the last does not wait for its end.
    assert!(begin.elapsed() >= Duration::from_millis(5 * 100 + 4 * 50), "{:?}", begin.elapsed());
    let most = done.json.pointer("/summary/iterations/flows/0/p50").and_then(Value::as_f64).unwrap();
    assert!(most < 0.1, "the think time is no latency: {most}");
}

#[test]
fn flows_come_by_weight_and_rows_once() {
    let seen = Arc::new(Mutex::new(HashMap::<String, usize>::new()));
    let known = seen.clone();
    let address = serve(move |_, path, _| {
        *known.lock().unwrap().entry(path.to_owned()).or_default() += 1;
        ok("")
    });
    let folder = std::env::temp_dir().join(format!("loadgen-rows-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let rows: String = (0..500).map(|row| format!("r{row}\n")).collect();
    fs::write(folder.join("rows.csv"), format!("id\n{rows}")).unwrap();
    let text = "[feeder.rows]\nfile = 'rows.csv'\nend = 'stop'\n\
        [[flow]]\nname = 'row'\nweight = 1\n[[flow.step]]\nname = 's'\npath = '/row/{{rows.id}}'\n\
        [[flow]]\nname = 'other'\nweight = 3\n[[flow.step]]\nname = 't'\npath = '/other'\n";
    fs::write(folder.join("f.toml"), text).unwrap();
    let done = run(address, &folder.join("f.toml"), "-d 60s --warm-up 0s -c 5 -t 2");
    assert_eq!(done.code, Some(0), "{}", done.text);
    let seen = seen.lock().unwrap();
    let of_rows: Vec<_> = seen.iter().filter(|(path, _)| path.starts_with("/row/")).collect();
    assert!(of_rows.len() == 500 && of_rows.iter().all(|(_, count)| **count == 1), "{seen:?}");
    // Five standard deviations of a negative binomial distribution.
    assert!(seen["/other"].abs_diff(1500) < 390, "{seen:?}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn stages_shape_the_load() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = requests.clone();
    let address = serve(move |_, _, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        ok("")
    });
    let arrivals = "[[stage]]\nduration = '1s'\nrate = 200.0\n[[stage]]\nduration = '1s'\nrate = 200.0\n";
    let done = run_text(address, &format!("{arrivals}{ONE}"), "-c 10 -t 2");
    let count = requests.swap(0, Ordering::SeqCst);
    assert!((298..=302).contains(&count), "{count}: {}", done.text);
    assert_eq!(done.json["offered_per_second"].as_f64().unwrap().round(), 150.0);
    // At most three users, who think for 100 ms: the integral of users over time is 1.5 + 3 seconds.
    let users = "[[stage]]\nduration = '1s'\nusers = 3\n[[stage]]\nduration = '1s'\nusers = 3\n";
    let done = run_text(address, &format!("{users}{ONE}think = '100ms'\n"), "-t 2");
    let count = requests.load(Ordering::SeqCst);
    assert!((20..=52).contains(&count), "{count}: {}", done.text);
    assert_eq!(done.number("/settings/connections"), 3);
    let wrong = run_text(address, &format!("{users}{ONE}"), "--rate 5");
    assert!(wrong.code == Some(2) && wrong.text.contains("the option is `--rate`"), "{}", wrong.text);
}

#[test]
fn an_arrival_waits_for_a_user_from_its_intended_time() {
    // Every answer takes 20 ms, so that one user does 50 of 100 arrivals per second.
    let address = serve(|_, _, _| {
        thread::sleep(Duration::from_millis(20));
        ok("")
    });
    let done = run_text(address, ONE, "-n 50 -c 1 --rate 100");
    let longest = done.json.pointer("/summary/iterations/flows/0/max").and_then(Value::as_f64).unwrap();
    // The last one is due after 490 ms, and answered after 1,000 ms at the earliest.
    assert!(longest > 0.5, "{longest}: {}", done.text);
    // All steps of an iteration count, also those that are due behind the measurement.
    let two = format!("{ONE}[[flow.step]]\nname = 't'\npath = '/'\n");
    let done = run_text(address, &two, "-d 500ms --warm-up 0s -c 1 --rate 100");
    let figures =
        ["/summary/operations/0/answers", "/summary/operations/1/answers", "/summary/iterations/flows/0/answers"];
    assert_eq!(figures.map(|figure| done.number(figure)), [50; 3], "{}", done.text);
}

#[test]
fn faults_of_a_file_are_told_with_their_lines() {
    let address: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let done = run_text(address, &format!("slo = ['fast']\n{ONE}check = [{{ status = 'ok' }}]\n"), "");
    assert_eq!(done.code, Some(2));
    for text in
        [".toml: line 1: slo is `fast`, expected p99=2ms", ".toml: line 7: check.status is `ok`, expected a status"]
    {
        assert!(done.text.contains(text), "{text}: {}", done.text);
    }
    for (options, text) in [
        ("--depth 2", "--depth is `2`, expected 1: a user waits"),
        ("--verify", "--verify is `true`, expected false: the file has the checks"),
        ("--slo x:p99=1s", "expected the name of a flow or step before the colon: f, s"),
    ] {
        let done = run_text(address, ONE, options);
        assert!(done.code == Some(2) && done.text.contains(text), "{options}: {}", done.text);
    }
    let output = loadgen(&["http", "127.0.0.1:9", "--slo", "x:p99=1s"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--slo is `x:p99=1s`, expected an objective of the whole run"), "{text}");
}

#[test]
fn the_example_of_the_documentation_runs() {
    let (store, visits) = (Mutex::new(HashMap::new()), AtomicU64::new(1));
    let address = serve(move |method, path, body| match (method, path.split_at(path.rfind('/').unwrap_or(0))) {
        ("PUT", (_, key)) => {
            store.lock().unwrap().insert(key.to_owned(), body.to_owned());
            ok("{\"result\":\"OK\"}")
        }
        ("GET", (_, key)) => {
            let value = store.lock().unwrap().get(key).cloned().unwrap_or_default();
            ok(&format!("{{\"result\":\"{value}\"}}"))
        }
        _ => ok(&format!("{{\"result\":{}}}", visits.fetch_add(1, Ordering::SeqCst))),
    });
    let done = run(address, &example("visits.toml"), "-n 100 -c 4");
    assert_eq!((done.code, done.number("/summary/failed")), (Some(0), 0), "{}", done.text);
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/loadgen/scenarios.md")).unwrap();
    for file in ["visits.toml", "visitors.csv"] {
        assert!(docs.contains(&fs::read_to_string(example(file)).unwrap()), "{file} differs from the documentation");
    }
}

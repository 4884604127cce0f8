//! redis-cli and redis-benchmark.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use test_peers::{is_there, printed, printed_and_logged};

use crate::support::resp::{Value, request};
use crate::support::server::Server;

/// Keys of each type in the server that redis-cli looks at.
const KEYS: usize = 300;

/// A server with keys of all types, and redis-cli pointed at it; `None` where there is no redis-cli.
fn filled() -> Option<(Server, impl Fn(&[&str]) -> Command)> {
    if !is_there("redis-cli") {
        return None;
    }
    let server = Server::start();
    let mut client = server.connect();
    for number in 0..KEYS {
        let commands = [
            format!("SET string:{number} {}", "x".repeat(number)),
            format!("RPUSH list:{number} a b c"),
            format!("HSET hash:{number} f v g w"),
            format!("SADD set:{number} a b"),
            format!("ZADD zset:{number} 1 a 2 b"),
        ];
        commands.iter().for_each(|line| assert!(!client.ask(line).is_error(), "{line}"));
    }
    let port = server.addr.port().to_string();
    let cli = move |args: &[&str]| {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &port]).args(args);
        command
    };
    Some((server, cli))
}

#[test]
fn redis_cli_looks_at_the_keyspace() {
    let Some((_server, cli)) = filled() else { return };
    assert_eq!(printed(&cli(&["--scan"])).lines().count(), 5 * KEYS);
    assert_eq!(printed(&cli(&["--scan", "--pattern", "list:*"])).lines().count(), KEYS);
    assert_eq!(printed(&cli(&["--scan", "--pattern", "set:2?"])).lines().count(), 10);
    let big = printed(&cli(&["--bigkeys"]));
    assert!(big.contains(&format!("Sampled {} keys in the keyspace!", 5 * KEYS)), "{big}");
    assert!(big.contains(&format!("Biggest string found '\"string:{}\"' has {} bytes", KEYS - 1, KEYS - 1)), "{big}");
    for (kind, items) in [("lists", 900), ("hashs", 600), ("sets", 600), ("zsets", 600)] {
        assert!(big.contains(&format!("{KEYS} {kind} with {items} ")), "{big}");
    }
    let memory = printed(&cli(&["--memkeys"]));
    assert!(memory.contains(&format!("Sampled {} keys in the keyspace!", 5 * KEYS)), "{memory}");
    assert!(memory.contains(&format!("{KEYS} zsets with ")), "{memory}");
}

#[test]
fn redis_cli_prints_as_ever() {
    let Some((_server, cli)) = filled() else { return };
    let check = |args: &[&str], expected: &str| assert_eq!(printed(&cli(args)), expected, "{args:?}");
    check(&["GET", "string:3"], "xxx\n");
    check(&["--csv", "LRANGE", "list:1", "0", "-1"], "\"a\",\"b\",\"c\"\n");
    check(&["--no-raw", "HGET", "hash:1", "none"], "(nil)\n");
    check(&["-3", "--no-raw", "HGETALL", "hash:1"], "1# \"f\" => \"v\"\n2# \"g\" => \"w\"\n");
    check(&["-3", "--no-raw", "ZSCORE", "zset:1", "b"], "(double) 2\n");
    check(&["-r", "3", "-n", "1", "INCR", "n"], "1\n2\n3\n");
    check(&["--no-raw", "NOSUCH"], "(error) ERR unknown command 'NOSUCH', with args beginning with: \n");
    assert!(printed(&cli(&["INFO", "server"])).contains("redis_version:"));
    assert!(printed(&cli(&["COMMAND", "DOCS", "GET"])).contains("summary"));
}

#[test]
fn redis_cli_watches_the_server() {
    let Some((_server, cli)) = filled() else { return };
    let latency = printed(&cli(&["--latency", "--raw", "-i", "0.2"]));
    let figures: Vec<f64> = latency.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert!(matches!(figures[..], [min, max, mean, count] if min <= mean && mean <= max && count > 1.0), "{latency}");
    // It goes on for ever: a few lines are enough.
    let mut stat = cli(&["--stat", "-i", "0.05"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<_> = BufReader::new(stat.stdout.take().unwrap()).lines().take(4).map(Result::unwrap).collect();
    stat.kill().unwrap();
    stat.wait().unwrap();
    let keys = lines.last().unwrap().split_whitespace().next().unwrap();
    assert_eq!(keys, (5 * KEYS).to_string(), "{lines:?}");
}

#[test]
fn redis_cli_pipes_a_file() {
    const COUNT: usize = 20_000;
    let Some((server, cli)) = filled() else { return };
    let mut file = Vec::new();
    for number in 0..COUNT {
        let key = format!("piped:{number}");
        file.extend(request(&["SET", &key, &"v".repeat(number % 100)]));
    }
    let mut pipe = cli(&["--pipe"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    pipe.stdin.take().unwrap().write_all(&file).unwrap();
    let output = pipe.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(&format!("errors: 0, replies: {COUNT}")), "{text}");
    let mut client = server.connect();
    assert_eq!(client.ask("DBSIZE"), Value::Int((5 * KEYS + COUNT) as i64));
    assert_eq!(client.ask("STRLEN piped:199"), Value::Int(99));
}

#[test]
fn redis_benchmark_runs_its_default_set() {
    if !is_there("redis-benchmark") {
        return;
    }
    let server = Server::start();
    let port = server.addr.port().to_string();
    for more in [&["-c", "20"][..], &["-P", "16", "-r", "100", "-c", "10"], &["-3", "-c", "5"]] {
        let mut command = Command::new("redis-benchmark");
        command.args(["-p", &port, "-n", "1000", "--csv"]).args(more);
        let table = printed_and_logged(&command);
        assert!(!table.contains("rror"), "{more:?}:\n{table}");
        for name in ["PING_INLINE", "SET", "GET", "LPUSH", "SPOP", "ZPOPMIN", "LRANGE_600", "MSET (10 keys)"] {
            assert!(table.contains(&format!("\"{name}")), "{more:?} without {name}:\n{table}");
        }
    }
}

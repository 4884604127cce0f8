//! Instructions per gRPC call and per message of a stream, by library.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use xtask::process::{Server, words};

use super::callgrind;
use super::h2::{Client, Method};
use super::options::Options;
use super::profile::{PARTS, by_crate, total};
use crate::programs;

/// Replies of a stream.
const MESSAGES: u8 = 100;

/// How much of a part is named apart among the rest.
const WORTH_NAMING: f64 = 5.0;

/// Counts and prints; writes the record if asked to.
pub(super) fn run(options: &Options, folder: &Path) -> Result<()> {
    let mut text = format!("{} calls at a time on one connection, user-space instructions:\n", options.depth);
    if let Some(command) = &options.server {
        text += &server(options, folder, command)?;
    } else {
        let ours = programs::ours("grpc-server")?;
        text += &server(options, folder, &format!("{} --workers 1", ours.display()))?;
        text += &server(options, folder, &programs::peer("tonic")?.display().to_string())?;
    }
    print!("{text}");
    if options.record {
        let path = xtask::workspace::root().join("lab/record/instructions-grpc.txt");
        let about = "# `cargo xtask instructions --grpc --record`; the figures to bring down.\n\
                     # A line of code counts for the crate of its file, one of the standard library for that of its symbol.\n";
        fs::write(&path, format!("{about}{text}"))?;
        println!("record: {}", path.display());
    }
    Ok(())
}

/// Whether a server on this port of the loopback interface speaks HTTP/2: its first frame is SETTINGS.
fn answers(port: u16) -> bool {
    use std::io::{Read, Write};
    let hello = || -> std::io::Result<bool> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")?;
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        Ok(head[3] == 4)
    };
    hello().unwrap_or(false)
}

/// The figures of one server.
fn server(options: &Options, folder: &Path, server_command: &str) -> Result<String> {
    let port = test_peers::free_port();
    let (output, mut command) = callgrind::command(folder, port);
    // Symbols as they are: `profile` reads them.
    command.push("--demangle=no".to_owned());
    command.extend(words(server_command));
    command.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
    let server = Server::start_when(answers, &command, port, folder)?;
    callgrind::control(&server, &["-i", "on"])?;
    let name = Path::new(server_command.split_whitespace().next().unwrap_or_default());
    let mut text = format!("{}\n", name.file_name().unwrap_or_default().display());
    let streams = (options.requests / u64::from(MESSAGES)).max(1);
    let figures =
        [("call", say_hello(), options.requests, options.depth, 1), ("message", many_times(), streams, 1, MESSAGES)];
    for (dump, (unit, method, calls, depth, counts)) in figures.into_iter().enumerate() {
        let mut client = Client::open(port, method)?;
        client.calls(calls / 10, depth)?;
        callgrind::control(&server, &["-z"])?;
        client.calls(calls, depth)?;
        callgrind::control(&server, &["-d"])?;
        let dump = callgrind::dumped(&output, dump + 1)?;
        let counted = calls / depth * depth * u64::from(counts);
        text += &split(&dump, unit, counted as f64)?;
    }
    Ok(text)
}

/// One line: all of it, then its parts.
fn split(dump: &str, unit: &str, counted: f64) -> Result<String> {
    let (all, mut crates) = (total(dump)?, by_crate(dump)?);
    let sum = crates.values().sum::<u64>();
    // Threads that run while a dump is written move a few from one to the other.
    let is_all = sum.abs_diff(all) as f64 <= all as f64 * 1e-3;
    ensure!(is_all, "the parts have {sum} instructions, all of it {all}");
    let mut text = format!("  {:.0} per {unit}:", all as f64 / counted);
    for (part, names) in PARTS {
        let cost: u64 = if names.is_empty() {
            crates.values().sum()
        } else {
            names.iter().filter_map(|name| crates.remove(*name)).sum()
        };
        if cost > 0 {
            write!(text, " {part} {:.0}", cost as f64 / counted)?;
        }
    }
    let mut rest: Vec<_> = crates.into_iter().map(|(name, cost)| (cost as f64 / counted, name)).collect();
    rest.retain(|(cost, _)| *cost >= WORTH_NAMING);
    rest.sort_by(|a, b| b.0.total_cmp(&a.0));
    let named: Vec<_> = rest.iter().map(|(cost, name)| format!("{name} {cost:.0}")).collect();
    if !named.is_empty() {
        write!(text, " ({})", named.join(", "))?;
    }
    text.push('\n');
    Ok(text)
}

fn say_hello() -> Method {
    Method {
        path: "/helloworld.Greeter/SayHello",
        request: framed(b"\x0a\x05world"),
        answer: framed(b"\x0a\x0bHello world"),
    }
}

fn many_times() -> Method {
    let request = framed(&[b"\x0a\x05world\x10", &[MESSAGES][..]].concat());
    let answer = framed(b"\x0a\x0bHello world").repeat(MESSAGES.into());
    Method { path: "/helloworld.Greeter/SayHelloManyTimes", request, answer }
}

/// A message as gRPC sends it: uncompressed, its length before it.
fn framed(message: &[u8]) -> Vec<u8> {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
}

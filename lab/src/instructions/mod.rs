//! Instructions per request, counted by callgrind: the same figure on a busy machine. Of redis-server for GET and SET, pipelined or
//! one at a time, also those that lock the memory bus; of http-server for its hot paths, of grpc-server per call and message.

mod backend;
mod callgrind;
mod grpc;
mod h2;
mod options;
mod profile;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Result, ensure};
use xtask::process::Server;

use crate::compare::memory_only;
use crate::load::{Connection, Request};
use crate::programs;
use backend::Backend;
pub(crate) use options::Options;

/// The requests to http-server.
const PATHS: [&str; 4] = ["/", "/json", "/ann", "/get?key=foo"];

/// Connections to http-server: each sends one request, then each answer is read.
const CONNECTIONS: u64 = 20;

/// Counts and prints.
///
/// # Errors
/// When valgrind is missing, or the server does not run under it.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.depth > 0 && options.requests >= options.depth, "at least one full batch of requests is needed");
    let folder = xtask::workspace::target_dir().join("instructions");
    fs::create_dir_all(&folder)?;
    if options.http {
        return http(options, &folder);
    }
    if options.grpc {
        return grpc::run(options, &folder);
    }
    let port = test_peers::free_port();
    let server_command =
        options.server.clone().unwrap_or_else(|| xtask::workspace::shipped_server().display().to_string());
    let (output, mut command) = callgrind::command(&folder, port);
    command.extend(server_command.split_whitespace().map(String::from));
    command.extend(memory_only(port));
    // callgrind_control looks for callgrind's options in the command line, in whose place a title would stand.
    command.extend(["--set-proc-title", "no"].map(String::from));
    if options.cluster {
        command.extend(["--cluster-enabled", "yes", "--cluster-port"].map(String::from));
        command.push(test_peers::free_port().to_string());
    }
    let server = Server::start(&command, port, &folder)?;

    let mut connection = Connection::open(port, options.value_size)?;
    if options.cluster {
        connection.serve_all_slots()?;
    }
    connection.fill(options.keys)?;
    callgrind::control(&server, &["-i", "on"])?;
    println!(
        "{}{}, {} deep, {} keys, values of {} bytes:",
        server_command,
        if options.cluster { " --cluster-enabled yes" } else { "" },
        options.depth,
        options.keys,
        options.value_size
    );
    for (dump, (name, request)) in [("GET", Request::Get), ("SET", Request::Set)].into_iter().enumerate() {
        connection.pipeline(request, options.requests / 10, options.depth, options.keys)?;
        callgrind::control(&server, &["-z"])?;
        connection.pipeline(request, options.requests, options.depth, options.keys)?;
        callgrind::control(&server, &["-d"])?;
        let dump = callgrind::dumped(&output, dump + 1)?;
        let counted = (options.requests / options.depth * options.depth) as f64;
        let (all, locked) = (profile::total(&dump)? as f64 / counted, profile::locked(&dump)? as f64 / counted);
        println!("{name}: {all:.0} instructions per request, of which {locked:.1} are locked");
    }
    Ok(())
}

/// Whether a server on this port of the loopback interface answers `/` with 200.
fn answers(port: u16) -> bool {
    let get = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(&status == b"HTTP/1.1 200")
    };
    get().unwrap_or(false)
}

/// The same for http-server.
fn http(options: &Options, folder: &Path) -> Result<()> {
    let program = programs::ours("http-server")?;
    let backend = Backend::start(folder).inspect_err(|error| println!("left out: /get: {error:#}")).ok();
    let port = test_peers::free_port();
    let (output, mut command) = callgrind::command(folder, port);
    command.push(program.display().to_string());
    command.extend(["--workers", "1", "--listen"].map(String::from));
    command.push(format!("127.0.0.1:{port}"));
    command.extend(backend.iter().flat_map(|backend| ["--redis".to_owned(), backend.place().to_owned()]));
    let server = Server::start_when(answers, &command, port, folder)?;
    let connect = |_| TcpStream::connect(("127.0.0.1", port));
    let mut connections = (0..CONNECTIONS).map(connect).collect::<std::io::Result<Vec<_>>>()?;
    callgrind::control(&server, &["-i", "on"])?;
    println!("{}, a request each on {CONNECTIONS} connections:", program.display());
    let paths = PATHS.iter().filter(|path| backend.is_some() || !path.starts_with("/get"));
    let turns = options.requests / 10 / CONNECTIONS;
    for (dump, path) in paths.enumerate() {
        ask(&mut connections, path, turns / 10 + 1)?;
        callgrind::control(&server, &["-z"])?;
        ask(&mut connections, path, turns)?;
        callgrind::control(&server, &["-d"])?;
        let total = profile::total(&callgrind::dumped(&output, dump + 1)?)?;
        println!("{path}: {:.0} instructions per request", total as f64 / (turns * CONNECTIONS) as f64);
    }
    Ok(())
}

/// Sends what wrk would send, on all connections before any answer is read.
fn ask(connections: &mut [TcpStream], path: &str, turns: u64) -> Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n");
    let mut answer = [0; 4096];
    for _ in 0..turns {
        connections.iter_mut().try_for_each(|connection| connection.write_all(request.as_bytes()))?;
        for connection in &mut *connections {
            // Small answers to single requests come in one piece.
            let len = test_peers::read(connection, &mut answer)?;
            ensure!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..len]));
        }
    }
    Ok(())
}

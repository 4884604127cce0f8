//! What strangers may send to http-server, over HTTP/1.1, HTTP/2 and HTTP/3, and to grpc-server, and what becomes of it: one table, run
//! against the release builds.
//!
//! Each row is twenty connections that attack at the same time, while two honest clients go on asking. A row holds if each
//! attacker gets the end that the row names, the server's memory stays within its bound, its processor time within a tenth of a
//! core for each attacker, and every honest request is answered. How long honest requests take is printed, and decides nothing: over a second at
//! least, in which the row is there once. Attackers give way to all others, as if theirs were other machines. What they take of this one all
//! the same, clients of a second server show, which nobody attacks.

mod attacker;
mod frames;
mod honest;
mod http1;
mod http2;
mod http3;

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::attacker::{Attack, Row};
use self::honest::{Honest, Speech};
use crate::process::Server;

/// Options of `cargo xtask attacks`.
#[derive(Args)]
pub(crate) struct Options {
    /// Rows whose name holds this alone.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Leaves out what takes seconds, as those do who do not read.
    #[arg(long)]
    short: bool,
    /// In place of building them for release takes the programs in this folder as they are, attacks all servers at once, and
    /// judges no processor time.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

/// Connections that attack at one time.
const ATTACKERS: u32 = 20;

/// Memory that a row may make the server have beyond what it had before, unless it says otherwise. The servers' own limits add up to
/// this: 20 connections with 1 MiB of output each, and what the allocator keeps.
const BOUND_MIB: u64 = 64;

/// Processor time that one attacker may take: a tenth of a core for the second within which floods end.
const BOUND_CPU: Duration = Duration::from_millis(100);

/// How long honest clients ask before the attack, for comparison, and at least while it goes on.
const QUIET: Duration = Duration::from_secs(1);
/// The same where their times say nothing, as all servers are attacked at once.
const QUIET_AT_ONCE: Duration = Duration::from_millis(300);
/// Runs the table.
///
/// # Errors
/// When a server cannot be started, or a row does not hold.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.programs.is_none() {
        for package in ["redis-server", "grpc-server"] {
            crate::programs::ours(package)?;
        }
        crate::programs::ours_with("http-server", &["http3"])?;
    }
    let setting = Setting::new(options.programs.as_deref())?;
    println!(
        "| attack | over | ends with | more memory, MiB | CPU of an attacker, ms | honest p99 before, during, elsewhere meanwhile, ms |"
    );
    println!("|---|---|---|---|---|---|");
    let of = |rows: Vec<Attack>| rows.into_iter().map(Row::from).collect();
    let tables: [(Speech, Vec<Row>); 4] = [
        (Speech::Http1, of(http1::rows())),
        (Speech::Http2, of(http2::rows(Speech::Http2))),
        (Speech::Http3, http3::rows(&setting.folder)),
        (Speech::Grpc, of(http2::rows(Speech::Grpc))),
    ];
    let found: Vec<_> = if options.programs.is_none() {
        tables.iter().map(|(speech, rows)| setting.check_all(*speech, rows, options)).collect()
    } else {
        // Each has a server of its own, and most rows wait for most of their time.
        thread::scope(|scope| {
            let setting = &setting;
            let running =
                tables.each_ref().map(|(speech, rows)| scope.spawn(move || setting.check_all(*speech, rows, options)));
            running.into_iter().map(|table| table.join().expect("a table does not panic")).collect()
        })
    };
    let (mut count, mut failures) = (0, Vec::new());
    for found in found {
        let (rows, found) = found?;
        count += rows;
        failures.extend(found);
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    println!("attacks: {count} held");
    Ok(())
}

/// Has this thread run only where no other wants to.
fn give_way() -> Result<()> {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let status = Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status().context("chrt")?;
    if status.success() { Ok(()) } else { bail!("chrt --idle: {status}") }
}

/// Runs a row against the first of two servers that are the same; what does not hold of it.
fn check(servers: &[Server; 2], speech: Speech, row: &Row, folder: &Path, is_optimized: bool) -> Result<Vec<String>> {
    let [addr, other] = servers.each_ref().map(|server| SocketAddr::from(([127, 0, 0, 1], server.port())));
    let server = &servers[0];
    // As many clients as during the attack.
    let (quiet, elsewhere) = (Honest::start(addr, speech, folder), Honest::start(other, speech, folder));
    thread::sleep(if is_optimized { QUIET } else { QUIET_AT_ONCE });
    let before = quiet.end()?;
    elsewhere.end()?;
    let (resident, cpu) = (server.resident_bytes()?, server.cpu_seconds()?);
    server.forget_peak()?;
    let is_over = &AtomicBool::new(false);
    // Attackers get ready before honest clients ask, and begin when those do.
    let together = &Barrier::new(ATTACKERS as usize + 1);
    let (seen, honest, elsewhere, began) = thread::scope(|scope| {
        let attacks = || {
            let is_ready = if is_optimized { give_way() } else { Ok(()) };
            together.wait();
            together.wait();
            is_ready.and_then(|()| (row.attack)(addr))
        };
        let attackers: Vec<_> = (0..ATTACKERS).map(|_| scope.spawn(attacks)).collect();
        together.wait();
        let (honest, elsewhere) = (Honest::start(addr, speech, folder), Honest::start(other, speech, folder));
        let began = Instant::now();
        together.wait();
        if let Some(request) = &row.beside {
            scope.spawn(move || attacker::repeat(addr, request, is_over));
        }
        let seen: Vec<_> =
            attackers.into_iter().map(|attacker| attacker.join().expect("an attacker does not panic")).collect();
        is_over.store(true, Relaxed);
        (seen, honest, elsewhere, began)
    });
    let took = began.elapsed();
    let more = server.peak_bytes()?.saturating_sub(resident) / (1024 * 1024);
    // The honest clients' share is known from the quiet time, and small.
    let cpu = Duration::from_secs_f64((server.cpu_seconds()? - cpu) / f64::from(ATTACKERS));
    if is_optimized {
        thread::sleep(QUIET.saturating_sub(took));
    }
    let (during, elsewhere) = (honest.end()?, elsewhere.end()?);
    let mut failures = Vec::new();
    let mut ends = Vec::new();
    for seen in seen {
        match seen? {
            Ok(end) if !ends.contains(&end) => ends.push(end),
            Ok(_) => {}
            Err(what) => failures.push(what),
        }
    }
    failures.sort();
    failures.dedup();
    let name = row.name;
    let [before, during, elsewhere] = [before, during, elsewhere].map(|p99| p99.as_secs_f64() * 1e3);
    ends.sort();
    println!(
        "| {name} | {speech} | {} | {more} | {:.1} | {before:.2}, {during:.2}, {elsewhere:.2} |",
        ends.join(", "),
        cpu.as_secs_f64() * 1e3
    );
    if more > row.bound_mib {
        failures.push(format!("{more} MiB of memory"));
    }
    // A flood that goes on is let go on at the rate that it may.
    if is_optimized && cpu > BOUND_CPU.mul_f64(took.as_secs_f64().max(1.0)) {
        failures.push(format!("{cpu:?} of processor time for each attacker"));
    }
    Ok(failures.into_iter().map(|what| format!("{name}, {speech}: {what}")).collect())
}

/// Where the servers run.
struct Setting {
    folder: PathBuf,
    programs: PathBuf,
    /// http-server's Redis.
    redis: Server,
}

impl Setting {
    fn new(programs: Option<&Path>) -> Result<Self> {
        let programs = programs.map_or_else(|| Ok(crate::target_dir().join("release")), Path::canonicalize)?;
        let folder = crate::target_dir().join("attacks");
        let root = folder.join("root");
        fs::create_dir_all(&root)?;
        fs::write(root.join("big"), vec![b'x'; 64 * 1024 * 1024])?;
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        fs::write(folder.join("cert.pem"), certified.cert.pem())?;
        fs::write(folder.join("key.pem"), certified.signing_key.serialize_pem())?;
        let port = free_port()?;
        let redis = programs.join("redis-server").display().to_string();
        let redis = command(&redis, &["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        Ok(Self { redis: Server::start(&redis, port, &folder)?, programs, folder })
    }

    /// Runs the rows that are wanted; how many those are, and what does not hold.
    fn check_all(&self, speech: Speech, rows: &[Row], options: &Options) -> Result<(usize, Vec<String>)> {
        let is_wanted = |row: &&Row| row.name.contains(&options.only) && !(options.short && row.is_long);
        let rows: Vec<_> = rows.iter().filter(is_wanted).collect();
        let mut failures = Vec::new();
        if rows.is_empty() {
            return Ok((0, failures));
        }
        let servers = [self.server(speech)?, self.server(speech)?];
        for row in &rows {
            let found = check(&servers, speech, row, &self.folder, options.programs.is_none());
            failures.extend(found.with_context(|| row.name)?);
        }
        Ok((rows.len(), failures))
    }

    fn server(&self, speech: Speech) -> Result<Server> {
        let port = free_port()?;
        let listen = format!("{}127.0.0.1:{port}", if speech == Speech::Http3 { "tls:" } else { "" });
        let redis = format!("127.0.0.1:{}", self.redis.port());
        let root = self.folder.join("root").display().to_string();
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| self.folder.join(name).display().to_string());
        let (package, flags) = match speech {
            Speech::Http1 | Speech::Http2 | Speech::Http3 => {
                let timeouts = ["--head-timeout", "0.5", "--body-timeout", "0.5", "--write-timeout", "0.5"];
                // QUIC takes silence for the end also of who is answered just now, as a busy machine may be silent for a second.
                let idle = if speech == Speech::Http3 { "6" } else { "1.5" };
                let more = ["--idle-timeout", idle, "--root", &root, "--redis", &redis, "--redis-allow", "@all"];
                let quic = ["--http3", "--tls-cert", &cert, "--tls-key", &key];
                let quic = if speech == Speech::Http3 { &quic[..] } else { &[] };
                ("http-server", [&timeouts[..], &more, quic].concat())
            }
            Speech::Grpc => {
                ("grpc-server", vec!["--keepalive", "0.5", "--keepalive-timeout", "0.5", "--max-idle", "1"])
            }
        };
        let program = self.programs.join(package).display().to_string();
        let fixed = ["--listen", &listen, "--workers", "2"];
        Server::start_when(is_there, &command(&program, &[&fixed[..], &flags].concat()), port, &self.folder)
    }
}

fn command(program: &str, arguments: &[&str]) -> Vec<String> {
    [program].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

fn is_there(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Drop for Setting {
    fn drop(&mut self) {
        // Made anew the next time.
        let _ = fs::remove_dir_all(self.folder.join("root"));
    }
}

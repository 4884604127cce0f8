//! Attacks by strangers on http-server, over HTTP/1.1, HTTP/2 and HTTP/3, and on grpc-server, and their outcome: one table, run against
//! the shipped builds.
//!
//! Each row is twenty connections that attack at the same time, while two honest clients go on asking. A row holds if each attacker gets
//! the end that the row names, the server's memory stays within its bound, its processor time within a tenth of a core for each attacker,
//! and every honest request is answered. How long honest requests take is printed, and decides nothing: over a second at least, in which
//! the row is there once, and the median of some runs. Attackers give way to all others, as if theirs were other machines. Clients of a
//! second server, which is not attacked, show how much they take of this machine all the same.

mod attacker;
mod frames;
mod honest;
mod http1;
mod http2;
mod http3;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use xtask::process::Server;

use self::attacker::{Attack, Row};
use self::honest::{Honest, Speech};
use crate::compare::stats::median;

/// Options of `cargo xtask attacks`.
#[derive(Args)]
pub(crate) struct Options {
    /// Rows whose name holds this alone.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Leaves out rows that take seconds, such as those of clients that do not read
    #[arg(long)]
    short: bool,
    /// In place of building them for release takes the programs in this folder as they are, attacks all servers at once, and
    /// judges no processor time.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Runs of the table, of which the medians of times are printed, and the worst of everything else. By default three, or one of programs
    /// that are not built here.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
}

impl Options {
    /// Whether the programs are built for release, so that times say something.
    fn is_optimized(&self) -> bool {
        self.programs.is_none()
    }

    fn runs(&self) -> u16 {
        self.runs.unwrap_or_else(|| if self.is_optimized() { 3 } else { 1 })
    }
}

/// Connections that attack at one time.
const ATTACKERS: u32 = 20;

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
    if options.is_optimized() {
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
    let found: Vec<_> = if options.is_optimized() {
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
    let (mut count, mut failures, mut long_waits) = (0, Vec::new(), Vec::new());
    for found in found {
        for (name, found) in found? {
            count += 1;
            failures.extend(found.failures.iter().map(|what| format!("{name}: {what}")));
            if !found.honest.are_short() {
                long_waits.push(name);
            }
        }
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    println!("attacks: {count} held");
    if options.is_optimized() {
        println!("honest p99 within 2 x of before or elsewhere: {} of {count}", count - long_waits.len());
        long_waits.iter().for_each(|name| println!("  beyond: {name}"));
    }
    Ok(())
}

/// Has this thread run only where no other wants to.
fn give_way() -> Result<()> {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let status = Command::new("chrt").args(["--idle", "--pid", "0", &thread]).status().context("chrt")?;
    if status.success() { Ok(()) } else { bail!("chrt --idle: {status}") }
}

/// The outcome of a row, once or as many times as it was run.
struct Found {
    /// How the attackers' connections ended.
    ends: BTreeSet<String>,
    /// Memory that the server took beyond what it had before: the most.
    more_mib: u64,
    /// Processor time that it spent for each attacker: the most.
    cpu: Duration,
    /// The waits of honest clients.
    honest: Waits,
    /// The conditions that do not hold.
    failures: BTreeSet<String>,
}

impl Found {
    /// Times are those in the middle; of everything else, the worst.
    fn of_all(runs: Vec<Self>) -> Self {
        Self {
            ends: runs.iter().flat_map(|run| run.ends.clone()).collect(),
            more_mib: runs.iter().map(|run| run.more_mib).max().unwrap_or_default(),
            cpu: runs.iter().map(|run| run.cpu).max().unwrap_or_default(),
            honest: Waits::medians(&runs.iter().map(|run| run.honest).collect::<Vec<_>>()),
            failures: runs.into_iter().flat_map(|run| run.failures).collect(),
        }
    }

    fn print(&self, name: &str, speech: Speech) {
        let ends: Vec<_> = self.ends.iter().map(String::as_str).collect();
        let (cpu, Waits { before, during, elsewhere }) = (millis(self.cpu), self.honest);
        println!(
            "| {name} | {speech} | {} | {} | {cpu:.1} | {before:.2}, {during:.2}, {elsewhere:.2} |",
            ends.join(", "),
            self.more_mib
        );
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The 99th percentiles of honest clients' times, in milliseconds.
#[derive(Clone, Copy)]
struct Waits {
    /// Before the attack.
    before: f64,
    during: f64,
    /// At a second server, which is not attacked, meanwhile.
    elsewhere: f64,
}

impl Waits {
    fn medians(runs: &[Self]) -> Self {
        let median = |of: fn(&Self) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>());
        Self {
            before: median(|run| run.before),
            during: median(|run| run.during),
            elsewhere: median(|run| run.elsewhere),
        }
    }

    /// Whether an attack makes honest clients wait for no more than twice as long as they do without it: either without attackers, or
    /// where those take this machine's cores alone.
    fn are_short(&self) -> bool {
        self.during <= 2.0 * self.before.max(self.elsewhere)
    }
}

/// Runs a row once, against the first of two servers that are the same.
fn check(servers: &[Server; 2], speech: Speech, row: &Row, folder: &Path, is_optimized: bool) -> Result<Found> {
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
    let more_mib = server.peak_bytes()?.saturating_sub(resident) / (1024 * 1024);
    // The honest clients' share is known from the quiet time, and small.
    let cpu = Duration::from_secs_f64((server.cpu_seconds()? - cpu) / f64::from(ATTACKERS));
    if is_optimized {
        thread::sleep(QUIET.saturating_sub(took));
    }
    let [before, during, elsewhere] = [before, honest.end()?, elsewhere.end()?].map(millis);
    let (mut failures, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for seen in seen {
        match seen? {
            Ok(end) => ends.insert(end),
            Err(what) => failures.insert(what),
        };
    }
    if more_mib > row.bound_mib {
        failures.insert(format!("{more_mib} MiB of memory"));
    }
    // A flood that goes on is let go on at the rate that it may.
    if is_optimized && cpu > BOUND_CPU.mul_f64(took.as_secs_f64().max(1.0)) {
        failures.insert(format!("{cpu:?} of processor time for each attacker"));
    }
    Ok(Found { ends, more_mib, cpu, honest: Waits { before, during, elsewhere }, failures })
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
        let programs = programs.map_or_else(|| Ok(xtask::workspace::shipped("")), Path::canonicalize)?;
        let folder = xtask::workspace::target_dir().join("attacks");
        let root = folder.join("root");
        fs::create_dir_all(&root)?;
        fs::write(root.join("big"), vec![b'x'; 64 * 1024 * 1024])?;
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        fs::write(folder.join("cert.pem"), certified.cert.pem())?;
        fs::write(folder.join("key.pem"), certified.signing_key.serialize_pem())?;
        let port = test_peers::free_port();
        let redis = programs.join("redis-server").display().to_string();
        let redis = command(&redis, &["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        Ok(Self { redis: Server::start(&redis, port, &folder)?, programs, folder })
    }

    /// Runs the rows that are wanted, and prints what becomes of them.
    fn check_all(&self, speech: Speech, rows: &[Row], options: &Options) -> Result<Vec<(String, Found)>> {
        let is_wanted = |row: &&Row| row.name.contains(&options.only) && !(options.short && row.is_long);
        let rows: Vec<_> = rows.iter().filter(is_wanted).collect();
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let servers = [self.server(speech)?, self.server(speech)?];
        let mut found: Vec<_> = rows.iter().map(|_| Vec::new()).collect();
        // The table as a whole, again and again: what disturbs this machine does so for a while.
        for _ in 0..options.runs() {
            for (row, found) in rows.iter().zip(&mut found) {
                found.push(check(&servers, speech, row, &self.folder, options.is_optimized()).context(row.name)?);
            }
        }
        let found = rows.iter().zip(found).map(|(row, runs)| {
            let found = Found::of_all(runs);
            found.print(row.name, speech);
            (format!("{}, {speech}", row.name), found)
        });
        Ok(found.collect())
    }

    fn server(&self, speech: Speech) -> Result<Server> {
        let port = test_peers::free_port();
        let listen = format!("{}127.0.0.1:{port}", if speech == Speech::Http3 { "tls:" } else { "" });
        let redis = format!("127.0.0.1:{}", self.redis.port());
        let root = self.folder.join("root").display().to_string();
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| self.folder.join(name).display().to_string());
        let (package, flags) = match speech {
            Speech::Http1 | Speech::Http2 | Speech::Http3 => {
                let timeouts = ["--head-timeout", "0.5", "--body-timeout", "0.5", "--write-timeout", "0.5"];
                // QUIC takes silence for the end even while the server answers, as a busy machine may be silent for a second.
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

impl Drop for Setting {
    fn drop(&mut self) {
        // Made anew the next time.
        let _ = fs::remove_dir_all(self.folder.join("root"));
    }
}

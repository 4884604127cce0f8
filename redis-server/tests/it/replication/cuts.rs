//! Links that are cut at any byte.

use std::io::ErrorKind;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock};

use super::*;

/// Connections to a server that are cut after some bytes, as often as is asked for.
struct Cutter {
    addr: std::net::SocketAddr,
    done: Arc<AtomicUsize>,
    /// Whether it cuts.
    cuts: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Cutter {
    fn before(target: std::net::SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (addr, done) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let (cuts, stop) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (count, cutting, is_over) = (Arc::clone(&done), Arc::clone(&cuts), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut random = Random::new(seed);
            while let Ok((from, _)) = listener.accept() {
                if is_over.load(Relaxed) {
                    return;
                }
                let Ok(to) = TcpStream::connect(target) else { continue };
                if pass(from, to, 100 + random.below(6000), &cutting, &is_over)
                    && count.fetch_add(1, Relaxed) + 1 == *CUTS
                {
                    cutting.store(false, Relaxed);
                }
            }
        });
        Self { addr, done, cuts, stop, thread: Some(thread) }
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = TcpStream::connect(self.addr);
        // A panic of that thread is reported there.
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// Passes bytes both ways until `most` have come down while it is `cutting`, or all is over. Whether it was cut.
fn pass(from: TcpStream, to: TcpStream, most: usize, cutting: &AtomicBool, is_over: &AtomicBool) -> bool {
    let (up_from, up_to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let never = || AtomicBool::new(false);
    let up = thread::spawn(move || copy(&up_from, &up_to, usize::MAX, &never(), &never()));
    // Servers at both ends outlive the cutter: it must look up from a link on which nothing comes.
    to.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let has_cut = copy(&to, &from, most, cutting, is_over);
    for stream in [&from, &to] {
        // The other end may have done so.
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    let _ = up.join();
    has_cut
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, most: usize, cutting: &AtomicBool, is_over: &AtomicBool) -> bool {
    let (mut buffer, mut passed) = ([0; 4096], 0);
    while !is_over.load(Relaxed) {
        let count = match test_peers::read(&mut from, &mut buffer) {
            Ok(count @ 1..) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
            Ok(0) | Err(_) => return false,
        };
        let is_counted = cutting.load(Relaxed);
        let count = if is_counted { count.min(most - passed) } else { count };
        if to.write_all(&buffer[..count]).is_err() {
            return false;
        }
        passed += if is_counted { count } else { 0 };
        if passed == most {
            return true;
        }
    }
    false
}

/// How often a link is cut: twenty times, or as `LINK_CUTS` says.
static CUTS: LazyLock<usize> =
    LazyLock::new(|| std::env::var("LINK_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(20));

/// Has the replica follow through a link that is cut again and again while others write: it needs one snapshot.
fn check(
    primary: std::net::SocketAddr,
    seed: u64,
    mut follow: impl FnMut(u16),
    mut is_up: impl FnMut() -> bool,
    mut converges: impl FnMut(),
    mut figure: impl FnMut(&str) -> String,
) {
    let cutter = Cutter::before(primary, seed);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let stop = &stop;
            scope.spawn(move || write(&mut Client::connect(primary), seed + writer, usize::MAX, stop));
        }
        let _writers = Stopped(&stop);
        follow(cutter.addr.port());
        until("the link is up", &mut is_up);
        cutter.cuts.store(true, Relaxed);
        let start = std::time::Instant::now();
        while cutter.done.load(Relaxed) < *CUTS {
            assert!(start.elapsed().as_secs() < 300, "{} cuts", cutter.done.load(Relaxed));
            thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    converges();
    let (full, partial) = (figure("sync_full"), figure("sync_partial_ok").parse::<usize>().unwrap());
    // A cut before the snapshot has come, or in a handshake, is none of a stream.
    println!("{} cuts: {full} full synchronizations, {partial} partial ones", *CUTS);
    assert_eq!(full, "1");
    assert!(partial >= *CUTS * 9 / 10, "{partial}");
}

const BACKLOG: (&str, &str) = ("repl-backlog-size", "256mb");

#[test]
fn a_genuine_replica_needs_one_snapshot() {
    let primary = primary(&[BACKLOG]);
    let Some(genuine) = Genuine::start(&[]) else { return };
    let genuine = std::cell::RefCell::new(genuine);
    check(
        primary.addr,
        700,
        |port| {
            genuine.borrow_mut().ask(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
        },
        || super::is_up(&mut genuine.borrow_mut()),
        || converges(&primary, &mut genuine.borrow_mut()),
        |name| field(&primary.connect().ask("INFO stats"), name),
    );
}

#[test]
fn ours_needs_one_snapshot_of_a_genuine_primary() {
    let settings = [("repl-diskless-sync-delay", "0"), BACKLOG];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Some(mut genuine) = Genuine::start(&settings) else { return };
    let addr = genuine.listen();
    let genuine = std::cell::RefCell::new(genuine);
    let replica = std::cell::RefCell::new(None);
    check(
        addr,
        710,
        |port| *replica.borrow_mut() = Some(Replica::of(port, "cut")),
        || replica.borrow().as_ref().is_some_and(Replica::is_up),
        || {
            let replica = replica.borrow();
            let replica = replica.as_ref().unwrap();
            replica.reaches(offset_of(&mut genuine.borrow_mut()));
            let digest = genuine.borrow_mut().ask(&["DEBUG", "DIGEST"]);
            assert_eq!(replica.server.connect().ask("DEBUG DIGEST"), digest);
        },
        |name| field(&genuine.borrow_mut().ask(&["INFO", "stats"]), name),
    );
}

#[test]
fn ours_needs_one_snapshot_of_ours() {
    let primary = primary(&[BACKLOG]);
    let replica = std::cell::RefCell::new(None);
    check(
        primary.addr,
        720,
        |port| *replica.borrow_mut() = Some(Replica::of(port, "cut-ours")),
        || replica.borrow().as_ref().is_some_and(Replica::is_up),
        || {
            let replica = replica.borrow();
            let replica = replica.as_ref().unwrap();
            replica.reaches(primary.instance.journal.offset());
            assert_eq!(replica.server.connect().ask("DEBUG DIGEST"), primary.connect().ask("DEBUG DIGEST"));
        },
        |name| field(&primary.connect().ask("INFO stats"), name),
    );
}

/// A transaction on either side that cuts the link and goes on is one moment to whoever comes back.
#[test]
fn a_transaction_that_cuts_the_link_is_over_before_it_is_resumed() {
    let port = test_peers::free_port().to_string();
    let settings = [("port", &*port), ("save", ""), ("repl-diskless-sync-delay", "0"), ("enable-debug-command", "yes")];
    let first = Process::start("cutting-primary", &settings);
    let target = format!("127.0.0.1 {port}");
    let second =
        Process::start("cutting-replica", &[("replicaof", &target), ("save", ""), ("enable-debug-command", "yes")]);
    let is_up =
        |server: &Process| field(&ask(&mut server.connect(), &["INFO", "replication"]), "master_link_status") == "up";
    let figure = |name: &str| field(&ask(&mut first.connect(), &["INFO", "stats"]), name);
    let count = |name: &str| figure(name).parse::<u64>().unwrap();
    until("the link is up", || is_up(&second));
    let (mut here, mut there) = (first.connect(), second.connect());
    // The transaction behind the cut is larger than the backlog.
    for round in 1..=5 {
        ask(&mut here, &["MULTI"]);
        ask(&mut here, &["CLIENT", "KILL", "TYPE", "replica"]);
        ask(&mut here, &["DEBUG", "SLEEP", "0.2"]);
        for number in 0..10 {
            ask(&mut here, &["SET", &number.to_string(), &"A".repeat(16 * 1024)]);
        }
        ask(&mut here, &["CONFIG", "SET", "repl-backlog-size", "16384"]);
        assert!(matches!(ask(&mut here, &["EXEC"]), Value::Array(replies) if replies[0] == Value::Int(1)));
        until("it has come back", || count("sync_full") == 1 + round && is_up(&second));
        assert_eq!(count("sync_partial_ok"), 0);
    }
    // The replica is away as long as its transaction runs.
    ask(&mut there, &["MULTI"]);
    ask(&mut there, &["CLIENT", "KILL", "TYPE", "master"]);
    ask(&mut there, &["DEBUG", "SLEEP", "5"]);
    there.write_all(b"EXEC\r\n").unwrap();
    until("it is gone", || field(&ask(&mut here, &["INFO", "replication"]), "connected_slaves") == "0");
    thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(field(&ask(&mut here, &["INFO", "replication"]), "connected_slaves"), "0");
    until("it has come back", || count("sync_partial_ok") == 1);
}

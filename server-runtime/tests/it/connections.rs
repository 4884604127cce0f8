//! Accepting, spreading, and what a connection may do.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use server_runtime::{Connection, Options, Service, start};
use socket2::SockRef;
use test_peers::{alone, alone_after};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{PATIENCE, Wanderer, ask, connect, end, options, serve, until};

#[test]
fn echoes_on_every_kind_of_tcp_address() {
    fn check(listen: &str, call: &str) {
        let running = serve(Options { listen: vec![listen.parse().unwrap()], ..options() });
        let call = SocketAddr::new(call.parse().unwrap(), running.local_addrs()[0].port());
        let mut stream = connect(call);
        assert_eq!(ask(&mut stream, "hello"), "hello", "{listen}");
        let ends = format!("{} {}", stream.local_addr().unwrap(), call);
        assert!(ask(&mut stream, "who").ends_with(&ends), "{listen}: addresses are {ends}");
        assert_eq!(running.connections(), 1);
        drop(stream);
        end(running);
    }
    check("127.0.0.1:0", "127.0.0.1");
    check("0.0.0.0:0", "127.0.0.1");
    check("[::1]:0", "::1");
    check("[::]:0", "::1");
    check("[::]:0", "127.0.0.1");
}

#[test]
fn accepted_sockets_have_the_options() {
    fn check(nodelay: bool, keepalive: Option<u64>, shown: &str) {
        let running = serve(Options { nodelay, keepalive: keepalive.map(Duration::from_secs), ..options() });
        assert_eq!(ask(&mut connect(running.local_addrs()[0]), "options"), shown);
        end(running);
    }
    check(true, Some(60), "true 60s");
    check(true, None, "true 0ns");
    check(false, Some(300), "false 300s");
}

#[test]
fn spreads_evenly_over_the_workers() {
    let running = serve(Options { workers: 3, ..options() });
    let addr = running.local_addrs()[0];
    let handle = running.shutdown_handle();
    let mut streams: Vec<_> = (0..30).map(|_| connect(addr)).collect();
    let names: Vec<_> =
        streams.iter_mut().map(|stream| ask(stream, "who").split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(handle.connections_by_worker(), [10, 10, 10]);
    assert_eq!(names.iter().filter(|name| *name == "worker-1").count(), 10);
    // Those that leave one worker make room there for the next ones.
    let mut names = names.iter();
    streams.retain(|_| names.next().unwrap() != "worker-1");
    until("worker-1 is empty", || handle.connections_by_worker() == [10, 0, 10]);
    streams.extend((0..10).map(|_| connect(addr)));
    until("worker-1 is full", || handle.connections_by_worker() == [10, 10, 10]);
    drop(streams);
    end(running);
}

/// Whether it is the worker that accepts or another.
#[test]
fn new_connections_avoid_a_stalled_worker() {
    for stalls in 0..2 {
        let running = serve(options());
        let addr = running.local_addrs()[0];
        let mut streams: Vec<_> = (0..2).map(|_| connect(addr)).collect();
        let names: Vec<_> = streams.iter_mut().map(|stream| ask(stream, "who")).collect();
        let at = names.iter().position(|name| name.starts_with(&format!("worker-{stalls} "))).expect("both have one");
        streams[at].write_all(b"stall").unwrap();
        // Until the server knows that the worker stalls, it may give that worker new connections, which then wait, too.
        std::thread::sleep(Duration::from_millis(500));
        for _ in 0..10 {
            streams.push(connect(addr));
            assert_eq!(ask(streams.last_mut().unwrap(), "hello"), "hello");
        }
        streams[at].set_nonblocking(true).unwrap();
        let unanswered = streams[at].read(&mut [0; 4]).unwrap_err();
        assert_eq!(unanswered.kind(), ErrorKind::WouldBlock, "the worker is still held up");
        streams[at].set_nonblocking(false).unwrap();
        streams[at].read_exact(&mut [0; 4]).unwrap();
        // It gets new ones again, until both have as many.
        until("both have as many", || {
            streams.push(connect(addr));
            running.shutdown_handle().connections_by_worker().iter().all(|count| *count >= 11)
        });
        drop(streams);
        end(running);
    }
}

/// Whether it is the worker that accepts or another, to which all are sent that are dealt to it.
#[test]
fn existing_connections_are_served_before_most_new_ones() {
    for crowded in 0..2 {
        let log = Arc::new(Log { crowded, lines: Mutex::default() });
        let running = start(options(), Arc::clone(&log)).unwrap();
        let addr = running.local_addrs()[0];
        // Two for each worker.
        let mut there: Vec<_> = (0..4).map(|_| connect(addr)).collect();
        let places: Vec<_> = there.iter_mut().map(|stream| ask(stream, "where")).collect();
        let at: Vec<_> = (0..4).filter(|at| places[*at] == crowded.to_string()).collect();
        log.lines.lock().unwrap().clear();
        there[at[0]].write_all(b"stall").unwrap();
        until("the worker is held up", || !log.lines.lock().unwrap().is_empty());
        let crowd: Vec<_> = (0..100).map(|_| connect(addr)).collect();
        until("the first comes", || log.lines.lock().unwrap().len() > 1);
        there[at[1]].write_all(b"here").unwrap();
        let place = || log.lines.lock().unwrap().iter().position(|line| line == "here");
        until("it is answered", || place().is_some());
        let before = place().unwrap();
        assert!(before <= 25, "{before} before who was there");
        drop((there, crowd));
        end(running);
    }
}

/// Notes what a worker does: who comes, and what was there says.
struct Log {
    crowded: usize,
    lines: Mutex<Vec<String>>,
}

impl Service for Log {
    type Worker = usize;
    type Carried = ();

    fn worker(self: &Arc<Self>, index: usize) -> usize {
        index
    }

    async fn serve(self: Arc<Self>, worker: Rc<usize>, connection: Connection) {
        let Connection { mut stream, place: _place, .. } = connection;
        let note = |line: &str, takes: u64| {
            if *worker == self.crowded {
                self.lines.lock().unwrap().push(line.to_owned());
                std::thread::sleep(Duration::from_millis(takes));
            }
        };
        note("comes", 3);
        let mut bytes = [0; 16];
        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
            let said = String::from_utf8_lossy(&bytes[..count]);
            // A stall is shorter than one after which others are served elsewhere.
            note(&said, if said == "stall" { 80 } else { 0 });
            stream.write_all(worker.to_string().as_bytes()).await.unwrap();
        }
    }
}

#[test]
fn a_panic_ends_its_connection_alone() {
    let running = serve(Options { workers: 1, ..options() });
    let mut bystander = connect(running.local_addrs()[0]);
    assert_eq!(ask(&mut bystander, "before"), "before");
    let mut unlucky = connect(running.local_addrs()[0]);
    assert_eq!(ask(&mut unlucky, "panic"), "", "closed without an answer");
    assert_eq!(ask(&mut bystander, "after"), "after");
    until("its place is free", || running.connections() == 1);
    drop(bystander);
    end(running);
}

#[test]
fn many_short_connections_leave_nothing_behind() {
    if !alone("connections::many_short_connections_leave_nothing_behind") {
        return;
    }
    let running = serve(options());
    let addr = running.local_addrs()[0];
    let handle = running.shutdown_handle();
    let round = |count: usize| {
        let accepted = handle.accepted() + count as u64;
        for index in 0..count {
            let mut stream = connect(addr);
            // Resets instead of closing in order, so that thousands of ports are not left in TIME_WAIT.
            SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
            // Some say something, some leave at once.
            if index % 2 == 0 {
                assert_eq!(ask(&mut stream, "hello"), "hello");
            }
        }
        until("all have come and gone", || handle.accepted() == accepted && handle.connections() == 0);
    };
    round(10);
    let files = open_files();
    round(5_000);
    until("no file stays open", || open_files() == files);
    end(running);
}

#[test]
fn no_files_left_is_survived() {
    if !alone_after("ulimit -n 100", "connections::no_files_left_is_survived") {
        return;
    }
    let options = options();
    let metrics = options.metrics.clone();
    let running = serve(options);
    let addr = running.local_addrs()[0];
    assert_eq!(running.shutdown_handle().max_connections(), 50, "as many as the files allow");
    // Both ends count in this process: the files are used up before the connections are.
    let spare = std::fs::File::open("/proc/self/status").unwrap();
    let mut streams = Vec::new();
    while let Ok(stream) = TcpStream::connect(addr) {
        streams.push(stream);
    }
    // The last file goes to this end of one more connection, so that the server's end finds none.
    drop(spare);
    streams.extend(TcpStream::connect(addr));
    until("accepting fails", || !metrics.render().contains("server_accept_errors_total 0"));
    streams.clear();
    // Connections that waited in the queue meanwhile are accepted first, and may fill the server for a moment.
    until("new ones are served", || ask(&mut connect(addr), "hello") == "hello");
    until("all have gone", || running.connections() == 0);
    end(running);
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn connections_move_with_what_they_carry() {
    let running = start(Options { workers: 3, ..options() }, Arc::new(Wanderer)).unwrap();
    let handle = running.shutdown_handle();
    let mut streams: Vec<_> = (0..3).map(|_| connect(running.local_addrs()[0])).collect();
    let mut messages = 0;
    // The server may have wishes of its own in between, so that one order need not be enough.
    for worker in [1, 2, 0] {
        until("all are where they are wanted", || {
            (0..3).filter(|from| *from != worker).for_each(|from| handle.move_connections(from, worker, 1.0));
            messages += 1;
            let place = |stream: &mut TcpStream| {
                let answer = ask(stream, "x");
                let (number, place) = answer.split_once(" on ").unwrap();
                assert_eq!(number, messages.to_string(), "what is carried");
                place.parse() == Ok(worker)
            };
            // All are asked, whatever the first says.
            streams.iter_mut().map(place).filter(|there| *there).count() == 3
        });
        assert_eq!(handle.connections(), 3);
    }
    assert!(handle.moved() >= 6, "{} moves", handle.moved());
    drop(streams);
    until("nobody is left", || handle.connections() == 0);
    end(running);
}

#[test]
fn moving_connections_end_with_the_server() {
    let running = start(options(), Arc::new(Wanderer)).unwrap();
    let handle = running.shutdown_handle();
    let mut stream = connect(running.local_addrs()[0]);
    for number in 1..=20 {
        handle.move_connections(0, 1, 1.0);
        handle.move_connections(1, 0, 1.0);
        assert!(ask(&mut stream, "x").starts_with(&format!("{number} on")));
    }
    // It is on its way between two workers, as like as not.
    handle.trigger();
    drop(stream);
    assert!(!running.wait(), "no connection is left");
}

/// A worker that waits for a processor counts as held up and gets no connections. A busy machine needs more than one try.
#[test]
fn connections_that_settle_are_dealt_out_evenly() {
    until("they are dealt out evenly", || dealt_out_evenly().is_some());
}

/// None if the workers got other connections than they get while none of them is held up.
fn dealt_out_evenly() -> Option<()> {
    let running = start(options(), Arc::new(Wanderer)).unwrap();
    let handle = running.shutdown_handle();
    let are_there = |expected: [usize; 2]| {
        let start = Instant::now();
        while handle.connections_by_worker() != expected {
            (start.elapsed() < PATIENCE / 20).then_some(())?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(())
    };
    let mut streams: Vec<_> = (0..8).map(|_| connect(running.local_addrs()[0])).collect();
    streams.iter_mut().all(|stream| ask(stream, "x") == "1 on 0").then_some(())?;
    are_there([8, 0])?;
    streams.iter_mut().all(|stream| ask(stream, "stay") == "2 on 0").then_some(())?;
    // Half of them move.
    are_there([4, 4])?;
    // Settled connections no longer move; those that leave make room.
    let on = |stream: &mut TcpStream| ask(stream, "x").split_once(" on ").unwrap().1.to_owned();
    streams.retain_mut(|stream| {
        handle.move_connections(0, 1, 1.0);
        handle.move_connections(1, 0, 1.0);
        on(stream) == "0"
    });
    are_there([4, 0])?;
    for _ in 0..4 {
        let mut stream = connect(running.local_addrs()[0]);
        ask(&mut stream, "stay");
        streams.push(stream);
    }
    are_there([4, 4])?;
    drop(streams);
    end(running);
    Some(())
}

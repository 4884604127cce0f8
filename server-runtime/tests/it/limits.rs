//! The limit of open connections.

use std::fs;
use std::io::Read;

use server_runtime::Options;

use crate::support::{REFUSAL, ask, connect, end, options, serve, until};

#[test]
fn the_limit_refuses_with_a_reason() {
    let running = serve(Options { max_connections: 2, ..options() });
    let addr = running.local_addrs()[0];
    let refused = |why: &str| {
        let mut answer = String::new();
        connect(addr).read_to_string(&mut answer).unwrap();
        assert_eq!(answer, REFUSAL, "{why}");
    };
    let mut served: Vec<_> = (0..2).map(|_| connect(addr)).collect();
    served.iter_mut().for_each(|stream| assert_eq!(ask(stream, "in"), "in"));
    refused("the third of two");

    // A client that has already sent bytes gets the reason, too.
    assert_eq!(ask(&mut connect(addr), "hello?"), REFUSAL);

    assert_eq!(running.set_max_connections(3), 3);
    served.push(connect(addr));
    assert_eq!(ask(&mut served[2], "in"), "in");
    refused("the fourth of three");

    // A lower limit cuts nobody, and holds for the next.
    running.set_max_connections(1);
    served.truncate(2);
    until("one has gone", || running.connections() == 2);
    served.iter_mut().for_each(|stream| assert_eq!(ask(stream, "still"), "still"));
    refused("two of one");

    let handle = running.shutdown_handle();
    assert_eq!((handle.accepted(), handle.refused(), handle.max_connections()), (3, 4, 1));
    drop(served);
    end(running);
}

#[test]
fn files_have_room_from_the_start() {
    let running = serve(Options { max_connections: 900, ..options() });
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let room = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
    assert!(room.trim().parse::<usize>().unwrap() >= 900, "{room}");
    end(running);
}

//! Which worker has which connections.

use std::time::{Duration, Instant};

use crate::support::{Client, PATIENCE, Server, until};

/// A path that is answered without the router, and one that is not.
const INSTANT: &str = "/json";
const ROUTED: &str = "/t/echo";

fn routed(client: &mut Client, body: &str) -> String {
    client.send(&format!("POST {ROUTED} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    client.answer().unwrap().text().to_owned()
}

#[test]
fn connections_gather_while_nothing_can_hold_up_their_worker() {
    let server = Server::start();
    let by_worker = || server.running.shutdown_handle().connections_by_worker();
    let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get(INSTANT).unwrap().status, 200);
    }
    assert_eq!(by_worker(), [20, 0]);
    // The first call of the router settles a connection, half of them there, half here. The first goes: all others are here.
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(routed(client, &number.to_string()), number.to_string());
        if number == 0 {
            assert_eq!(by_worker(), [19, 1]);
        }
    }
    assert_eq!(by_worker(), [10, 10]);
    // Connections from now on gather again, and those stay.
    clients.iter_mut().for_each(|client| assert_eq!(client.get(INSTANT).unwrap().status, 200));
    let mut more: Vec<_> = (0..4).map(|_| server.client()).collect();
    more.iter_mut().for_each(|client| assert_eq!(client.get(INSTANT).unwrap().status, 200));
    assert_eq!(by_worker(), [14, 10]);
    // HTTP/2 stays where it begins.
    for client in &mut more {
        *client = server.client();
        client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        assert!(client.read(), "the server's settings");
    }
    until(|| by_worker() == [12, 12]);
}

#[test]
fn requests_that_came_together_are_answered_in_order_when_their_connection_moves() {
    let server = Server::start();
    // Of two connections on one worker one has to go.
    let mut clients = [(); 2].map(|()| server.client());
    clients.iter_mut().for_each(|client| assert_eq!(client.get(INSTANT).unwrap().status, 200));
    assert_eq!(server.running.shutdown_handle().connections_by_worker(), [2, 0]);
    for client in &mut clients {
        let post = |body: &str| {
            format!("POST {ROUTED} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        };
        let get = format!("GET {INSTANT} HTTP/1.1\r\nHost: test\r\n\r\n");
        // The last body comes later than its head.
        let last = post(&"x".repeat(100_000));
        client.send(&[&get, &get, &post("first"), &get, &post("second"), &last[..last.len() - 50_000]].concat());
        for expected in ["{", "{", "first", "{", "second"] {
            let answer = client.answer().unwrap();
            assert!(answer.status == 200 && answer.text().starts_with(expected), "{expected}: {answer:?}");
        }
        client.send(&last[last.len() - 50_000..]);
        assert_eq!(client.answer().unwrap().body.len(), 100_000);
    }
    assert_eq!(server.running.shutdown_handle().connections_by_worker(), [1, 1]);
    assert_eq!(server.running.shutdown_handle().moved(), 1);
}

/// Where one has settled, others do not gather.
#[test]
fn connections_gather_away_from_those_that_stay() {
    let server = Server::start();
    let by_worker = || server.running.shutdown_handle().connections_by_worker();
    let mut first = server.client();
    assert_eq!(routed(&mut first, "stays"), "stays");
    assert_eq!(by_worker(), [1, 0]);
    for round in 1..=3 {
        let mut others = [(); 4].map(|()| server.client());
        others.iter_mut().for_each(|client| assert_eq!(client.get(INSTANT).unwrap().status, 200));
        assert_eq!(by_worker(), [1, 4], "round {round}");
        // Looks come between.
        std::thread::sleep(Duration::from_millis(150));
        drop(others);
        until(|| by_worker() == [1, 0]);
    }
}

#[test]
fn connections_that_are_asked_to_move_lose_nothing() {
    let server = Server::start();
    let handle = server.running.shutdown_handle();
    let mut clients: Vec<_> = (0..10).map(|_| server.client()).collect();
    let begin = Instant::now();
    while handle.moved() < 100 {
        assert!(begin.elapsed() < PATIENCE, "{} moves", handle.moved());
        for (from, to) in [(0, 1), (1, 0)] {
            handle.move_connections(from, to, 0.5);
            let three = format!("GET {INSTANT} HTTP/1.1\r\nHost: test\r\n\r\n").repeat(3);
            clients.iter_mut().for_each(|client| client.send(&three));
            for client in &mut clients {
                (0..3).for_each(|_| assert_eq!(client.answer().unwrap().status, 200));
            }
        }
    }
    // A connection that has settled stays.
    clients.iter_mut().for_each(|client| assert_eq!(routed(client, "here"), "here"));
    let (before, moved) = (handle.connections_by_worker(), handle.moved());
    for (from, to) in [(0, 1), (1, 0)] {
        handle.move_connections(from, to, 1.0);
        clients.iter_mut().for_each(|client| assert_eq!(client.get(INSTANT).unwrap().status, 200));
    }
    assert_eq!((handle.connections_by_worker(), handle.moved()), (before, moved));
}

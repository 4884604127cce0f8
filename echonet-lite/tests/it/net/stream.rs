//! TCP: messages in pieces and in bunches, connections that are refused, abused or forgotten.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use echonet_lite::controller;
use echonet_lite::net::blocking::Endpoint;
use echonet_lite::net::{BindError, Listen};
use echonet_lite::node::Node;

use super::{Light, PATIENCE, get_level, level_is, light, node};

type Device = Endpoint<Node<[Light; 1]>>;

const fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 62, last)
}

fn device(last: u8, port: u16) -> Device {
    let builder = Endpoint::builder().port(port).address(host(last)).listen_tcp(Listen::Required);
    builder.serve(node(1, 20)).bind_blocking().unwrap()
}

/// A connection that the device has accepted.
fn connected(device: &mut Device, last: u8, port: u16) -> TcpStream {
    let stream = TcpStream::connect((host(last), port)).unwrap();
    stream.set_nodelay(true).unwrap();
    turn(device);
    stream
}

/// Lets the device deal with all that has come to it.
fn turn(device: &mut Device) {
    // The loopback interface delivers a datagram before the call that sent it returns.
    for _ in 0..3 {
        device.turn(Some(Duration::ZERO)).unwrap();
    }
}

fn receive(stream: &mut TcpStream, expected: &[u8]) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, expected);
}

/// Nothing has come.
fn silent(stream: &mut TcpStream) {
    stream.set_nonblocking(true).unwrap();
    let error = test_peers::read(stream, &mut [0; 64]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

/// The other side has closed the connection.
fn closed(stream: &mut TcpStream) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match test_peers::read(stream, &mut [0; 64]) {
        Ok(length) => assert_eq!(length, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn a_message_split_at_every_byte_is_answered() {
    let mut device = device(1, 13_621);
    let mut stream = connected(&mut device, 1, 13_621);
    let request = get_level(9, 1);
    for split in 1..request.len() {
        stream.set_nonblocking(false).unwrap();
        stream.write_all(&request[..split]).unwrap();
        turn(&mut device);
        silent(&mut stream);
        stream.set_nonblocking(false).unwrap();
        stream.write_all(&request[split..]).unwrap();
        turn(&mut device);
        receive(&mut stream, &level_is(9, 1, 20));
    }
    // And byte by byte.
    stream.set_nonblocking(false).unwrap();
    for byte in request {
        stream.write_all(&[byte]).unwrap();
        turn(&mut device);
    }
    receive(&mut stream, &level_is(9, 1, 20));
}

#[test]
fn many_messages_in_one_piece_are_answered_in_order() {
    let mut device = device(2, 13_621);
    let mut stream = connected(&mut device, 2, 13_621);
    let requests: Vec<u8> = (0..200).flat_map(|tid| get_level(tid, 1)).collect();
    stream.write_all(&requests).unwrap();
    turn(&mut device);
    let answers: Vec<u8> = (0..200).flat_map(|tid| level_is(tid, 1, 20)).collect();
    receive(&mut stream, &answers);
}

#[test]
fn a_malformed_message_closes_only_its_connection() {
    let mut device = device(3, 13_621);
    let mut other = connected(&mut device, 3, 13_621);
    for bad in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x10\x81\0\0\0\0\0\0\0\0\x62\0", b"\x10\x83"] {
        let mut stream = connected(&mut device, 3, 13_621);
        stream.write_all(bad).unwrap();
        turn(&mut device);
        closed(&mut stream);
    }
    other.write_all(&get_level(3, 1)).unwrap();
    turn(&mut device);
    receive(&mut other, &level_is(3, 1, 20));
}

#[test]
fn a_half_closed_connection_still_gets_its_answer() {
    let mut device = device(4, 13_621);
    let mut stream = connected(&mut device, 4, 13_621);
    stream.write_all(&get_level(4, 1)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    turn(&mut device);
    receive(&mut stream, &level_is(4, 1, 20));
    closed(&mut stream);
}

#[test]
fn the_connection_that_was_silent_longest_makes_room() {
    let mut device = device(5, 13_621);
    let mut first = connected(&mut device, 5, 13_621);
    let mut others: Vec<_> = (0..64).map(|_| connected(&mut device, 5, 13_621)).collect();
    closed(&mut first);
    let last = others.last_mut().unwrap();
    last.write_all(&get_level(5, 1)).unwrap();
    turn(&mut device);
    receive(last, &level_is(5, 1, 20));
}

#[test]
fn a_peer_that_never_reads_is_dropped() {
    let mut device = device(6, 13_621);
    let mut stream = connected(&mut device, 6, 13_621);
    let requests: Vec<u8> = (0..1000).flat_map(|tid| get_level(tid as u8, 1)).collect();
    stream.set_nonblocking(true).unwrap();
    let mut written = 0_usize;
    let ended = loop {
        match stream.write(&requests) {
            Ok(length) => written += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => break error.kind(),
        }
        turn(&mut device);
        assert!(written < 1 << 30, "it would go on for ever");
    };
    assert!(matches!(ended, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{ended}");
}

#[test]
fn requests_go_by_tcp_if_preferred_and_by_udp_where_that_is_refused() {
    const PORT: u16 = 13_622;
    let mut config = controller::Config::new(1);
    (config.first_timeout, config.min_timeout, config.max_timeout) = (PATIENCE, PATIENCE, PATIENCE);
    let builder = Endpoint::builder().port(PORT).address(host(8)).prefer_tcp(true);
    let mut controller = builder.controller(config).listen_tcp(Listen::Off).bind_blocking().unwrap();

    // A node that speaks TCP alone shows that it is used.
    let listener = TcpListener::bind((host(7), PORT)).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 14];
        for level in [1, 2] {
            stream.read_exact(&mut request).unwrap();
            let mut answer = level_is(0, 1, level);
            answer[2..4].copy_from_slice(&request[2..4]);
            stream.write_all(&answer).unwrap();
        }
    });
    for level in [1, 2] {
        let answer = controller.get(host(7), light(1), &[0xB0]).unwrap();
        assert_eq!(answer.get(0xB0), Some(&[level][..]));
    }
    server.join().unwrap();

    // A node that does not listen gets the same request by UDP.
    let builder = Endpoint::builder().port(PORT).address(host(9)).listen_tcp(Listen::Off);
    let mut device = builder.serve(node(1, 21)).bind_blocking().unwrap();
    let stopper = device.stopper();
    let server = thread::spawn(move || device.run());
    for _ in 0..2 {
        let answer = controller.get(host(9), light(1), &[0xB0]).unwrap();
        assert_eq!(answer.get(0xB0), Some(&[21][..]));
        assert!(answer.response_time < PATIENCE, "it did not wait for a retry");
    }
    stopper.stop();
    server.join().unwrap().unwrap();
}

#[test]
fn a_held_tcp_port_matters_only_if_tcp_is_required() {
    const PORT: u16 = 13_623;
    let address = SocketAddr::from((host(10), PORT));
    let _holder = TcpListener::bind(address).unwrap();
    let builder = || Endpoint::builder().port(PORT).address(host(10)).serve(node(1, 20));
    let endpoint = builder().bind_blocking().unwrap();
    assert!(!endpoint.listens_tcp());
    let error = builder().listen_tcp(Listen::Required).bind_blocking().unwrap_err();
    assert!(matches!(error, BindError::PortHeld { protocol: "tcp", .. }), "{error:?}");
    assert!(error.to_string().contains("ss -tlpn 'sport = :13623'"), "{error}");
}

#[test]
fn a_device_on_the_address_of_a_controller_is_reached_whichever_came_first() {
    const PORT: u16 = 13_664;
    for (last, is_first) in [(11, true), (12, false)] {
        let controller = || Endpoint::builder().port(PORT).address(host(last)).bind_blocking().unwrap();
        let early = is_first.then(controller);
        let builder = Endpoint::builder().port(PORT).address(host(last)).serve(node(1, 22));
        let mut device = builder.bind_blocking().unwrap();
        assert!(device.listens_tcp(), "{last}");
        let stopper = device.stopper();
        let server = thread::spawn(move || device.run());
        let mut controller = early.unwrap_or_else(controller);
        assert!(!controller.listens_tcp(), "{last}");
        let answer = controller.get(host(last), light(1), &[0xB0]).unwrap();
        assert_eq!(answer.get(0xB0), Some(&[22][..]));
        stopper.stop();
        server.join().unwrap().unwrap();
    }
}

/// A connection from an address of loopback.
fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

#[test]
fn a_host_with_many_connections_ends_only_its_own() {
    let mut device = device(11, 13_621);
    let to = SocketAddr::from((host(11), 13_621));
    let mut honest: Vec<_> = (1..=6).map(|last| connect_from(Ipv4Addr::new(127, 0, 67, last), to)).collect();
    turn(&mut device);
    let mut flood = Vec::new();
    for _ in 0..400 {
        flood.push(connect_from(Ipv4Addr::new(127, 0, 67, 99), to));
        turn(&mut device);
    }
    for stream in &mut honest {
        stream.write_all(&get_level(1, 1)).unwrap();
        turn(&mut device);
        receive(stream, &level_is(1, 1, 20));
    }
    // The flood itself has the last of its connections.
    let last = flood.last_mut().unwrap();
    last.write_all(&get_level(2, 1)).unwrap();
    turn(&mut device);
    receive(last, &level_is(2, 1, 20));
}

#[test]
fn sixteen_connections_of_a_host_work_beside_a_flood_from_another() {
    for is_first in [true, false] {
        let last = if is_first { 13 } else { 14 };
        let mut device = device(last, 13_621);
        let to = SocketAddr::from((host(last), 13_621));
        let mut connect = |from: u8, count: usize| -> Vec<_> {
            let connect = |_| {
                let stream = connect_from(Ipv4Addr::new(127, 0, 68, from), to);
                turn(&mut device);
                stream
            };
            (0..count).map(connect).collect()
        };
        let (mut honest, mut flood) = (Vec::new(), Vec::new());
        if is_first {
            honest.extend(connect(1, 16));
        }
        flood.extend(connect(99, 200));
        if !is_first {
            honest.extend(connect(1, 16));
        }
        flood.extend(connect(99, 200));
        for (number, stream) in honest.iter_mut().enumerate() {
            stream.write_all(&get_level(number as u8, 1)).unwrap();
            turn(&mut device);
            receive(stream, &level_is(number as u8, 1, 20));
        }
        let newest = flood.last_mut().unwrap();
        newest.write_all(&get_level(77, 1)).unwrap();
        turn(&mut device);
        receive(newest, &level_is(77, 1, 20));
    }
}

//! More than any client needs to send: frames, streams, resets and datagrams.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use quinn::{TransportConfig, VarInt};

use super::{EXCESSIVE_LOAD, NO_ERROR, Peer, REQUEST_CANCELLED, Raw, endpoint, frame, get_of, post_of, run};
use crate::support::until;

/// Begins a request by this and gives it up; `None` when the connection has ended.
async fn give_up(raw: &Raw, begun: &[u8]) -> Option<()> {
    let (mut send, mut receive) = raw.conn.open_bi().await.ok()?;
    send.write_all(begun).await.ok()?;
    let code = VarInt::from_u32(REQUEST_CANCELLED);
    // The answer may have come already.
    let _ = receive.stop(code);
    send.reset(code).ok()
}

/// Frames that carry nothing: the connection ends, and no other does.
#[test]
fn frames_and_streams() {
    let peer = Peer::with(|options| {
        // Few, as a slow machine may be needed a while for many.
        options.limits.control_frames = 100;
        options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap());
    });
    run(async {
        let mut honest = peer.client().await;
        let nothing = frame(0x21, b"").repeat(1200);
        let raw = peer.raw().await;
        let _control = raw.control(&nothing).await;
        assert_eq!(raw.closed().await, EXCESSIVE_LOAD, "on the control stream");
        for flood in [nothing, frame(0, b"").repeat(1200)] {
            let raw = peer.raw().await;
            let (mut send, _receive) = raw.request(&post_of("/t/count", &[])).await;
            let _ = send.write_all(&flood).await;
            assert_eq!(raw.closed().await, EXCESSIVE_LOAD, "on a request");
        }
        // Streams that mean nothing.
        let raw = peer.raw().await;
        while let Ok(mut stream) = raw.conn.open_uni().await {
            if stream.write_all(&[0x21]).await.is_err() || stream.finish().is_err() {
                break;
            }
        }
        assert_eq!(raw.closed().await, EXCESSIVE_LOAD, "by streams");
        // Requests that are given up before they are any.
        let raw = peer.raw().await;
        while give_up(&raw, &[1]).await.is_some() {}
        assert_eq!(raw.closed().await, EXCESSIVE_LOAD, "by resets");
        assert_eq!(honest.get("/").await.0, 200);
    });
    until(|| peer.metric("http_floods_total") == 5);
}

/// A client that gives up most requests as soon as they have begun does not go on for long, however slowly. One that
/// waits for half of the answers does.
#[test]
fn most_requests_are_meant() {
    let peer = Peer::with(|options| options.runtime.metrics_listen = Some("127.0.0.1:0".parse().unwrap()));
    run(async {
        for begun in [vec![1], get_of("/t/slow", &[])] {
            let raw = peer.raw().await;
            let mut count = 0;
            while give_up(&raw, &begun).await.is_some() {
                count += 1;
                assert!(count < 3000, "a connection goes on");
            }
            assert_eq!(raw.closed().await, EXCESSIVE_LOAD, "after {count} requests like {begun:?}");
        }
        let raw = peer.raw().await;
        for _ in 0..1200 {
            assert!(raw.get("/").await.is_ok());
            give_up(&raw, &get_of("/t/slow", &[])).await.unwrap();
        }
        assert!(raw.get("/").await.is_ok());
    });
    until(|| peer.metric("http_floods_total") == 2);
}

/// However slowly requests are given up, a connection does not see more of them than it can remember.
#[test]
fn requests_that_are_none() {
    let peer = Peer::with(|options| options.limits.control_frames = 0);
    run(async {
        let raw = peer.raw().await;
        let _control = raw.control(b"").await;
        while give_up(&raw, &[1]).await.is_some() {}
        assert_eq!(raw.closed().await, NO_ERROR);
    });
}

/// Datagrams of no connection, and handshakes that break off.
#[test]
fn datagrams() {
    let peer = Peer::start();
    run(async {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as u8
        };
        for round in 0..5000 {
            let mut datagram: Vec<u8> = (0..(round % 1300)).map(|_| random()).collect();
            if let (Some(first), true) = (datagram.first_mut(), round % 2 == 0) {
                // The beginning of a connection, as far as that.
                *first |= 0xc0;
                let version = 1_u32.to_be_bytes();
                datagram.iter_mut().skip(1).zip(version).for_each(|(byte, version)| *byte = version);
            }
            let _ = socket.send_to(&datagram, peer.server.addr);
        }
        let mut honest = peer.client().await;
        assert_eq!(honest.get("/").await.0, 200);
        let first = begun(&peer, 200).await;
        socket.set_nonblocking(true).unwrap();
        // Beyond some, a client has to prove its address: the answer is a Retry (RFC 9000 section 17.2.5).
        let (mut answer, mut retries, mut first) = ([0; 2000], 0, first.iter().cycle());
        while retries < 100 {
            // The kernel may have no room for it.
            let _ = socket.send_to(first.next().unwrap(), peer.server.addr);
            tokio::time::sleep(Duration::from_millis(1)).await;
            while let Ok(length) = socket.recv(&mut answer) {
                retries += usize::from(length > 0 && answer[0] & 0xf0 == 0xf0);
            }
        }
        assert!(peer.server.running.connections() <= 100, "{}", peer.server.running.connections());
        assert_eq!(honest.get("/").await.0, 200);
        assert_eq!(peer.client().await.get("/").await.0, 200, "a client that answers to a Retry");
    });
}

/// The first datagrams of so many clients.
async fn begun(peer: &Peer, count: usize) -> Vec<Vec<u8>> {
    let nobody = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (addr, endpoint): (SocketAddr, _) = (nobody.local_addr().unwrap(), endpoint());
    let config = peer.config(b"h3", TransportConfig::default());
    let (mut clients, mut datagrams) = (Vec::new(), std::collections::BTreeMap::new());
    while datagrams.len() < count {
        clients.push(endpoint.connect_with(config.clone(), addr, "localhost").unwrap());
        let mut datagram = vec![0; 2000];
        let length = nobody.recv(&mut datagram).await.unwrap();
        datagram.truncate(length);
        // Those that come once more begin with the same id, of so many bytes (RFC 9000 section 17.2).
        let id = datagram[6..][..usize::from(datagram[5])].to_vec();
        datagrams.insert(id, datagram);
    }
    datagrams.into_values().collect()
}

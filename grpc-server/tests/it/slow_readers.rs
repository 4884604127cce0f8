//! Clients that take answers slowly and steadily. A ping of the server is behind megabytes that the system buffers for them, and so is their answer to it.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use test_peers::{read_slowly, slow_reader};

use crate::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, WINDOW_UPDATE, call_head, frame};
use crate::support::{MANY_TIMES, PATIENCE, Server, many_times, options, until};

/// A client whose windows are never full, with a call for many messages under way.
fn client(addr: SocketAddr) -> TcpStream {
    let mut stream = slow_reader(addr, PATIENCE).unwrap();
    let all = (1_u32 << 30).to_be_bytes();
    // SETTINGS_INITIAL_WINDOW_SIZE
    let settings = frame(SETTINGS, 0, 0, &[&[0, 4], &all[..]].concat());
    let message = many_times(&"x".repeat(500), 1_000_000, 0);
    let call = [frame(HEADERS, END_HEADERS, 1, &call_head(MANY_TIMES)), frame(DATA, END_STREAM, 1, &message)];
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &frame(WINDOW_UPDATE, 0, 0, &all)].concat();
    stream.write_all(&[begin, call.concat()].concat()).unwrap();
    stream
}

/// The reader takes 8,000 bytes a second, and acknowledges more at a time: not within each time-out.
#[tokio::test]
async fn pings_wait_for_what_is_on_its_way() {
    let mut options = options();
    options.timeouts.keepalive = Duration::from_secs(1);
    options.timeouts.keepalive_answer = Duration::from_secs(2);
    let server = Server::greeter_with(options);
    let client = client(server.addr);
    let reading = tokio::task::spawn_blocking(move || {
        read_slowly(&client, Duration::from_secs(14));
        client
    });
    let client = reading.await.unwrap();
    assert_eq!(server.running.connections(), 1);
    // One that takes nothing more is disconnected.
    until("the client is cut", || server.running.connections() == 0).await;
    drop(client);
}

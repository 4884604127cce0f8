//! Messages to the log crate, and to tracing.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Mutex;
use std::time::Duration;

use echonet_lite::net::Endpoint;
use log::{LevelFilter, Log, Metadata, Record};

use super::node;

/// Keeps what is logged.
struct Kept(Mutex<Vec<String>>);

static KEPT: Kept = Kept(Mutex::new(Vec::new()));

impl Log for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "echonet_lite"
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(format!("{} {}", record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}

#[test]
fn malformed_datagrams_are_logged_with_their_sender() {
    const PORT: u16 = 13_661;
    let (ours, theirs) = (Ipv4Addr::new(127, 0, 97, 1), Ipv4Addr::new(127, 0, 97, 2));
    log::set_logger(&KEPT).unwrap();
    log::set_max_level(LevelFilter::Debug);
    let mut device = Endpoint::builder().port(PORT).address(ours).serve(node(1, 1)).bind_blocking().unwrap();
    let tool = UdpSocket::bind((theirs, 13_662)).unwrap();
    tool.send_to(&[0x10, 0x81, 0, 1], (ours, PORT)).unwrap();
    device.turn(Some(Duration::from_secs(5))).unwrap();
    let expected = "DEBUG a datagram of 127.0.97.2:13662 is no message: byte 4: the frame ends inside a field";
    let mut found = false;
    for _ in 0..50 {
        found |= KEPT.0.lock().unwrap().iter().any(|line| line == expected);
        if found {
            break;
        }
        device.turn(Some(Duration::from_millis(20))).unwrap();
    }
    assert!(found, "{:?}", KEPT.0.lock().unwrap());
    assert!(KEPT.0.lock().unwrap().iter().any(|line| line.starts_with("INFO listening on lo ")));
}

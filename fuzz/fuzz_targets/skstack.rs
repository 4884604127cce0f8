//! For any output of a module at any time, the driver does not panic and stays within its buffers. It always has something to wait for
//! unless it gave up, and the cuts between reads change nothing.

#![no_main]

use std::time::Duration;

use echonet_lite::node::Instant;
use echonet_lite::serial::{COMMAND_MAX, Config, Credentials, Event, Module, PAYLOAD_MAX, Skstack, Step};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    Bytes(&'a [u8]),
    Line(u8),
    Wait(u16),
    Send(&'a [u8]),
}

/// Enough to reach every step.
const LINES: &[&str] = &[
    "OK",
    "OK 00\r",
    "OK 01\r",
    "FAIL ER04",
    "FAIL ER10",
    "EVER 1.2.10",
    "EVENT 20 FE80::1 0",
    "EPANDESC",
    "  Channel:21",
    "  Pan ID:8888",
    "  Addr:001D129012345678",
    "  LQI:E1",
    "  Side:1",
    "EVENT 22 FE80::1",
    "FE80:0000:0000:0000:021D:1290:1234:5678",
    "EVENT 24 FE80::1",
    "EVENT 25 FE80::1",
    "EVENT 21 FE80::1 00",
    "EVENT 21 FE80::1 0 01",
    "EVENT 21 FE80::1 02",
    "EVENT 27 FE80::1",
    "EVENT 29 FE80::1",
    "EVENT 32 FE80::1",
    "EVENT 33 FE80::1",
    "ERXUDP FE80::21D:1290:1234:5678 FE80::1 0E1A 0E1A 001D129012345678 1 0004 10810001",
    "ERXUDP FE80::21D:1290:1234:5678 FE80::1 0E1A 0E1A 001D129012345678 1 0 0004 \x10\r\nO",
    "SKSENDTO 1 FE80::1 0E1A 1 0004 ",
];

struct Driver {
    skstack: Skstack,
    events: Vec<String>,
    piece: usize,
}

impl Driver {
    fn new(piece: usize) -> Self {
        let credentials = Credentials::new("00112233445566778899AABBCCDDEEFF", "0123456789AB").expect("well formed");
        let mut skstack = Skstack::new(Config::new(Module::Bp35c0, credentials));
        skstack.start(Instant(0));
        Self { skstack, events: Vec::new(), piece }
    }

    fn poll_events(&mut self) {
        while let Some(event) = self.skstack.poll_event() {
            if let Event::Received(datagram) = event {
                assert!(datagram.payload.len() <= PAYLOAD_MAX);
            }
            self.events.push(format!("{event:?}"));
        }
    }

    fn settle(&mut self) {
        self.poll_events();
        // A command always fits, and there is at most one.
        let mut command = [0; COMMAND_MAX];
        if self.skstack.poll_transmit(&mut command).is_some() {
            assert_eq!(self.skstack.poll_transmit(&mut command), None);
        }
        assert!(self.skstack.poll_timeout().is_some() || matches!(self.skstack.step(), Step::Idle | Step::Session));
    }

    /// Nothing is written between the pieces: what comes before a command is written is no answer to it, and how far that is must not depend
    /// on the pieces.
    fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.settle();
        for mut bytes in bytes.chunks(self.piece) {
            while !bytes.is_empty() {
                bytes = &bytes[self.skstack.receive(now, bytes)..];
                self.poll_events();
            }
        }
    }
}

fuzz_target!(|actions: Vec<Action<'_>>| {
    let mut drivers = [Driver::new(1), Driver::new(7), Driver::new(usize::MAX)];
    let mut now = Instant(0);
    for action in actions {
        if let Action::Wait(tenths) = action {
            now += Duration::from_millis(100) * u32::from(tenths);
        }
        for driver in &mut drivers {
            match action {
                Action::Bytes(bytes) => driver.receive(now, bytes),
                Action::Line(line) => {
                    let line = LINES[usize::from(line) % LINES.len()];
                    driver.receive(now, line.as_bytes());
                    driver.receive(now, b"\r\n");
                }
                Action::Wait(_) => driver.skstack.handle_timeout(now),
                Action::Send(payload) => {
                    let taken = driver.skstack.send(now, payload).is_ok();
                    assert!(!taken || driver.skstack.step() == Step::Session);
                }
            }
            driver.settle();
        }
        let [first, rest @ ..] = &drivers;
        for other in rest {
            assert_eq!((first.skstack.step(), &first.events), (other.skstack.step(), &other.events));
        }
    }
});

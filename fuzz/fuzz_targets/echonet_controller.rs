//! For any input and any requests, a controller never panics, sends only frames, ends each request once, and stays within its limits.

#![no_main]

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use echonet_lite::controller::{Config, Controller, Event, NodeAddr, Operation, Request, RequestError, RequestId};
use echonet_lite::node::Instant;
use echonet_lite::wire::{Eoj, Frame};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Action<'a> {
    /// Any datagram.
    Comes {
        from: u8,
        bytes: &'a [u8],
    },
    /// The last request that was sent, made into an answer: likely to be taken for one.
    Answered {
        from: u8,
        esv: u8,
        list: &'a [u8],
    },
    Ask {
        node: u8,
        eoj: [u8; 3],
        kind: u8,
        epcs: &'a [u8],
        value: &'a [u8],
        fresh: bool,
    },
    AskAll {
        epcs: &'a [u8],
    },
    Discover,
    Cancel {
        which: u8,
    },
    Wait {
        millis: u16,
    },
    Send,
    Take,
}

const LIMIT: usize = 8;

fn node(number: u8) -> NodeAddr {
    let addr =
        if number < 128 { format!("10.0.0.{}", number % 12) } else { format!("fe80::{}%{}", number % 6, number % 2) };
    addr.parse().expect("it is an address")
}

fn config() -> Config {
    Config {
        max_requests: LIMIT,
        max_requests_per_node: LIMIT / 2,
        max_nodes: LIMIT,
        max_objects: LIMIT,
        max_events: LIMIT,
        window: 2,
        ..Config::new(1)
    }
}

fn request(controller: &mut Controller, now: Instant, action: &Action<'_>) -> Result<Option<RequestId>, RequestError> {
    let made = match action {
        Action::Ask { node: number, eoj, kind, epcs, value, fresh } => {
            let writes: Vec<_> = epcs.iter().map(|epc| (*epc, *value)).collect();
            let operation = match kind % 5 {
                0 => Operation::Get(epcs),
                1 => Operation::SetC(&writes),
                2 => Operation::SetI(&writes),
                3 => Operation::SetGet(&writes, epcs),
                _ => Operation::InfReq(epcs),
            };
            let request = Request { fresh: *fresh, ..Request::new(Eoj::from_bytes(*eoj), operation) };
            controller.request(now, node(*number), &request)?
        }
        Action::AskAll { epcs } => controller.request_all(now, &Request::get(Eoj::NODE_PROFILE, epcs).tries(2))?,
        Action::Discover => controller.discover(now)?,
        _ => return Ok(None),
    };
    Ok(Some(made))
}

fuzz_target!(|actions: Vec<Action<'_>>| {
    let mut controller = Controller::new(config());
    let (mut now, mut sent, mut buffer) = (Instant::ZERO, Vec::new(), [0; 1452]);
    let (mut open, mut ids) = (HashSet::new(), Vec::new());
    for action in &actions {
        if let Ok(Some(id)) = request(&mut controller, now, action) {
            assert!(open.insert(id.index()), "an index is not used twice");
            ids.push(id);
        }
        match action {
            Action::Comes { from, bytes } => controller.handle(now, node(*from).at(3610), bytes),
            Action::Answered { from, esv, list } if sent.len() >= 12 => {
                let request: &Vec<u8> = &sent;
                let head = [&request[..4], &request[7..10], &request[4..7], &[*esv]].concat();
                let from: SocketAddr = node(*from).at(40_000);
                controller.handle(now, from, &[&head[..], list].concat());
            }
            Action::Cancel { which } if !ids.is_empty() => {
                // One that has ended, perhaps: then nothing happens to the one that has its index now.
                let id = ids[usize::from(*which) % ids.len()];
                if controller.cancel(now, id) {
                    assert!(open.remove(&id.index()), "only what is open is cancelled");
                }
            }
            Action::Wait { millis } => now += Duration::from_millis(u64::from(*millis)),
            Action::Send => {
                while let Some((_, size)) = controller.poll_transmit(now, &mut buffer) {
                    assert!(Frame::parse(&buffer[..size]).is_ok(), "only frames are sent");
                    sent = buffer[..size].to_vec();
                }
                assert!(controller.poll_timeout().is_none_or(|at| at > now), "what was due is done");
            }
            Action::Take => {
                while let Some(event) = controller.poll_event() {
                    if let Event::Done { id, .. } | Event::GatheringEnded { id, .. } = event {
                        assert!(open.remove(&id.index()), "a request ends once");
                    }
                }
            }
            _ => {}
        }
        assert!(controller.outstanding() <= LIMIT && controller.nodes().count() <= LIMIT);
        assert!(controller.footprint() < 1 << 20);
    }
});

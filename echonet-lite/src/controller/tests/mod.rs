//! The controller, datagram by datagram.

mod identity;
mod limits;
mod matching;
mod news;
mod pace;
mod parts;
mod typed;

use core::time::Duration;
use std::format;
use std::string::String;
use std::vec::Vec;

use super::*;
use crate::node::{Destination, Instant};
use crate::wire::Eoj;

const NODE: &str = "192.0.2.7";
const LIGHT: Eoj = Eoj::new(0x02, 0x90, 1);

/// A controller at a moment, with datagrams in hexadecimal. Its own transaction identifiers are written `0001`, `0002`, … in
/// the order in which they are first seen.
struct Table {
    controller: Controller,
    now: Instant,
    tids: Vec<String>,
}

impl Table {
    fn new(config: Config) -> Self {
        Self { controller: Controller::new(config), now: Instant::ZERO, tids: Vec::new() }
    }

    /// One that sends no request by itself.
    fn quiet() -> Self {
        Self::new(quiet())
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    /// Waits for what it waits for; returns how long that was.
    fn wait_for_timeout(&mut self) -> Duration {
        let at = self.controller.poll_timeout().expect("it waits for something");
        let waited = at.since(self.now);
        self.now = self.now.max(at);
        waited
    }

    fn request(&mut self, request: &Request<'_>) -> RequestId {
        self.controller.request(self.now, node(NODE), request).unwrap()
    }

    /// So many equal requests.
    fn requests(&mut self, count: usize) {
        for _ in 0..count {
            self.request(&Request::get(LIGHT, &[0x80]));
        }
    }

    /// The messages that it sends now: `address frame`, or `all frame`, without EHD and with the controller's EOJ as
    /// `C`.
    fn sent(&mut self) -> Vec<String> {
        let mut buffer = [0; 1452];
        let mut sent = Vec::new();
        while let Some((destination, size)) = self.controller.poll_transmit(self.now, &mut buffer) {
            let hex: String = buffer[..size].iter().map(|byte| format!("{byte:02X}")).collect();
            let (tid, rest) = hex.strip_prefix("1081").unwrap().split_at(4);
            let place = self.tids.iter().position(|known| known == tid).unwrap_or_else(|| {
                self.tids.push(tid.into());
                self.tids.len() - 1
            });
            let to = match destination {
                Destination::Unicast(to) => {
                    assert_eq!(to.port(), 3610);
                    format!("{}", NodeAddr::from(to))
                }
                Destination::Multicast => "all".into(),
            };
            sent.push(format!("{to} {:04} {}", place + 1, rest.replacen("05FF01", "C", 1)));
        }
        sent
    }

    /// Something comes: the frame as [`sent`](Self::sent) writes it, with spaces anywhere and around `C`.
    fn comes(&mut self, from: &str, frame: &str) {
        let mut words = frame.split(' ').map(|word| if word == "C" { "05FF01" } else { word });
        let tid = words.next().unwrap();
        let known = tid.parse::<usize>().ok().and_then(|number| self.tids.get(number.checked_sub(1)?));
        let hex = format!("1081{}{}", known.map_or(tid, |known| known), words.collect::<String>());
        let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        self.controller.handle(self.now, node(from).at(40_000), &bytes.collect::<Vec<_>>());
    }

    /// The events that it reports, news of nodes left out.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(event) = self.controller.poll_event() {
            told.push(match event {
                Event::Done { id, result: Ok(answer) } => format!("{} {answer}", id.index()),
                Event::Done { id, result: Err(failure) } => format!("{} {failure}", id.index()),
                Event::Gathered { id, answer } => format!("{} one: {answer}", id.index()),
                Event::GatheringEnded { id, answers } => format!("{} all: {answers}", id.index()),
                Event::Notification(news) => format!("{news}{}", if news.confirmed { " confirmed" } else { "" }),
                Event::Missed(count) => format!("missed {count}"),
                Event::NodeFound(_) | Event::NodeAnnounced(_) | Event::NodeChanged(_) => continue,
                Event::NodeReady(node) => format!("ready {node}"),
                Event::NodeJoined { node, addr } => format!("joined {node} {addr}"),
                Event::NodeLost(node) => format!("lost {node}"),
                Event::NodeReturned(node) => format!("returned {node}"),
                Event::CrowdedOut(count) => format!("crowded out {count}"),
                Event::ObjectPanicked { message } => message,
                Event::NodeReplaced(node) => format!("replaced {node}"),
                Event::NodeMoved { from, to } => format!("moved {from} {to}"),
            });
        }
        told
    }
}

fn quiet() -> Config {
    Config { interview: Interview::Nothing, ..Config::new(1) }
}

fn node(addr: &str) -> NodeAddr {
    addr.parse().unwrap()
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

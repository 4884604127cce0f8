//! **Question**: what do a request and its answer cost echonet-lite's controller, without sockets?
//! **Source**: none; these are the crate's own figures.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};

use crate::settings::settings;
use criterion::{Criterion, Throughput, criterion_group};
use echonet_lite::controller::{Config, Controller, Event, Interview, NodeAddr, Request};
use echonet_lite::node::{Destination, Instant};
use echonet_lite::wire::{Eoj, Esv};

const LIGHT: Eoj = Eoj::new(0x02, 0x90, 1);

/// As many requests as the window has room for, sent, answered and taken.
struct Exchange {
    controller: Controller,
    nodes: Vec<NodeAddr>,
    window: usize,
    now: u64,
    answers: Vec<(SocketAddr, [u8; 15])>,
}

impl Exchange {
    fn new(nodes: u8, window: usize) -> Self {
        let mut config = Config::new(7);
        config.window = window as u16;
        config.interview = Interview::Nothing;
        let nodes = (1..=nodes).map(|last| Ipv4Addr::new(192, 0, 2, last).into()).collect();
        Self { controller: Controller::new(config), nodes, window, now: 0, answers: Vec::new() }
    }

    fn turn(&mut self) {
        self.now += 100;
        let now = Instant::from_micros(self.now);
        let request = Request::get(LIGHT, &[0x80]);
        for node in &self.nodes {
            for _ in 0..self.window {
                self.controller.request(now, *node, &request).expect("there is room");
            }
        }
        let mut buffer = [0; 1452];
        while let Some((destination, size)) = self.controller.poll_transmit(now, &mut buffer) {
            let Destination::Unicast(to) = destination else { continue };
            let Some(&[high, low]) = buffer[..size].get(2..4) else { continue };
            let esv = Esv::GetRes.to_u8();
            self.answers.push((to, [0x10, 0x81, high, low, 2, 0x90, 1, 5, 0xFF, 1, esv, 1, 0x80, 1, 0x30]));
        }
        let later = Instant::from_micros(self.now + 50);
        for (from, answer) in self.answers.drain(..) {
            self.controller.handle(later, from, &answer);
        }
        let mut done = 0;
        while let Some(event) = self.controller.poll_event() {
            let Event::Done { result: Ok(answer), .. } = event else { continue };
            black_box(answer.get(0x80));
            done += 1;
        }
        assert_eq!(done, self.nodes.len() * self.window, "every request is answered");
    }
}

fn exchanges(c: &mut Criterion) {
    for (name, nodes, window) in [("one_by_one", 1, 1), ("window_32", 1, 32), ("50_nodes", 50, 1)] {
        let mut group = c.benchmark_group("ECHONET controller");
        group.throughput(Throughput::Elements(u64::from(nodes) * window as u64));
        let mut exchange = Exchange::new(nodes, window);
        group.bench_function(name, |b| b.iter(|| exchange.turn()));
        group.finish();
    }
}

criterion_group! { name = group; config = settings(); targets = exchanges }

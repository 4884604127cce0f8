//! A light on a serial line: wire, node and one class, nothing else. Frames go as they are, those for all nodes too.
#![no_std]
#![no_main]

mod board;
mod light;
mod line;
mod startup;

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use board::{Clock, Uart, sleep};
use echonet_lite::node::{Arrival, Instant, Node, Transmit};
use echonet_lite::wire::PORT;
use light::{CONFIG, Light};
use line::{Incoming, Outgoing};
use startup::Once;

/// The line has no addresses, so every datagram has this one.
const FAR_END: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT));

/// All that the program keeps.
struct State {
    clock: Clock,
    uart: Uart,
    incoming: Incoming,
    outgoing: Outgoing,
    /// Nothing is multicast on this line, so that only the node's own notifications wait.
    node: Node<[Light; 1], 128>,
}

static STATE: Once<State> = Once::new();

fn program() -> ! {
    let state = STATE.set(State {
        clock: Clock::start(),
        uart: Uart::start(),
        incoming: Incoming::new(),
        outgoing: Outgoing::new(),
        node: Node::with_store(CONFIG, [Light::new()]),
    });
    loop {
        state.turn();
    }
}

startup::entry!(program);

impl State {
    fn turn(&mut self) {
        let Self { clock, uart, incoming, outgoing, node } = self;
        let now_us = clock.now_us();
        while let Some(byte) = uart.receive() {
            incoming.push(now_us, byte);
        }
        if let Some(byte) = outgoing.next() {
            // Without sleep: the line is ready for the next byte long before the clock ticks.
            if uart.send(byte) {
                outgoing.advance();
            }
            return;
        }
        let now = Instant::from_micros(now_us);
        if let Some(frame) = incoming.frame(now_us) {
            let length = frame.len();
            node.handle(now, FAR_END, Arrival::Connection, frame, outgoing);
            incoming.consume(length);
        } else if let Some((destination, length)) = node.poll_transmit(now, outgoing.buffer()) {
            outgoing.transmit(destination, length);
        } else {
            sleep();
        }
    }
}

//! The relay between controllers and the meter, in virtual time: a week with everything that can happen on the way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use echonet_lite::controller::{self, Controller, Event, Interview, NodeAddr, Request, RequestId};
use echonet_lite::meter::{FixedTime, METER as OBJECT, epc};
use echonet_lite::node::Instant;
use echonet_lite::serial::{COMMAND_MAX, Config, Credentials, Module, Relay};
use echonet_lite::wire::{Eoj, Esv, Frame, FrameWriter, Header};

use crate::module::{Fault, ID, PASSWORD, Simulator};

/// The address of the meter in the network of the controllers.
const AT: [u8; 4] = [192, 0, 2, 1];
const MINUTE: u64 = 60_000_000;
const HALF_HOUR: u64 = 30 * MINUTE;
const DAY: u64 = 48 * HALF_HOUR;

/// Troubles, those of one half hour after those of the other.
const TROUBLES: [&[Fault]; 13] = [
    &[Fault::Expire],
    &[Fault::NoAnswer],
    &[Fault::Noise],
    // Only a new session can be denied.
    &[Fault::Close, Fault::Deny],
    &[Fault::Forge],
    &[Fault::Limit],
    &[Fault::Restart],
    &[Fault::NoTransmit],
    &[Fault::FindNeighbour],
    &[Fault::Silent("SKSENDTO")],
    &[Fault::Refuse("SKSENDTO", "ER10")],
    &[Fault::Checksum],
    &[Fault::LostByte],
];

/// The reading of a half hour: its number since the beginning, as the count.
fn fixed_time(now: u64) -> Vec<u8> {
    let slot = now / HALF_HOUR;
    let (day, hour, minute) = (1 + slot / 48, slot % 48 / 2, slot % 2 * 30);
    [&[0x07, 0xE9, 5, day as u8, hour as u8, minute as u8, 0][..], &(slot as u32).to_be_bytes()].concat()
}

fn value(of: u8, now: u64) -> Option<Vec<u8>> {
    Some(match of {
        epc::FIXED_TIME => fixed_time(now),
        epc::POWER => ((now / MINUTE) as u32).to_be_bytes().to_vec(),
        0x83 => [&[0xFE, 0, 0, 0x77][..], &[7; 13]].concat(),
        0xD6 => vec![1, 2, 0x88, 1],
        _ => return None,
    })
}

/// Answers as a meter does, with the values of the moment.
fn answer(request: &[u8], now: u64) -> Option<Vec<u8>> {
    let Ok(Frame::Format1(request)) = Frame::parse(request) else { return None };
    let values: Vec<_> = request.properties().map(|property| (property.epc, value(property.epc, now))).collect();
    let esv = if values.iter().all(|(_, value)| value.is_some()) { Esv::GetRes } else { Esv::GetSna };
    let header = Header { tid: request.tid(), seoj: request.deoj(), deoj: request.seoj(), esv };
    let mut buffer = [0; 1232];
    let mut writer = FrameWriter::new(&mut buffer, header).ok()?;
    for (epc, value) in values {
        writer.property(epc, &value.unwrap_or_default()).ok()?;
    }
    Some(writer.finish().ok()?.to_vec())
}

/// Two controllers, the relay, the module and the meter.
struct Bench {
    now: Instant,
    clock: Arc<AtomicU64>,
    relay: Relay,
    module: Simulator,
    controllers: [(SocketAddr, Controller); 2],
}

impl Bench {
    fn new(kind: Module) -> Self {
        let config = Config::new(kind, Credentials::new(ID, PASSWORD).unwrap());
        let clock = Arc::new(AtomicU64::new(0));
        let time = Arc::clone(&clock);
        let meter = Box::new(move |request: &[u8]| answer(request, time.load(Ordering::Relaxed)));
        let module = Simulator::new(kind, &[]).with_meter(meter);
        // Both begin with the same transaction identifier.
        let controllers = [[192, 0, 2, 8], [192, 0, 2, 9]].map(|address| {
            let settings = controller::Config { interview: Interview::Profile, ..controller::Config::new(7) };
            (SocketAddr::from((address, 3610)), Controller::new(settings))
        });
        let mut bench = Self { now: Instant(1), clock, relay: Relay::new(config, 0x7FF0), module, controllers };
        bench.relay.start(bench.now);
        bench
    }

    fn ask(&mut self, of: usize, epcs: &[u8]) -> RequestId {
        let meter = NodeAddr::from(std::net::Ipv4Addr::from(AT));
        self.controllers[of].1.request(self.now, meter, &Request::get(OBJECT, epcs).fresh()).unwrap()
    }

    /// Moves everything that can move now.
    fn settle(&mut self, mut told: impl FnMut(usize, u64, Event)) {
        let (mut command, mut datagram) = ([0; COMMAND_MAX], [0; 1472]);
        loop {
            let mut has_moved = false;
            for (of, (addr, controller)) in self.controllers.iter_mut().enumerate() {
                while let Some((_, length)) = controller.poll_transmit(self.now, &mut datagram) {
                    self.relay.handle(self.now, *addr, &datagram[..length]);
                    has_moved = true;
                }
                while let Some(event) = controller.poll_event() {
                    told(of, self.now.0, event);
                }
            }
            while let Some(length) = self.relay.poll_transmit(self.now, &mut command) {
                let said = self.module.feed(&command[..length]);
                self.relay.receive(self.now, &said);
                has_moved = true;
            }
            while let Some((to, bytes)) = self.relay.poll_datagram() {
                let controller = self.controllers.iter_mut().find(|(addr, _)| *addr == to);
                controller.unwrap().1.handle(self.now, SocketAddr::from((AT, 3610)), &bytes);
                has_moved = true;
            }
            if !has_moved {
                return;
            }
        }
    }

    /// Lets time pass until then.
    fn until(&mut self, end: u64, mut told: impl FnMut(usize, u64, Event)) {
        loop {
            self.settle(&mut told);
            let due = self.controllers.iter().filter_map(|(_, controller)| controller.poll_timeout());
            let due = due.chain(self.relay.poll_timeout()).min().unwrap_or(Instant(end));
            if due.0 >= end {
                break;
            }
            // A deadline that has come is dealt with at once.
            self.now = Instant(due.0.max(self.now.0 + 1));
            self.clock.store(self.now.0, Ordering::Relaxed);
            self.relay.handle_timeout(self.now);
        }
        self.now = Instant(end);
        self.clock.store(end, Ordering::Relaxed);
    }
}

#[test]
fn a_week_of_a_meter_has_no_gap_and_takes_no_more_memory() {
    for kind in [Module::Bp35a1, Module::Bp35c0] {
        let mut bench = Bench::new(kind);
        // Half hours that each controller has read in time, and heard of; power readings; memory by day.
        let (mut read, mut heard) = ([const { Vec::<u32>::new() }; 2], [const { Vec::<u32>::new() }; 2]);
        let (mut powers, mut memory) = (0, Vec::new());
        for minute in 0..7 * DAY / MINUTE {
            let now = minute * MINUTE;
            if minute % 30 == 0 {
                assert!(bench.module.is_fault_free(), "{kind:?}: a trouble before minute {minute} did not happen");
                for fault in TROUBLES[(now / HALF_HOUR) as usize % TROUBLES.len()] {
                    bench.module.add_fault(fault.clone());
                }
                let header = Header { tid: 0x55, seoj: OBJECT, deoj: Eoj::CONTROLLER, esv: Esv::Inf };
                let mut buffer = [0; 64];
                let mut writer = FrameWriter::new(&mut buffer, header).unwrap();
                writer.property(epc::FIXED_TIME, &fixed_time(now)).unwrap();
                let said = bench.module.announce(writer.finish().unwrap());
                bench.relay.receive(bench.now, &said);
            }
            for of in 0..2 {
                bench.ask(of, &[epc::POWER, epc::FIXED_TIME]);
            }
            bench.until(now + MINUTE, |of, now, event| match event {
                Event::Done { result: Ok(answer), .. } => {
                    let Some(fixed) = answer.get(epc::FIXED_TIME) else { return };
                    let slot = FixedTime::decode(fixed).unwrap().count.unwrap();
                    let power = u32::from_be_bytes(answer.get(epc::POWER).unwrap().try_into().unwrap());
                    assert!(now / MINUTE - u64::from(power) <= 1, "{kind:?}: an answer of another minute");
                    powers += 1;
                    if u64::from(slot) == now / HALF_HOUR && read[of].last() != Some(&slot) {
                        read[of].push(slot);
                    }
                }
                Event::Notification(news) if news.get(epc::FIXED_TIME).is_some() => {
                    heard[of].push(FixedTime::decode(news.get(epc::FIXED_TIME).unwrap()).unwrap().count.unwrap());
                }
                _ => {}
            });
            if (minute + 1) % (DAY / MINUTE) == 0 {
                let controllers: usize = bench.controllers.iter().map(|(_, controller)| controller.footprint()).sum();
                memory.push((controllers, bench.relay.stored()));
            }
        }
        let all: Vec<u32> = (0..7 * 48).collect();
        assert_eq!(read, [all.clone(), all.clone()], "{kind:?}");
        println!(
            "{kind:?}: {powers} readings, announcements {} and {}, memory {memory:?}",
            heard[0].len(),
            heard[1].len()
        );
        assert!(powers > 2 * 7 * 24 * 60 * 95 / 100, "{kind:?}: {powers} readings");
        assert!(heard.iter().all(|slots| slots.len() >= all.len() * 8 / 10), "{kind:?}: {heard:?}");
        let most = memory[..2].iter().map(|(bytes, _)| *bytes).max().unwrap();
        assert!(memory.iter().all(|(bytes, stored)| *bytes <= most && *stored < 64), "{kind:?}: {memory:?}");
    }
}

#[test]
fn a_session_that_begins_late_is_announced_and_what_waited_too_long_is_not_sent() {
    let mut bench = Bench::new(Module::Bp35a1);
    bench.module.audible_from = None;
    bench.ask(0, &[epc::POWER]);
    let mut ended = Vec::new();
    bench.until(20 * MINUTE, |of, _, event| {
        if let Event::Done { result, .. } = event {
            ended.push((of, result.is_ok()));
        }
    });
    assert_eq!(ended, [(0, false)]);
    bench.module.audible_from = Some(4);
    bench.module.commands.clear();
    let (mut ready, end) = (false, Duration::from_secs(3600).as_micros() as u64);
    bench.until(end, |of, _, event| ready |= of == 0 && matches!(event, Event::NodeReady(_)));
    assert!(ready, "{:?}", bench.relay);
    // The interview alone.
    let sent = bench.module.commands.iter().filter(|line| line.starts_with("SKSENDTO")).count();
    assert!((1..=6).contains(&sent), "{:#?}", bench.module.commands);
}

#[test]
fn a_meter_is_found_though_every_request_of_the_interview_is_disturbed() {
    let mut bench = Bench::new(Module::Bp35c0);
    for fault in [Fault::Close, Fault::Noise, Fault::NoAnswer, Fault::Restart, Fault::Expire] {
        bench.module.add_fault(fault);
    }
    let meter = NodeAddr::from(std::net::Ipv4Addr::from(AT));
    let search = Request::get(Eoj::NODE_PROFILE, &[0xD6, 0x83]).fresh().tries(2).timeout(Duration::from_secs(20));
    bench.controllers[0].1.request(bench.now, meter, &search).unwrap();
    let mut ready = None;
    bench.until(10 * MINUTE, |_, now, event| {
        if matches!(event, Event::NodeReady(_)) {
            ready = ready.or(Some(now));
        }
    });
    assert!(ready.is_some_and(|at| at < 3 * MINUTE), "{ready:?} {:#?}", bench.module.commands);
}

//! A meter behind a simulated module, in MQTT and on the exporter's page, in virtual time. Route B, bridge and exporter
//! are those of the command, on loopback sockets of one thread.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod broker;
mod counting;
#[path = "../../../../echonet-lite/tests/serial/module.rs"]
#[allow(dead_code, reason = "the tests of the driver use all of it")]
mod module;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker::{Broker, Message};
use clap::Parser;
use echonet_lite::class;
use echonet_lite::emulate::{Emulated, Moment};
use echonet_lite::meter::METER as OBJECT;
use echonet_lite::node::{
    self, Arrival, Identity, Instant as NodeInstant, Node, Object, Outbox, PropertyAccess, Refused,
};
use echonet_lite::serial::{Config, Credentials, Module};
use echonet_lite::wire::Eoj;
use module::{Fault, ID, PASSWORD, Simulator};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::{METER, Meter};
use crate::commands::{Cli, Command};
use crate::output::Output;
use crate::{bridge, web};

const MINUTE: Duration = Duration::from_secs(60);
const HALF_HOUR: Duration = Duration::from_secs(30 * 60);
/// Half hours of a day.
const SLOTS: u32 = 48;
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];
const BEGUN: Duration = Duration::from_secs(1_796_083_200);

/// A paused clock of tokio goes on to the next deadline although a socket has become ready. So there is a deadline every
/// so often, and each datagram takes up to this long.
const TICK: Duration = Duration::from_millis(100);

/// Power, the counts of both directions, and their values at the last half hour.
const POWER: u8 = 0xE7;
const COUNTS: [u8; 2] = [0xE0, 0xE3];
const FIXED: [u8; 2] = [0xEA, 0xEB];

/// The trouble of a half hour.
enum Trouble {
    Module(&'static [Fault]),
    /// The serial server closes the connection.
    LineCloses,
}

const TROUBLES: [Trouble; 14] = [
    Trouble::Module(&[Fault::Expire]),
    Trouble::Module(&[Fault::NoAnswer]),
    Trouble::Module(&[Fault::Noise]),
    Trouble::Module(&[Fault::Close, Fault::Deny]),
    Trouble::LineCloses,
    Trouble::Module(&[Fault::Forge]),
    Trouble::Module(&[Fault::Limit]),
    Trouble::Module(&[Fault::Restart]),
    Trouble::Module(&[Fault::NoTransmit]),
    Trouble::Module(&[Fault::FindNeighbour]),
    Trouble::Module(&[Fault::Silent("SKSENDTO")]),
    Trouble::Module(&[Fault::Refuse("SKSENDTO", "ER10")]),
    Trouble::Module(&[Fault::Checksum]),
    Trouble::Module(&[Fault::LostByte]),
];
/// Of so many announcements of half hours one is lost on the air.
const UNHEARD: u32 = 3;

/// Bytes by which the memory at the end of one day may differ from that of another: what is under way then.
const SPREAD: isize = 1024;

/// A meter that announces its readings of half hours.
struct Announcing(Emulated, PropertyAccess);

impl Announcing {
    fn new() -> Self {
        let mut emulated = Emulated::new(class::by_name("0288").unwrap(), 1, false, MAKER, 7);
        // Counts of whole kilowatt-hours.
        for (epc, edt) in [(0xD3, &[0, 0, 0, 1][..]), (0xD7, &[8]), (0xE1, &[0])] {
            assert!(emulated.put(epc, edt));
        }
        let access = FIXED.iter().fold(*emulated.access(), |access, epc| access.with(*epc, [true, false, true]));
        Self(emulated, access)
    }

    /// Has the values of a half hour: its number is the count.
    fn begin(&mut self, slot: u32) {
        let at = Moment(BEGUN + HALF_HOUR * slot);
        let ((year, month, day), (hour, minute, second)) = (at.date(), at.time());
        let moment = [&year.to_be_bytes()[..], &[month, day, hour, minute, second]].concat();
        for epc in COUNTS {
            assert!(self.0.put(epc, &slot.to_be_bytes()));
        }
        for epc in FIXED {
            assert!(self.0.put(epc, &[&moment[..], &slot.to_be_bytes()].concat()));
        }
    }
}

impl Object for Announcing {
    fn eoj(&self) -> Eoj {
        self.0.eoj()
    }

    fn access(&self) -> &PropertyAccess {
        &self.1
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        self.0.get(epc, edt)
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        self.0.set(epc, edt)
    }
}

/// The meter with its module behind a serial server.
struct Simulated {
    began: Instant,
    node: Arc<Mutex<Node<Vec<Announcing>>>>,
    module: Arc<Mutex<Simulator>>,
    /// Bytes that the module sends of its own accord; none closes the line.
    line: mpsc::UnboundedSender<Option<Vec<u8>>>,
}

impl Simulated {
    /// Begins to listen; returns the URL of the serial server, too.
    async fn start(kind: Module) -> (Self, String) {
        let began = Instant::now();
        let mut config = node::Config::new(Identity::new(MAKER, 7));
        config.multicast_delay = Duration::ZERO;
        let node = Arc::new(Mutex::new(Node::new(config, vec![Announcing::new()])));
        let asked = Arc::clone(&node);
        let answers = move |request: &[u8]| {
            let (mut buffer, mut sent) = ([0; 1232], None);
            let mut out = Outbox::new(&mut buffer, |_, bytes: &[u8]| sent = Some(bytes.to_vec()));
            let from = SocketAddr::from(([192, 0, 2, 9], 3610));
            asked.lock().unwrap().handle(since(began), from, Arrival::Unicast, request, &mut out);
            sent
        };
        let module = Arc::new(Mutex::new(Simulator::new(kind, &[]).with_meter(Box::new(answers))));
        let (line, said) = mpsc::unbounded_channel();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("tcp://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, Arc::clone(&module), said));
        (Self { began, node, module, line }, url)
    }

    fn begin(&self, slot: u32, is_heard: bool) {
        let (mut node, mut buffer) = (self.node.lock().unwrap(), [0; 1232]);
        node.objects_mut()[0].begin(slot);
        FIXED.iter().for_each(|epc| node.notify(OBJECT, *epc).unwrap());
        while let Some((_, length)) = node.poll_transmit(since(self.began), &mut buffer) {
            let said = self.module.lock().unwrap().announce(&buffer[..length]);
            if is_heard {
                self.line.send(Some(said)).unwrap();
            }
        }
    }

    fn trouble(&self, trouble: &Trouble) {
        match trouble {
            Trouble::Module(faults) => {
                let mut module = self.module.lock().unwrap();
                faults.iter().for_each(|fault| module.add_fault(fault.clone()));
            }
            Trouble::LineCloses => self.line.send(None).unwrap(),
        }
    }
}

fn since(began: Instant) -> NodeInstant {
    NodeInstant(1 + began.elapsed().as_micros() as u64)
}

/// A serial server with the module behind it, for one client at a time.
async fn serve(
    listener: TcpListener,
    module: Arc<Mutex<Simulator>>,
    mut said: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
) {
    let mut bytes = [0; 4096];
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        // Lost, as no host was there.
        while said.try_recv().is_ok() {}
        loop {
            let answer = tokio::select! {
                read = stream.read(&mut bytes) => match read {
                    Ok(length @ 1..) => module.lock().unwrap().feed(&bytes[..length]),
                    _ => break,
                },
                said = said.recv() => match said {
                    Some(Some(said)) => said,
                    Some(None) => break,
                    None => return,
                },
            };
            if stream.write_all(&answer).await.is_err() {
                break;
            }
        }
    }
}

/// The exporter's page.
async fn scrape(addr: SocketAddr) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// The counts of half hours that were seen, in order, by topic or series.
#[derive(Default)]
struct Seen(BTreeMap<String, Vec<u32>>);

impl Seen {
    fn take(&mut self, of: &str, value: &str) {
        // Room for a week: more is no growth of what is tested.
        let counts = self.0.entry(of.to_owned()).or_insert_with(|| Vec::with_capacity(7 * 48));
        let count = value.parse().unwrap();
        if counts.last() != Some(&count) {
            counts.push(count);
        }
    }

    fn take_page(&mut self, page: &str) {
        let is_reading = |line: &&str| line.contains("at_every30_min") && line.contains("field=\"electricEnergy\"");
        let lines = page.lines().filter(|line| !line.starts_with('#')).filter(is_reading);
        lines.filter_map(|line| line.rsplit_once(' ')).for_each(|(series, value)| self.take(series, value));
    }

    fn take_messages(&mut self, messages: &[Message]) {
        let readings = messages.iter().filter(|(topic, _)| topic.ends_with("AtEvery30Min/electricEnergy"));
        readings.for_each(|(topic, payload)| self.take(topic, payload));
    }

    /// Both directions, and all half hours up to this one in order.
    fn has_all(&self, slot: u32) -> bool {
        self.0.len() == FIXED.len() && self.0.values().all(|counts| counts.iter().copied().eq(0..=slot))
    }
}

fn cli(line: &[&str]) -> &'static Cli {
    Box::leak(Box::new(Cli::try_parse_from([&["echonet", "--quiet"][..], line].concat()).unwrap()))
}

/// Has route B, bridge and exporter run. Returns the address of the page.
async fn run_all(kind: Module, port: u16, line: &str, broker: &str) -> SocketAddr {
    let page = SocketAddr::from(([127, 0, 0, 1], test_peers::free_port()));
    let (port_text, page_text) = (port.to_string(), page.to_string());
    let command = |own: &str, rest: &[&str]| {
        let common = ["--port", port_text.as_str(), "--address", own];
        cli(&[&common[..], rest].concat())
    };
    let bridged = ["--meter", line, "--module", kind.name(), "bridge", broker];
    let bridged = command("127.75.81.1", &bridged);
    let exported = command("127.75.81.2", &["export", "--listen", page_text.as_str(), "--node", &METER.to_string()]);
    let out: &'static Output = Box::leak(Box::new(Output::new(&bridged.options)));
    let config = Config::new(kind, Credentials::new(ID, PASSWORD).unwrap());
    let path = bridged.options.meter.as_deref().unwrap();
    let mut meter = Meter::open(path, config, port, *out).await.unwrap();
    tokio::task::spawn_local(async move { meter.run().await });
    let Command::Bridge(args) = &bridged.command else { panic!("another command") };
    tokio::task::spawn_local(async move { bridge::run(args, &bridged.options, out).await.unwrap() });
    let Command::Export(args) = &exported.command else { panic!("another command") };
    tokio::task::spawn_local(async move { web::export(args, &exported.options, out).await.unwrap() });
    page
}

/// Every reading of a half hour is in MQTT and on the page before the next one, whatever happens on the way.
async fn live(kind: Module, port: u16, days: u32) {
    tokio::spawn(async {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
        }
    });
    let (simulated, line) = Simulated::start(kind).await;
    let (broker, url) = Broker::start().await;
    let page = run_all(kind, port, &line, &url).await;
    let (mut told, mut shown, mut memory) = (Seen::default(), Seen::default(), Vec::with_capacity(7));
    for slot in 0..SLOTS * days {
        let (begins, trouble) = (simulated.began + HALF_HOUR * slot, slot as usize % TROUBLES.len());
        sleep_until(begins).await;
        simulated.trouble(&TROUBLES[trouble]);
        simulated.begin(slot, slot % UNHEARD != UNHEARD - 1);
        for minute in 0..30 {
            sleep_until(begins + MINUTE * minute + MINUTE * 3 / 4).await;
            assert!(simulated.node.lock().unwrap().objects_mut()[0].0.put(POWER, &(slot * 30 + minute).to_be_bytes()));
            shown.take_page(&scrape(page).await);
        }
        told.take_messages(&broker.published());
        assert!(simulated.module.lock().unwrap().is_fault_free(), "{kind:?}: trouble {trouble} did not happen");
        assert!(told.has_all(slot), "{kind:?}, trouble {trouble}: MQTT has {:?}", told.0);
        assert!(shown.has_all(slot), "{kind:?}, trouble {trouble}: the page has {:?}", shown.0);
        for topic in told.0.keys() {
            assert_eq!(broker.retained(topic), Some(slot.to_string()), "{topic}");
        }
        if (slot + 1) % SLOTS == 0 {
            let mut module = simulated.module.lock().unwrap();
            let joins = std::mem::take(&mut module.commands).iter().filter(|line| line.starts_with("SKJOIN")).count();
            let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            memory.push((counting::in_use(), tasks, joins));
        }
    }
    println!("{kind:?}: {} half hours; bytes, tasks, joins by day: {memory:?}", SLOTS * days);
    let (first, later) = memory.split_at(memory.len().min(2));
    let [bytes, tasks] = [first.iter().map(|day| day.0).max(), first.iter().map(|day| day.1 as isize).max()];
    let is_flat =
        |day: &(isize, usize, usize)| Some(day.0) <= bytes.map(|most| most + SPREAD) && Some(day.1 as isize) <= tasks;
    assert!(later.iter().all(is_flat), "{memory:?}");
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, test);
}

#[test]
fn a_day_of_a_meter_is_in_mqtt_and_on_the_page_without_a_gap() {
    in_virtual_time(live(Module::Bp35c0, 13_781, 1));
}

#[test]
fn a_week_takes_no_more_memory() {
    in_virtual_time(live(Module::Bp35a1, 13_782, 7));
}

//! A home gateway: finds every node, remembers the state of its objects, and prints what changes.

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Parser;
use echonet_lite::class;
use echonet_lite::controller::{self, Event, Interview, NodeAddr, Request};
use echonet_lite::net::Endpoint;
use echonet_lite::wire::{Eoj, PropertySet};
use tokio::task::JoinHandle;
use tokio::time::Interval;

/// Properties that say what an object is rather than in which state: not asked for again and again.
const CONSTANT: PropertySet = PropertySet::of(&[0x82, 0x83, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x9D, 0x9E, 0x9F]);

/// Prints what changes in the home.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
    /// Seconds between two rounds of asking for what nodes do not announce
    #[arg(long, default_value_t = 30.0)]
    interval: f64,
    /// Seconds between two searches for nodes that have not announced themselves
    #[arg(long, default_value_t = 300.0)]
    search: f64,
}

/// The last known values.
#[derive(Default)]
struct Home {
    values: BTreeMap<(NodeAddr, Eoj, u8), Vec<u8>>,
}

impl Home {
    /// Takes a value; prints it if it is new.
    fn learn(&mut self, node: NodeAddr, eoj: Eoj, epc: u8, value: &[u8]) {
        let known = self.values.get(&(node, eoj, epc));
        if known.is_some_and(|known| known == value) {
            return;
        }
        let class = class::find(eoj.class_code());
        let property = class.and_then(|class| class.property(epc));
        // A value that the tables do not explain is shown as it is.
        let readable = |value: &[u8]| match property.map(|property| property.decode(value)) {
            Some(Ok(value)) => value.to_string(),
            _ => value.iter().map(|byte| format!("{byte:02X}")).collect(),
        };
        let object = class.map_or("unknown class", |class| class.name());
        let name = property.map_or("", |property| property.short_name);
        let before = known.map(|known| format!("{} → ", readable(known))).unwrap_or_default();
        println!("{node} {eoj} {object}: {epc:02X} {name} {before}{}", readable(value));
        self.values.insert((node, eoj, epc), value.to_vec());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let mut config = controller::Config::new(u64::from(std::process::id()));
    config.interview = Interview::Everything;
    let endpoint = flags.place.apply(Endpoint::builder()).controller(config).bind().await?;
    common::tell_where(&endpoint.interfaces());
    let rounds = tokio::time::interval(Duration::try_from_secs_f64(flags.interval)?);
    let searches = tokio::time::interval(Duration::try_from_secs_f64(flags.search)?);
    // The end waits for no answer.
    tokio::select! {
        () = attend(&endpoint, rounds, searches) => Ok(()),
        ended = common::asked_to_end() => Ok(ended?),
    }
}

/// Prints what happens, and asks in rounds. A node is asked by a task of its own: one that is silent holds up no other.
async fn attend(endpoint: &Endpoint, mut rounds: Interval, mut searches: Interval) {
    let mut events = endpoint.events();
    let home = Arc::new(Mutex::new(Home::default()));
    let mut asking: BTreeMap<NodeAddr, JoinHandle<()>> = BTreeMap::new();
    let mut ask_once = |node| {
        // A node that still owes the answers of the last round gets no new requests.
        if asking.get(&node).is_none_or(JoinHandle::is_finished) {
            asking.insert(node, tokio::spawn(ask(endpoint.clone(), Arc::clone(&home), node)));
        }
    };
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Event::Notification(news)) => {
                    for (epc, value) in news.properties() {
                        home.lock().unwrap_or_else(PoisonError::into_inner).learn(news.node, news.eoj, epc, value);
                    }
                }
                Some(Event::NodeReady(node)) => {
                    println!("{node} is there");
                    ask_once(node);
                }
                Some(Event::NodeMoved { from, to }) => println!("{from} is now {to}"),
                Some(Event::NodeChanged(node)) => println!("{node} has other objects than before"),
                Some(Event::Missed(count)) => println!("{count} events came faster than they could be printed"),
                Some(_) => {}
                None => return,
            },
            _ = rounds.tick() => endpoint.nodes().iter().for_each(|node| ask_once(node.addr)),
            _ = searches.tick() => {
                let endpoint = endpoint.clone();
                // Each node that the search finds comes as an event.
                tokio::spawn(async move { endpoint.discover(Duration::from_secs(5)).await });
            }
        }
    }
}

/// Asks a node for the state of all its objects.
async fn ask(endpoint: Endpoint, home: Arc<Mutex<Home>>, node: NodeAddr) {
    let Some(info) = endpoint.nodes().into_iter().find(|info| info.addr == node) else { return };
    for object in &info.objects {
        let Some(maps) = info.maps(object.eoj) else { continue };
        let state: Vec<u8> = maps.readable.difference(CONSTANT).iter().collect();
        if state.is_empty() {
            continue;
        }
        match endpoint.request(node, &Request::get(object.eoj, &state)).await {
            Ok(answer) => {
                let mut home = home.lock().unwrap_or_else(PoisonError::into_inner);
                for outcome in answer.outcomes() {
                    if let Some(value) = outcome.value {
                        home.learn(node, object.eoj, outcome.epc, value);
                    }
                }
            }
            Err(error) => println!("{node} {}: {error}", object.eoj),
        }
    }
}

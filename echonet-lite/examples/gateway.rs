//! A home gateway: finds every node, remembers the state of its objects, and prints what changes.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Parser;
use echonet_lite::class;
use echonet_lite::controller::{self, Event, Interview, NodeAddr, Request};
use echonet_lite::net::Endpoint;
use echonet_lite::wire::{Eoj, PropertySet};

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
    let mut rounds = tokio::time::interval(Duration::try_from_secs_f64(flags.interval)?);
    let mut searches = tokio::time::interval(Duration::try_from_secs_f64(flags.search)?);
    let mut events = endpoint.events();
    let mut home = Home::default();
    let mut ended = std::pin::pin!(common::asked_to_end());
    loop {
        tokio::select! {
            Some(event) = events.next() => match event {
                Event::Notification(news) => {
                    for (epc, value) in news.properties() {
                        home.learn(news.node, news.eoj, epc, value);
                    }
                }
                Event::NodeReady(node) => {
                    println!("{node} is there");
                    ask(&endpoint, &mut home, node).await;
                }
                Event::NodeMoved { from, to } => println!("{from} is now {to}"),
                Event::NodeChanged(node) => println!("{node} has other objects than before"),
                Event::Missed(count) => println!("{count} events came faster than they could be printed"),
                _ => {}
            },
            _ = rounds.tick() => {
                for node in endpoint.nodes() {
                    ask(&endpoint, &mut home, node.addr).await;
                }
            }
            _ = searches.tick() => {
                let endpoint = endpoint.clone();
                // What is found comes as an event.
                tokio::spawn(async move { endpoint.discover(Duration::from_secs(5)).await });
            }
            ended = &mut ended => return Ok(ended?),
        }
    }
}

/// Asks a node for the state of all its objects.
async fn ask(endpoint: &Endpoint, home: &mut Home, node: NodeAddr) {
    let Some(info) = endpoint.nodes().into_iter().find(|info| info.addr == node) else { return };
    for object in &info.objects {
        let Some(maps) = info.maps(object.eoj) else { continue };
        let state: Vec<u8> = maps.readable.difference(CONSTANT).iter().collect();
        if state.is_empty() {
            continue;
        }
        match endpoint.request(node, &Request::get(object.eoj, &state)).await {
            Ok(answer) => {
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

//! `echonet bridge`: the home in MQTT, as Home Assistant discovers it.
//!
//! Every object is a device of Home Assistant, every property that has a form of its own an entity. What nodes announce is
//! published as it comes; what they do not announce is asked for, the more often the more it changes. What is true is kept,
//! so that a broker that was away learns it when it is back.

mod broker;
mod composite;
mod device_class;
mod shown;
mod thing;

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use broker::{Broker, News, OFFLINE, ONLINE};
use echonet_lite::controller::{Event, Interview, NodeAddr, NodeInfo, Notification, Request};
use echonet_lite::net::Endpoint;
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::json;
use thing::{Group, Thing};
use tokio::sync::mpsc;

use crate::commands::{Bridge as Args, Options};
use crate::failure::Failure;
use crate::output::Output;
use crate::{link, names, quirks, render};

/// How long answers to a search are waited for, and the time between two searches.
const SEARCH: Duration = Duration::from_secs(3);
const SEARCHES: Duration = Duration::from_secs(300);
/// Nodes and requests that a large building has.
const NODES: usize = 8192;
const REQUESTS: usize = 16_384;
/// How long to wait for room in the client.
const ROOM: Duration = Duration::from_millis(2);
/// What was written is asked for again after this: some devices take a moment to do it.
const SETTLED: Duration = Duration::from_secs(2);

/// What a question has brought.
struct Reading {
    node: NodeAddr,
    eoj: Eoj,
    why: Why,
    values: Vec<(u8, Vec<u8>)>,
    /// Why there is not all.
    failure: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// It was time for these.
    Due(Group),
    /// These were written.
    Written(PropertySet),
    /// Whether a node is still where it was, because it seems to be at this address now.
    Namesake(NodeAddr),
}

/// A node that is shown.
struct Node {
    id: String,
    eojs: Vec<Eoj>,
}

struct Bridge<'a> {
    endpoint: Endpoint,
    broker: Broker,
    args: &'a Args,
    quirks: quirks::Table,
    nodes: HashMap<NodeAddr, Node>,
    things: HashMap<(NodeAddr, Eoj), Thing>,
    /// Which object a topic is about.
    topics: HashMap<String, (NodeAddr, Eoj)>,
    due: BTreeSet<(Instant, NodeAddr, Eoj, Group)>,
    readings: mpsc::UnboundedSender<Reading>,
    out: &'a Output,
}

pub(crate) async fn run(args: &Args, options: &Options, out: &Output) -> Result<(), Failure> {
    let quirks = quirks::Table::with_file(args.quirks.as_deref())?;
    let mut settings = link::settings(options, Interview::Everything);
    (settings.max_nodes, settings.max_requests, settings.max_events) = (NODES, REQUESTS, REQUESTS);
    let endpoint = link::builder(options).controller(settings).bind().await?;
    let mut events = endpoint.events();
    let subscriptions = vec![format!("{}/+/+/+/set", args.topic), format!("{}/status", args.discovery)];
    let (broker, mut news) = Broker::open(&args.broker, availability(args, "bridge"), subscriptions)?;
    // No more of them than the controller has requests.
    let (readings, mut read) = mpsc::unbounded_channel();
    let (nodes, things, topics, due) = (HashMap::new(), HashMap::new(), HashMap::new(), BTreeSet::new());
    let mut bridge = Bridge { endpoint, broker, args, quirks, nodes, things, topics, due, readings, out };

    let mut searches = tokio::time::interval(SEARCHES);
    let mut ended = std::pin::pin!(link::asked_to_end());
    let mut over = std::pin::pin!(link::after(options.timeout));
    loop {
        let next = bridge.due.first().map(|(at, ..)| *at);
        let room = bridge.broker.is_waiting();
        tokio::select! {
            event = events.next() => match event {
                Some(event) => bridge.happened(event)?,
                None => break,
            },
            Some(news) = news.recv() => bridge.told(news),
            Some(reading) = read.recv() => bridge.take(reading)?,
            () = until(next) => bridge.ask_due(),
            () = tokio::time::sleep(ROOM), if room => bridge.broker.pump(),
            _ = searches.tick() => bridge.search(),
            ended = &mut ended => {
                ended?;
                break;
            }
            () = &mut over => break,
        }
    }
    bridge.broker.close().await;
    Ok(())
}

/// Waits until then; for ever if there is nothing to wait for.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

fn availability(args: &Args, id: &str) -> String {
    format!("{}/{id}/availability", args.topic)
}

impl Bridge<'_> {
    /// Something happened on the network.
    fn happened(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Notification(news) => self.notified(&news),
            Event::NodeReady(addr) => self.ready(addr)?,
            Event::NodeAnnounced(addr) => self.ask_soon(addr, Duration::ZERO),
            Event::NodeReturned(addr) => {
                self.say_available(addr, ONLINE);
                self.ask_soon(addr, Duration::ZERO);
            }
            Event::NodeLost(addr) => self.say_available(addr, OFFLINE),
            Event::NodeJoined { addr, .. } => self.remove(addr),
            Event::Missed(count) => {
                self.out.remark(format_args!("{count} events came too fast: everything is asked for"));
                let nodes: Vec<_> = self.nodes.keys().copied().collect();
                nodes.into_iter().for_each(|addr| self.ask_soon(addr, Duration::ZERO));
            }
            _ => {}
        }
        Ok(())
    }

    fn notified(&mut self, news: &Notification) {
        let Some(thing) = self.things.get_mut(&(news.node, news.eoj)) else { return };
        for (epc, edt) in news.properties() {
            let topics = thing.take(epc, edt);
            topics.into_iter().for_each(|(topic, payload)| self.broker.publish(topic, payload));
        }
    }

    /// All is known of a node: its objects are asked for their values, and then shown.
    fn ready(&mut self, addr: NodeAddr) -> Result<(), Failure> {
        let Some(info) = self.endpoint.node(addr) else { return Ok(()) };
        if self.nodes.contains_key(&addr) {
            return self.show(&info, None);
        }
        let id = info.identification.as_ref().map_or_else(|| plain(addr), |number| render::hex(number).to_lowercase());
        let namesake = self.nodes.iter().find(|(_, node)| node.id == id).map(|(addr, _)| *addr);
        match namesake {
            None => self.show(&info, Some(id)),
            Some(other) => {
                // It has moved, or its maker gives all devices the same number: who is still there tells.
                let (endpoint, readings) = (self.endpoint.clone(), self.readings.clone());
                tokio::spawn(async move {
                    let request = Request::get(Eoj::NODE_PROFILE, &[0x83]).tries(1).timeout(SEARCH);
                    let failure = endpoint.request(other, &request).await.err().map(|error| error.to_string());
                    let why = Why::Namesake(addr);
                    // The bridge has ended.
                    let _ = readings.send(Reading {
                        node: other,
                        eoj: Eoj::NODE_PROFILE,
                        why,
                        values: Vec::new(),
                        failure,
                    });
                });
                Ok(())
            }
        }
    }

    /// Has the objects of a node that have come, and no more those that have gone.
    fn show(&mut self, info: &NodeInfo, id: Option<String>) -> Result<(), Failure> {
        let addr = info.addr;
        let known = self.nodes.remove(&addr);
        let gone: Vec<_> =
            known.iter().flat_map(|node| &node.eojs).filter(|eoj| info.object(**eoj).is_none()).copied().collect();
        gone.into_iter().for_each(|eoj| self.hide(addr, eoj));
        let Some(id) = known.map(|node| node.id).or(id) else { return Ok(()) };
        let mut eojs = Vec::new();
        for object in &info.objects {
            let (Some(class), Some(maps)) = (names::class_of(object.eoj), object.maps) else { continue };
            eojs.push(object.eoj);
            let quirks = self.quirks.of(info.maker, object.eoj.class_code());
            let make =
                || Thing::new(class, object.eoj, maps, (quirks, info.maker), (&self.args.topic, &id), self.args.poll);
            let thing = self.things.entry((addr, object.eoj)).or_insert_with(make);
            self.topics.insert(thing.base.clone(), (addr, object.eoj));
            let (base, is_new) = (thing.base.clone(), !thing.is_described);
            self.out.result(
                || json!({ "event": "found", "address": addr.to_string(), "object": render::object_json(object.eoj), "topic": base }),
                || format!("{addr} {} is {base}", render::object(object.eoj)),
            )?;
            if is_new {
                self.plan(addr, object.eoj, Group::First, Duration::ZERO);
            }
        }
        self.nodes.insert(addr, Node { id, eojs });
        self.say_available(addr, if info.is_lost { OFFLINE } else { ONLINE });
        Ok(())
    }

    fn say_available(&mut self, addr: NodeAddr, state: &str) {
        if let Some(node) = self.nodes.get(&addr) {
            self.broker.publish(availability(self.args, &node.id), state.to_owned());
        }
    }

    /// Takes an object back.
    fn hide(&mut self, addr: NodeAddr, eoj: Eoj) {
        self.due.retain(|(_, of, object, _)| (*of, *object) != (addr, eoj));
        let Some(thing) = self.things.remove(&(addr, eoj)) else { return };
        self.topics.remove(&thing.base);
        self.broker.publish(thing.description_topic(&self.args.discovery), String::new());
        self.broker.withdraw(&format!("{}/", thing.base));
    }

    /// Takes a node back: it is another one's address.
    fn remove(&mut self, addr: NodeAddr) {
        let Some(node) = self.nodes.remove(&addr) else { return };
        node.eojs.into_iter().for_each(|eoj| self.hide(addr, eoj));
        self.broker.publish(availability(self.args, &node.id), String::new());
    }

    /// A node is somewhere else now, and keeps its topics.
    fn moved(&mut self, from: NodeAddr) -> Option<String> {
        let node = self.nodes.remove(&from)?;
        self.due.retain(|(_, of, ..)| *of != from);
        for eoj in node.eojs {
            if let Some(thing) = self.things.remove(&(from, eoj)) {
                self.topics.remove(&thing.base);
            }
        }
        Some(node.id)
    }

    /// Has a group of an object asked for after a time, instead of when it was planned before.
    fn plan(&mut self, addr: NodeAddr, eoj: Eoj, group: Group, after: Duration) {
        self.due.retain(|(_, of, object, which)| (*of, *object, *which) != (addr, eoj, group));
        self.due.insert((Instant::now() + after, addr, eoj, group));
    }

    /// Has all objects of a node asked for.
    fn ask_soon(&mut self, addr: NodeAddr, after: Duration) {
        let eojs = self.nodes.get(&addr).map(|node| node.eojs.clone()).unwrap_or_default();
        for eoj in eojs {
            for group in [Group::Silent, Group::Announced] {
                self.plan(addr, eoj, group, after);
            }
        }
    }

    /// Asks for what it is time for.
    fn ask_due(&mut self) {
        let now = Instant::now();
        while let Some(&(at, addr, eoj, group)) = self.due.first().filter(|(at, ..)| *at <= now) {
            self.due.remove(&(at, addr, eoj, group));
            let Some(thing) = self.things.get(&(addr, eoj)) else { continue };
            self.read(addr, eoj, thing.properties(group), Why::Due(group), Vec::new());
        }
    }

    /// Reads properties, after others were written.
    fn read(&self, node: NodeAddr, eoj: Eoj, epcs: PropertySet, why: Why, writes: Vec<(u8, Vec<u8>)>) {
        let Some(thing) = self.things.get(&(node, eoj)) else { return };
        let batches = thing.quirks.batches(epcs);
        let (endpoint, readings) = (self.endpoint.clone(), self.readings.clone());
        tokio::spawn(async move {
            let mut failure = None;
            if !writes.is_empty() {
                let lent: Vec<_> = writes.iter().map(|(epc, edt)| (*epc, edt.as_slice())).collect();
                failure = match endpoint.set(node, eoj, &lent).await {
                    Ok(answer) if answer.is_ok() => None,
                    Ok(_) => Some("refused".to_owned()),
                    Err(error) => Some(error.to_string()),
                };
            }
            let mut values = Vec::new();
            for batch in batches {
                match endpoint.get(node, eoj, &batch).await {
                    Ok(answer) => {
                        let read = answer.outcomes().filter_map(|outcome| Some((outcome.epc, outcome.value?.to_vec())));
                        values.extend(read);
                    }
                    Err(error) => failure = failure.or_else(|| Some(error.to_string())),
                }
            }
            // The bridge has ended.
            let _ = readings.send(Reading { node, eoj, why, values, failure });
        });
    }

    /// Takes what was read.
    fn take(&mut self, reading: Reading) -> Result<(), Failure> {
        let Reading { node, eoj, why, values, failure } = reading;
        if let Why::Namesake(addr) = why {
            let Some(info) = self.endpoint.node(addr) else { return Ok(()) };
            let moved = failure.is_some().then(|| self.moved(node)).flatten();
            let number = info.identification.as_ref().map(|number| render::hex(number).to_lowercase());
            let own = || Some(number.map_or_else(|| plain(addr), |number| format!("{number}_{}", plain(addr))));
            return self.show(&info, moved.or_else(own));
        }
        let Some(thing) = self.things.get_mut(&(node, eoj)) else { return Ok(()) };
        let mut changed = false;
        for (epc, edt) in &values {
            let topics = thing.take(*epc, edt);
            changed |= !topics.is_empty();
            topics.into_iter().for_each(|(topic, payload)| self.broker.publish(topic, payload));
        }
        match why {
            Why::Due(Group::First) if values.is_empty() && !thing.properties(Group::First).is_empty() => {
                let after = thing.next(Group::First, self.args.poll, false);
                self.plan(node, eoj, Group::First, after);
            }
            Why::Due(Group::First) => self.describe(node, eoj),
            Why::Due(group) => {
                let after = thing.next(group, self.args.poll, changed);
                if !thing.properties(group).is_empty() {
                    self.plan(node, eoj, group, after);
                }
            }
            Why::Written(epcs) => {
                // Who wrote sees what is true, even if it is what was true before.
                let topics: Vec<_> = epcs.iter().flat_map(|epc| thing.topics(epc)).collect();
                topics.into_iter().for_each(|(topic, payload)| self.broker.publish_anew(topic, payload));
                if let Some(failure) = failure {
                    self.out.remark(format_args!("{node} {}: not written: {failure}", render::object(eoj)));
                }
                self.ask_soon(node, SETTLED);
            }
            Why::Namesake(_) => {}
        }
        Ok(())
    }

    /// Tells Home Assistant of an object.
    fn describe(&mut self, addr: NodeAddr, eoj: Eoj) {
        let (Some(node), Some(thing)) = (self.nodes.get(&addr), self.things.get_mut(&(addr, eoj))) else { return };
        let topics = ["bridge", &node.id].map(|id| availability(self.args, id));
        let description = thing.description(topics.each_ref().map(String::as_str));
        thing.is_described = true;
        let groups = [Group::Silent, Group::Announced].map(|group| (group, thing.next(group, self.args.poll, true)));
        let groups = groups.map(|(group, after)| (group, after, thing.properties(group).is_empty()));
        self.broker.publish(thing.description_topic(&self.args.discovery), description.to_string());
        for (group, after, _) in groups.into_iter().filter(|(.., is_empty)| !is_empty) {
            self.plan(addr, eoj, group, after);
        }
    }

    /// The broker has something to say.
    fn told(&mut self, news: News) {
        match news {
            News::Connected => {
                self.out.remark("the broker is there");
                self.broker.connected();
            }
            News::Lost(why) => {
                self.out.remark(format_args!("the broker is away: {why}"));
                self.broker.lost();
            }
            News::Message { topic, payload } if topic == format!("{}/status", self.args.discovery) => {
                if payload == ONLINE {
                    self.broker.tell_all();
                }
            }
            News::Message { topic, payload } => {
                if let Err(why) = self.command(&topic, &payload) {
                    self.out.remark(format_args!("{topic} {payload}: {why}"));
                }
            }
        }
    }

    /// Somebody wants a property to have a value.
    fn command(&self, topic: &str, payload: &str) -> Result<(), String> {
        let place = topic.strip_suffix("/set").and_then(|topic| topic.rsplit_once('/'));
        let (base, name) = place.ok_or("no topic of a property")?;
        let &(node, eoj) = self.topics.get(base).ok_or("there is no such object")?;
        let thing = self.things.get(&(node, eoj)).ok_or("there is no such object")?;
        let writes = match thing.class.property_by_name(name) {
            Some(spec) if thing.maps.writable.contains(spec.epc) => {
                let mut edt = [0; 255];
                let length = spec.parse(payload, &mut edt).map_err(|error| error.to_string())?;
                vec![(spec.epc, edt[..length].to_vec())]
            }
            Some(_) => return Err("it cannot be written".to_owned()),
            None if name == composite::MODE => composite::mode_writes(payload).ok_or("there is no such mode")?,
            None => return Err("there is no such property".to_owned()),
        };
        let epcs = writes.iter().fold(PropertySet::EMPTY, |set, (epc, _)| set.with(*epc));
        self.read(node, eoj, epcs.intersection(thing.maps.readable), Why::Written(epcs), writes);
        Ok(())
    }

    fn search(&self) {
        let endpoint = self.endpoint.clone();
        // What it finds comes as events; a search that cannot be made is made up for by the next.
        tokio::spawn(async move { endpoint.discover(SEARCH).await.map(drop) });
    }
}

/// An address as a part of a topic.
fn plain(addr: NodeAddr) -> String {
    addr.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

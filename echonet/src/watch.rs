//! `echonet watch`: announcements of nodes, and values that have changed without being announced.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use echonet_lite::class::{self, Class};
use echonet_lite::controller::{Event, Interview, NodeAddr};
use echonet_lite::net::Endpoint;
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::commands::{Options, Watch};
use crate::failure::Failure;
use crate::language::Language;
use crate::output::Output;
use crate::render::{self, Factors, Property};
use crate::{data, get, link, names};
use echonet_lite::emulate::Moment;

/// Properties that say what an object is rather than in which state: not asked for again and again.
const CONSTANT: PropertySet = PropertySet::of(&[0x82, 0x83, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x9D, 0x9E, 0x9F]);
/// How long the nodes are searched for that are then asked.
const SEARCH: Duration = Duration::from_secs(3);
/// How long one object may take to answer before the round goes on without it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Values that a round may be ahead of what is printed.
const AHEAD: usize = 256;

/// A value of a property of an object of a node.
struct Reading {
    node: NodeAddr,
    eoj: Eoj,
    epc: u8,
    edt: Vec<u8>,
    source: &'static str,
}

pub(crate) async fn run(args: &Watch, options: &Options, out: &Output) -> Result<(), Failure> {
    let targets = args.targets.iter().map(|text| names::target(text, options)).collect::<Result<Vec<_>, _>>()?;
    // Requests need a socket that receives unicast. A device on this machine gets no unicast meanwhile.
    let asks = args.interval.is_some() || data::has_variants();
    let endpoint = if asks { link::open(options, Interview::Nothing).await? } else { link::listen(options).await? };
    let mut events = endpoint.events();
    let (sender, mut polled) = mpsc::channel(AHEAD);
    if let Some(interval) = args.interval {
        tokio::spawn(poll(endpoint.clone(), targets.clone(), interval, sender.clone()));
    }
    let places: Vec<_> = endpoint.interfaces().iter().map(|interface| interface.name.clone()).collect();
    out.remark(format_args!("listening on {}", places.join(", ")));

    let mut end = std::pin::pin!(link::after(options.timeout));
    let mut printer = Printer {
        out,
        endpoint: endpoint.clone(),
        known: HashMap::new(),
        classes: HashMap::new(),
        printed: 0,
        most: args.count,
        language: options.language.unwrap_or_default(),
    };
    while !printer.is_full() {
        tokio::select! {
            () = &mut end => return printer.time_is_up(),
            Some(reading) = polled.recv() => {
                printer.learn(reading.node, reading.eoj).await;
                printer.take(reading)?;
            }
            event = events.next() => match event {
                Some(Event::Notification(news)) => {
                    if !targets.is_empty() && !targets.iter().any(|target| target.covers(news.node)) {
                        continue;
                    }
                    printer.learn(news.node, news.eoj).await;
                    for (epc, edt) in news.properties() {
                        let (node, eoj, source) = (news.node, news.eoj, "notification");
                        printer.take(Reading { node, eoj, epc, edt: edt.to_vec(), source })?;
                    }
                }
                // Another node can have the address now.
                Some(Event::NodeAnnounced(addr) | Event::NodeReplaced(addr)) => printer.forget(addr),
                Some(Event::Missed(count)) => out.remark(format_args!("{count} events came faster than they could be printed")),
                Some(_) => {}
                None => break,
            },
        }
    }
    Ok(())
}

/// Prints what is new.
struct Printer<'a> {
    out: &'a Output,
    endpoint: Endpoint,
    known: HashMap<(NodeAddr, Eoj, u8), Vec<u8>>,
    /// The classes of objects that were asked for their makers.
    classes: HashMap<(NodeAddr, Eoj), &'static Class>,
    printed: u64,
    /// Values after which it ends.
    most: Option<u64>,
    language: Language,
}

impl Printer<'_> {
    fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.printed >= most)
    }

    /// The end of `--timeout`: a failure if fewer values came than were waited for, of which there is one at least.
    fn time_is_up(&self) -> Result<(), Failure> {
        match (self.printed, self.most) {
            (0, _) => Err(Failure::NoAnswer("nothing was announced or had changed in time".to_owned())),
            (printed, Some(most)) => Err(Failure::NoAnswer(format!("{printed} of {most} values came in time"))),
            (_, None) => Ok(()),
        }
    }

    /// The factors of a property's numbers, as far as the object has told them so far.
    fn factors(&self, node: NodeAddr, eoj: Eoj, property: Property<'_>) -> Factors {
        let known = property.counted_in().iter().filter_map(|epc| Some((epc, &self.known.get(&(node, eoj, epc))?[..])));
        Factors::of(self.class(node, eoj), known)
    }

    /// Forgets a node's values, so that later ones are not compared with them.
    fn forget(&mut self, addr: NodeAddr) {
        self.known.retain(|(node, ..), _| *node != addr);
        self.classes.retain(|(node, _), _| *node != addr);
    }

    /// Asks for the maker of an object, once, if the user's data has properties of makers in its class.
    async fn learn(&mut self, node: NodeAddr, eoj: Eoj) {
        if data::varies(eoj.class_code())
            && !self.classes.contains_key(&(node, eoj))
            && let Some(class) = get::class_at(&self.endpoint, node, eoj, None).await
        {
            self.classes.insert((node, eoj), class);
        }
    }

    fn class(&self, node: NodeAddr, eoj: Eoj) -> Option<&'static Class> {
        self.classes.get(&(node, eoj)).copied().or_else(|| names::class_of(eoj))
    }

    fn take(&mut self, reading: Reading) -> Result<(), Failure> {
        let Reading { node, eoj, epc, edt, source } = reading;
        let before = self.known.insert((node, eoj, epc), edt.clone());
        let is_news = source == "notification" || before.as_ref() != Some(&edt);
        if !is_news || self.is_full() {
            return Ok(());
        }
        self.printed += 1;
        let class = self.class(node, eoj);
        let (moment, property) = (Moment::now(), Property::of(class, epc, &edt).shown_in(self.language));
        let factors = self.factors(node, eoj, property);
        let property = property.counted(&factors);
        let json = || {
            let object = render::object_json(eoj);
            json!({
                "time": moment.to_string(),
                "address": node.to_string(),
                "object": object,
                "source": source,
                "property": property.json(),
            })
        };
        self.out.result(json, || {
            let changed = before.filter(|before| *before != edt);
            let before = changed
                .map(|before| {
                    format!("{} → ", Property::of(class, epc, &before).counted(&factors).shown_in(self.language).text())
                })
                .unwrap_or_default();
            format!(
                "{moment:#} {node} {} {} {before}{}",
                render::object_in(self.language, eoj),
                property.name(),
                property.text()
            )
        })
    }
}

/// Asks for the state of all objects again and again.
async fn poll(endpoint: Endpoint, targets: Vec<NodeAddr>, interval: Duration, readings: mpsc::Sender<Reading>) {
    // A round of no time at all would be asked for without end.
    let mut rounds = tokio::time::interval(interval.max(Duration::from_millis(10)));
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known: HashMap<NodeAddr, Vec<(Eoj, Vec<u8>)>> = HashMap::new();
    if targets.is_empty() {
        // Nodes that it finds are asked below; announcements of nodes make up for a search that fails.
        let _ = endpoint.discover(SEARCH).await;
    }
    loop {
        rounds.tick().await;
        let nodes: Vec<_> =
            if targets.is_empty() { endpoint.nodes().iter().map(|node| node.addr).collect() } else { targets.clone() };
        for node in nodes {
            let objects = match known.entry(node) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let objects = state_of(&endpoint, node).await;
                    // A node that does not tell now may do so in the next round.
                    if objects.is_empty() {
                        continue;
                    }
                    place.insert(objects)
                }
            };
            let mut is_silent = true;
            for (eoj, epcs) in &*objects {
                let request = echonet_lite::controller::Request::get(*eoj, epcs).timeout(PATIENCE);
                // A node that is silent now may answer the next time.
                let Ok(answer) = endpoint.request(node, &request).await else { continue };
                is_silent = false;
                for outcome in answer.outcomes() {
                    let Some(value) = outcome.value else { continue };
                    let (eoj, epc, edt) = (*eoj, outcome.epc, value.to_vec());
                    if readings.send(Reading { node, eoj, epc, edt, source: "poll" }).await.is_err() {
                        return;
                    }
                }
            }
            if is_silent {
                // It can be another node with other objects when it answers again.
                known.remove(&node);
            }
        }
    }
}

/// The objects of a node and the properties that are their state; none if it does not tell.
async fn state_of(endpoint: &Endpoint, node: NodeAddr) -> Vec<(Eoj, Vec<u8>)> {
    let mut objects = Vec::new();
    let Ok(list) = endpoint.get(node, Eoj::NODE_PROFILE, &[0xD6]).await else { return objects };
    let (eojs, _) = list.get(0xD6).and_then(|list| list.get(1..)).unwrap_or_default().as_chunks::<3>();
    for eoj in eojs.iter().map(|eoj| Eoj::from_bytes(*eoj)) {
        if eoj.class_code() == class::NODE_PROFILE.code || eoj.instance() == 0 {
            continue;
        }
        let Ok(maps) = endpoint.get(node, eoj, &[get::GET_MAP]).await else { continue };
        let map = maps.get(get::GET_MAP).unwrap_or_default();
        let epcs: Vec<_> = PropertySet::decode_map_lenient(map).difference(CONSTANT).iter().collect();
        if !epcs.is_empty() {
            objects.push((eoj, epcs));
        }
    }
    objects
}

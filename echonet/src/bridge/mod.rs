//! `echonet bridge`: the home in MQTT, as Home Assistant discovers it.
//!
//! Every object is a device of Home Assistant, every property that has a form of its own an entity. The bridge
//! publishes announcements of nodes as they come, and asks for the rest, the more often the more it changes. A node is
//! known by its identity, not by its address: topics stay when nodes move, and a command goes to the node that it is
//! for or fails. The topics retained from an earlier run are read at the start and marked offline until their nodes are
//! found.

mod asking;
mod broker;
mod circuits;
mod clean;
mod commanding;
mod composite;
mod config;
mod device_class;
mod nodes;
mod remembered;
mod shown;
mod thing;
mod tls;
mod translated;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use asking::Told;
use broker::{Broker, News, OFFLINE, ONLINE};
use commanding::{Command, UnderWay};
use config::Config;
use echonet_lite::controller::{Event, Interview, NodeAddr, Notification};
use echonet_lite::net::Endpoint;
use echonet_lite::wire::Eoj;
use nodes::Node;
use thing::{Group, Thing};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::commands::{Bridge as Args, Options};
use crate::directory::{Directory, Name};
use crate::failure::Failure;
use crate::language::Language;
use crate::output::Output;
use crate::search::Places;
use crate::{link, quirks};

/// How long answers to a search are waited for, and the time between two searches.
const SEARCH: Duration = Duration::from_secs(3);
const SEARCHES: Duration = Duration::from_secs(300);
/// Nodes and requests that a large building has.
const NODES: usize = 8192;
const REQUESTS: usize = 16_384;
/// How long to wait for room in the client.
const ROOM: Duration = Duration::from_millis(2);

struct Bridge<'a> {
    endpoint: Endpoint,
    broker: Broker,
    args: &'a Args,
    quirks: quirks::Table,
    config: Config,
    language: Language,
    directory: Directory,
    places: Places,
    nodes: HashMap<Name, Node>,
    things: HashMap<(Name, Eoj), Thing>,
    /// Which object a topic is about.
    topics: HashMap<String, (Name, Eoj)>,
    due: BTreeSet<(Instant, Name, Eoj, Group)>,
    searched: Instant,
    /// Nodes whose address another one has, and when they are offline if they are not found elsewhere.
    missing: Vec<(Instant, Name)>,
    /// Commands for nodes that are not found at the moment.
    waiting: Vec<Command>,
    /// Commands that have been sent, and how many were.
    under_way: Vec<UnderWay>,
    carried_out: u64,
    told: mpsc::UnboundedSender<Told>,
    out: &'a Output,
}

pub(crate) async fn run(args: &Args, options: &Options, out: &Output) -> Result<(), Failure> {
    if args.clean {
        return clean::run(args, options, out).await;
    }
    let places = Places::of(&args.search.nodes, options)?;
    let quirks = quirks::Table::with_file(args.quirks.as_deref())?;
    let mut settings = link::settings(options, Interview::Everything);
    (settings.max_nodes, settings.max_requests, settings.max_events) = (NODES, REQUESTS, REQUESTS);
    let endpoint = link::builder(options).controller(settings).bind().await?;
    let mut events = endpoint.events();
    let subscriptions = vec![format!("{}/+/+/+/set", args.topic), format!("{}/status", args.discovery)];
    let (broker, mut news) = Broker::open(args, Some(availability(args, "bridge")), subscriptions)?;
    let broker = broker.remembering(remembered::filters(args));
    // No more of them than the controller has requests.
    let (told, mut tells) = mpsc::unbounded_channel();
    let config = Config::read(args.config.as_deref())?;
    let language = options.language.or(config.language).unwrap_or_default();
    let mut bridge = Bridge {
        endpoint,
        broker,
        args,
        quirks,
        config,
        language,
        directory: Directory::new('_'),
        places,
        nodes: HashMap::new(),
        things: HashMap::new(),
        topics: HashMap::new(),
        due: BTreeSet::new(),
        searched: Instant::now(),
        missing: Vec::new(),
        waiting: Vec::new(),
        under_way: Vec::new(),
        carried_out: 0,
        told,
        out,
    };

    let mut searches = tokio::time::interval(SEARCHES);
    let mut ended = std::pin::pin!(link::asked_to_end());
    let mut over = std::pin::pin!(link::after(options.timeout));
    loop {
        let next = bridge.due.first().map(|(at, ..)| *at);
        let given_up = bridge.waiting.iter().map(|command| command.until).min();
        let missed = bridge.missing.iter().map(|(at, _)| *at).min();
        let read_until = bridge.broker.read_until();
        let room = bridge.broker.is_waiting();
        tokio::select! {
            event = events.next() => match event {
                Some(event) => bridge.happened(event)?,
                None => break,
            },
            Some(news) = news.recv() => bridge.heard(news),
            Some(told) = tells.recv() => bridge.take(told)?,
            () = until(next) => bridge.ask_due(),
            () = until(read_until) => bridge.all_remembered(),
            () = until(given_up) => bridge.give_commands_up(),
            () = until(missed) => bridge.miss(),
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
        Some(moment) => tokio::time::sleep_until(moment).await,
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
            // Another node can have the address since: it is being asked, and ready when it has answered.
            Event::NodeAnnounced(addr) | Event::NodeReturned(addr) | Event::NodeMoved { from: addr, .. } => {
                self.doubt(addr);
            }
            Event::NodeReplaced(addr) => self.replaced(addr),
            Event::NodeLost(addr) => {
                let at_another = self.directory.last_known_name(addr).cloned();
                match self.directory.lost(addr) {
                    Some(name) => self.say_available(&name, OFFLINE),
                    None => at_another.iter().for_each(|name| self.carry_out_waiting(name)),
                }
            }
            Event::NodeJoined { node, addr } => {
                self.directory.left(addr);
                self.ready(node)?;
            }
            Event::Missed(count) => {
                self.out.remark(format_args!("{count} events came too fast: everything is asked for"));
                for info in self.endpoint.nodes() {
                    if info.is_ready { self.ready(info.addr)? } else { self.doubt(info.addr) }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn notified(&mut self, news: &Notification) {
        let Some(name) = self.directory.certain_name(news.node) else { return };
        let name = name.clone();
        self.take_values(&name, news.eoj, news.properties());
    }

    /// The broker has something to say.
    fn heard(&mut self, news: News) {
        match news {
            News::Connected => {
                self.out.remark("the broker is there");
                self.broker.connected();
            }
            News::Lost(why) => {
                self.out.remark(format_args!("the broker is away: {why}"));
                self.broker.lost();
            }
            News::Remembered { topic, payload } => self.remember(topic, payload),
            News::Message { topic, .. } if self.broker.is_end_of_retained(&topic) => self.all_remembered(),
            // A message of another publisher, while retained topics are read.
            News::Message { topic, .. } if !topic.ends_with("/set") && !topic.ends_with("/status") => {}
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

    /// Looks for a node that is not where it was.
    fn search_missing(&mut self) {
        if self.searched.elapsed() >= SEARCH {
            self.search();
        }
    }

    fn search(&mut self) {
        self.searched = Instant::now();
        let (endpoint, places) = (self.endpoint.clone(), self.places.clone());
        // Nodes that it finds come as events; the next search makes up for one that fails.
        tokio::spawn(async move { places.search(&endpoint, SEARCH).await.map(drop) });
    }

    /// Where a node is, if it is certain that it is there.
    fn certain_place(&self, name: &Name) -> Option<(NodeAddr, echonet_lite::controller::NodeId)> {
        self.directory.place(name).filter(|(addr, _)| !self.directory.is_doubted(*addr))
    }
}

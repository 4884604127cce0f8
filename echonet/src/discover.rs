//! `echonet discover`: the nodes of the network, and their objects.

use std::time::Duration;

use echonet_lite::controller::{Event, Interview, NodeAddr, NodeInfo};
use echonet_lite::net::{Endpoint, Interface};
use serde_json::json;

use crate::commands::{Options, Search};
use crate::failure::Failure;
use crate::language::Language;
use crate::output::{Output, Progress, table};
use crate::render::{self, hex};
use crate::search::Places;
use crate::{frame, link, names};

/// How long a search takes.
const SEARCH: Duration = Duration::from_secs(3);

pub(crate) async fn run(args: &Search, options: &Options, out: &Output) -> Result<(), Failure> {
    let places = Places::of(&args.nodes, options)?;
    let endpoint = link::open(options, Interview::Profile).await?;
    let time = options.timeout.unwrap_or(SEARCH);
    let progress = out.progress("searching");
    let found = tokio::select! {
        found = places.search(&endpoint, time) => found.map_err(|error| crate::failure::of_request(error, "search"))?,
        () = count(&endpoint, &progress) => Vec::new(),
    };
    drop(progress);
    let interfaces = endpoint.interfaces();
    let nodes = group(&found, &interfaces);
    if nodes.is_empty() {
        let places: Vec<_> = interfaces.iter().map(|interface| interface.name.clone()).collect();
        return Err(Failure::NoAnswer(format!("no node answered within {time:?} on {}", places.join(", "))));
    }
    let language = options.language.unwrap_or_default();
    if out.json {
        return nodes.iter().try_for_each(|node| out.line(node.json()));
    }
    out.line(table(["ADDRESS", "OBJECTS", "MAKER", "IDENTIFICATION"], nodes.iter().map(|node| node.cells(language))))
}

/// Says how many have been found; never ends.
async fn count(endpoint: &Endpoint, progress: &Progress) {
    let mut events = endpoint.events();
    let mut found = 0;
    while let Some(event) = events.next().await {
        if let Event::NodeFound(_) = event {
            found += 1;
            progress.say(format!("searching: {found} found"));
        }
    }
}

/// A node with all its addresses.
struct Found<'a> {
    info: &'a NodeInfo,
    addresses: Vec<NodeAddr>,
    interfaces: &'a [Interface],
}

/// Joins what is one node: the same identification number and objects, at an IPv4 and an IPv6 address, or at several
/// addresses of this machine. The number alone says little: there are makers who give all their devices the same.
fn group<'a>(found: &'a [NodeInfo], interfaces: &'a [Interface]) -> Vec<Found<'a>> {
    let is_own = |addr: NodeAddr| interfaces.iter().any(|interface| interface.addresses.contains(&addr.ip()));
    let mut nodes: Vec<Found<'a>> = Vec::new();
    for info in found {
        let same = nodes.iter_mut().find(|node| {
            let other = node.info;
            let alike = info.identification.is_some()
                && info.identification == other.identification
                && info.objects.iter().map(|object| object.eoj).eq(other.objects.iter().map(|object| object.eoj));
            let other_family = node.addresses.iter().all(|addr| addr.ip().is_ipv4() != info.addr.ip().is_ipv4());
            let both_own = is_own(info.addr) && node.addresses.iter().all(|addr| is_own(*addr));
            alike && (other_family || both_own)
        });
        match same {
            Some(node) => node.addresses.push(info.addr),
            None => nodes.push(Found { info, addresses: vec![info.addr], interfaces }),
        }
    }
    nodes
}

impl Found<'_> {
    /// Link-local ones with the name of their interface.
    fn addresses(&self) -> Vec<String> {
        let named = |addr: &NodeAddr| {
            let interface = self.interfaces.iter().find(|interface| interface.index == addr.scope());
            interface.map_or_else(|| addr.to_string(), |interface| format!("{}%{}", addr.ip(), interface.name))
        };
        self.addresses.iter().map(named).collect()
    }

    fn cells(&self, language: Language) -> [String; 4] {
        let addresses = self.addresses();
        let mut objects: Vec<_> =
            self.info.objects.iter().map(|object| render::object_in(language, object.eoj)).collect();
        let count = objects.len();
        if let Some(all) = self.info.instance_count.filter(|all| *all as usize > count) {
            objects.push(format!("and {} more", all as usize - count));
        }
        let named = |maker| names::maker(maker).map(|name| format!("{} {name}", hex(&maker)));
        let maker = self.info.maker.map(|maker| named(maker).unwrap_or_else(|| hex(&maker))).unwrap_or_default();
        let identification = self.info.identification.as_deref().map(hex).unwrap_or_default();
        [addresses.join("\n"), objects.join("\n"), maker, identification]
    }

    fn json(&self) -> serde_json::Value {
        let addresses = self.addresses();
        let objects: Vec<_> = self.info.objects.iter().map(|object| render::object_json(object.eoj)).collect();
        json!({
            "address": addresses.first(),
            "addresses": addresses,
            "objects": objects,
            "maker": self.info.maker.map(|maker| hex(&maker)),
            "identification": self.info.identification.as_deref().map(hex),
            "version": self.info.version.map(frame::version),
        })
    }
}

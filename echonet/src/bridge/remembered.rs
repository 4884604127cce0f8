//! The topics that the broker has retained from an earlier run of the bridge.
//!
//! Nodes are offline until they are found; topics of objects and properties that a node has no more are taken back when it is.

use std::collections::BTreeSet;

use echonet_lite::wire::Eoj;

use super::broker::{OFFLINE, ONLINE};
use super::{Bridge, availability};
use crate::commands::Bridge as Args;
use crate::directory::Name;

/// Where the bridge publishes.
pub(super) fn filters(args: &Args) -> Vec<String> {
    vec![format!("{}/#", args.topic), format!("{}/device/+/config", args.discovery)]
}

/// The subject of a topic of the bridge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Topic<'a> {
    /// Whether a node is there.
    Availability { node: &'a str },
    /// A value of an object, or its description.
    Object { node: &'a str, eoj: Eoj },
}

impl<'a> Topic<'a> {
    /// None for topics that are not the bridge's.
    pub(super) fn of(topic: &'a str, args: &Args) -> Option<Self> {
        if let Some(rest) = topic.strip_prefix(&*args.topic).and_then(|rest| rest.strip_prefix('/')) {
            let (node, rest) = rest.split_once('/')?;
            if rest == "availability" {
                return (node != "bridge").then_some(Self::Availability { node });
            }
            let eoj = rest.split('/').next().and_then(eoj)?;
            return Some(Self::Object { node, eoj });
        }
        let rest = topic.strip_prefix(&*args.discovery)?.strip_prefix("/device/echonet_")?;
        let (node, place) = rest.strip_suffix("/config")?.rsplit_once('_')?;
        Some(Self::Object { node, eoj: eoj(place)? })
    }

    pub(super) fn node(&self) -> &'a str {
        match self {
            Self::Availability { node } | Self::Object { node, .. } => node,
        }
    }
}

/// Six digits in lower case, as the bridge writes them.
fn eoj(text: &str) -> Option<Eoj> {
    let is_plain = text.len() == 6 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_plain { text.parse().ok() } else { None }
}

/// Whether a description was published by a bridge with this topic: several can share a broker.
pub(super) fn is_own(payload: &str, args: &Args) -> bool {
    let description: serde_json::Value = serde_json::from_str(payload).unwrap_or_default();
    let topic = description["availability"][0]["topic"].as_str().unwrap_or_default();
    description["origin"]["name"] == "echonet-lite" && topic == availability(args, "bridge")
}

impl Bridge<'_> {
    /// The broker has retained this.
    pub(super) fn remember(&mut self, topic: String, payload: String) {
        let is_own = match Topic::of(&topic, self.args) {
            Some(_) if topic.ends_with("/config") => is_own(&payload, self.args),
            // A retained command is out of date.
            Some(_) => !topic.ends_with("/set"),
            None => false,
        };
        if is_own {
            self.broker.remember(topic, payload);
        }
    }

    /// The broker has told all that it has retained: nodes that are not found yet are offline.
    pub(super) fn all_remembered(&mut self) {
        let is_online = |(topic, payload): &(&str, &str)| match Topic::of(topic, self.args) {
            Some(Topic::Availability { node }) => *payload == ONLINE && !self.nodes.contains_key(node),
            _ => false,
        };
        let away: Vec<_> = self.broker.truth().filter(is_online).map(|(topic, _)| topic.to_owned()).collect();
        if !away.is_empty() {
            self.out.remark(format_args!("{} nodes of an earlier run are offline until they are found", away.len()));
        }
        away.into_iter().for_each(|topic| self.broker.publish(topic, OFFLINE.to_owned()));
        // The objects found so far are newer than the retained ones.
        let found: Vec<_> = self.nodes.iter().map(|(name, node)| (name.clone(), node.eojs.clone())).collect();
        found.iter().for_each(|(name, eojs)| self.forget_other_objects(name, eojs));
        self.broker.has_read();
    }

    /// Takes back what is retained of objects that a node has no more.
    pub(super) fn forget_other_objects(&mut self, name: &Name, eojs: &[Eoj]) {
        let is_gone = |(topic, payload): &(&str, &str)| match Topic::of(topic, self.args) {
            Some(Topic::Object { node, eoj }) => node == &**name && !payload.is_empty() && !eojs.contains(&eoj),
            _ => false,
        };
        let gone: Vec<_> = self.broker.truth().filter(is_gone).map(|(topic, _)| topic.to_owned()).collect();
        gone.into_iter().for_each(|topic| self.broker.publish(topic, String::new()));
    }

    /// Takes back what is retained of properties that an object has no more.
    pub(super) fn forget_other_topics(&mut self, name: &Name, eoj: Eoj) {
        let Some(thing) = self.things.get(&(name.clone(), eoj)) else { return };
        let (below, own): (_, BTreeSet<_>) = (format!("{}/", thing.base), thing.all_topics().collect());
        let is_gone =
            |(topic, payload): &(&str, &str)| topic.starts_with(&below) && !payload.is_empty() && !own.contains(*topic);
        let gone: Vec<_> = self.broker.truth().filter(is_gone).map(|(topic, _)| topic.to_owned()).collect();
        gone.into_iter().for_each(|topic| self.broker.publish(topic, String::new()));
    }
}

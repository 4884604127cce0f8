//! Events of the network, and the times of requests.

use std::sync::Arc;
use std::time::Duration;

use echonet_lite::controller::{Event, NodeAddr, NodeInfo};
use echonet_lite::net::Events;
use echonet_lite::wire::Eoj;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Web;
use super::device::Device;
use super::home::{Due, Met};
use crate::directory::{Namesake, inquire};
use crate::failure::Failure;
use crate::output::Output;
use crate::render;

/// How long answers to a search are waited for, and the time between two searches.
const SEARCH: Duration = Duration::from_secs(3);
const SEARCHES: Duration = Duration::from_secs(300);
/// How often nodes are asked who they are.
const RECOGNIZED: Duration = Duration::from_secs(60);
/// The time between the questions to two of them.
const APART: Duration = Duration::from_millis(5);
/// The least time between two rounds.
const LEAST: Duration = Duration::from_millis(100);

/// A question to `other`, the second address of the node at `addr`: does the same node answer there?
pub(super) struct Inquiry {
    addr: NodeAddr,
    other: NodeAddr,
    namesake: Namesake,
}

/// Follows the network for as long as it is there.
pub(super) async fn follow(
    web: &Web,
    mut events: Events,
    mut inquiries: mpsc::UnboundedReceiver<Inquiry>,
    poll: Duration,
    out: &Output,
) -> Result<(), Failure> {
    let mut searches = tokio::time::interval(SEARCHES);
    let mut recognitions = tokio::time::interval(RECOGNIZED);
    let mut rounds = tokio::time::interval(poll.max(LEAST));
    rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let next = web.home.state().histories.next();
        tokio::select! {
            event = events.next() => match event {
                Some(event) => web.happened(event, out)?,
                None => return Ok(()),
            },
            _ = searches.tick() => web.search(),
            Some(inquiry) = inquiries.recv() => web.resolved(&inquiry, out)?,
            _ = recognitions.tick() => web.recognize(),
            _ = rounds.tick() => web.ask(),
            () = web.home.replanned.notified() => web.ask(),
            () = until(next) => web.sample(),
        }
    }
}

/// Waits until then; for ever if there is nothing to wait for.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Web {
    fn happened(&self, event: Event, out: &Output) -> Result<(), Failure> {
        match event {
            Event::Notification(news) => {
                let said: Vec<_> = news.properties().map(|(epc, edt)| (epc, edt.to_vec())).collect();
                self.home.hear(news.node, news.eoj, &said);
            }
            Event::NodeReady(addr) => self.ready(addr, out)?,
            Event::NodeLost(addr) => self.home.lost(addr),
            // Another node can have the address since: it is being asked, and ready when it has answered.
            Event::NodeAnnounced(addr) | Event::NodeReturned(addr) | Event::NodeMoved { from: addr, .. } => {
                self.home.doubt(addr);
            }
            Event::NodeReplaced(addr) => {
                self.home.doubt(addr);
                self.home.left(addr);
                self.search();
            }
            Event::NodeJoined { node, addr } => {
                self.home.left(addr);
                self.ready(node, out)?;
            }
            Event::Missed(count) => {
                out.remark(format_args!("{count} events came too fast: everything is asked for"));
                for info in self.endpoint.nodes() {
                    if info.is_ready { self.ready(info.addr, out)? } else { self.home.doubt(info.addr) }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// All is known of a node.
    fn ready(&self, addr: NodeAddr, out: &Output) -> Result<(), Failure> {
        let Some(info) = self.endpoint.node(addr).filter(|info| info.is_ready) else { return Ok(()) };
        let info = self.places.mended(info);
        let met = self.home.has(&info, &self.quirks);
        self.met(&info, met, out)
    }

    /// It has been asked whether a node is at the address that it had before.
    pub(super) fn resolved(&self, inquiry: &Inquiry, out: &Output) -> Result<(), Failure> {
        let Some(info) = self.endpoint.node(inquiry.addr).filter(|info| info.is_ready) else { return Ok(()) };
        let info = self.places.mended(info);
        let met = self.home.resolved(&info, &self.quirks, inquiry.other, inquiry.namesake);
        self.met(&info, met, out)
    }

    fn met(&self, info: &NodeInfo, met: Met, out: &Output) -> Result<(), Failure> {
        let new = match met {
            Met::Devices(new) => new,
            Met::Elsewhere(other) => {
                let (web, info) = (self.clone(), info.clone());
                tokio::spawn(async move {
                    let namesake = match web.endpoint.node(other) {
                        Some(old) => inquire(&web.endpoint, &old, &info).await,
                        None => Namesake::Gone,
                    };
                    // The server has ended.
                    let _ = web.inquiries.send(Inquiry { addr: info.addr, other, namesake });
                });
                return Ok(());
            }
        };
        for device in &new {
            let object = render::object_json(device.eoj);
            out.result(
                || json!({ "event": "found", "address": device.addr.to_string(), "object": object, "device": device.id }),
                || format!("{} {} is {}", device.addr, render::object(device.eoj), device.id),
            )?;
            self.ask_for(Due { epcs: device.readable(), device: Arc::clone(device), parts: Vec::new() });
        }
        // The others may have changed meanwhile.
        let is_new = |device: &Device| new.iter().any(|other| other.id == device.id);
        self.ask_all(self.home.devices(|device| device.addr == info.addr && !is_new(device)));
        self.home.moved.notify_waiters();
        Ok(())
    }

    /// Asks every node for its identity, though nothing was heard: an announcement can be lost. A node that answers
    /// differently than before comes as an event.
    fn recognize(&self) {
        let endpoint = self.endpoint.clone();
        tokio::spawn(async move {
            for info in endpoint.nodes() {
                tokio::time::sleep(APART).await;
                if info.is_ready {
                    let endpoint = endpoint.clone();
                    tokio::spawn(async move { endpoint.get(info.addr, Eoj::NODE_PROFILE, &[0x83, 0x8A, 0xD6]).await });
                } else if info.last_heard.is_some() {
                    endpoint.interview(info.addr);
                }
            }
        });
    }

    pub(super) fn search(&self) {
        let web = self.clone();
        // Nodes that it finds come as events; the next search makes up for one that fails.
        tokio::spawn(async move { web.places.search(&web.endpoint, SEARCH).await.map(drop) });
    }

    fn ask(&self) {
        self.home.due(Instant::now()).into_iter().for_each(|due| self.ask_for(due));
    }

    /// Asks for whatever may have changed.
    fn ask_all(&self, devices: Vec<Arc<Device>>) {
        for device in devices {
            self.ask_for(Due { epcs: device.state(), device, parts: Vec::new() });
        }
    }

    fn ask_for(&self, due: Due) {
        let (web, Due { device, epcs, parts }) = (self.clone(), due);
        tokio::spawn(async move {
            // A device that is silent now is asked again.
            let _ = web.fetch(&device, epcs, false).await;
            let _ = web.fetch_circuits(&device, parts).await;
            web.home.was_asked(&device.id);
        });
    }
}

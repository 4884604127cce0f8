//! What happens on the network, and what is asked for when.

use std::sync::Arc;
use std::time::{Duration, Instant};

use echonet_lite::controller::{Event, NodeAddr};
use echonet_lite::net::Events;
use echonet_lite::wire::PropertySet;
use serde_json::json;

use super::Web;
use super::device::Device;
use crate::failure::Failure;
use crate::output::Output;
use crate::render;

/// How long answers to a search are waited for, and the time between two searches.
const SEARCH: Duration = Duration::from_secs(3);
const SEARCHES: Duration = Duration::from_secs(300);
/// The least time between two rounds.
const LEAST: Duration = Duration::from_millis(100);

/// Follows the network for as long as it is there.
pub(super) async fn follow(web: &Web, mut events: Events, poll: Duration, out: &Output) -> Result<(), Failure> {
    let mut searches = tokio::time::interval(SEARCHES);
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
            _ = rounds.tick() => web.ask(),
            () = web.home.replanned.notified() => web.ask(),
            () = until(next) => web.sample(),
        }
    }
}

/// Waits until then; for ever if there is nothing to wait for.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

impl Web {
    fn happened(&self, event: Event, out: &Output) -> Result<(), Failure> {
        match event {
            Event::Notification(news) => {
                let said: Vec<_> = news.properties().map(|(epc, edt)| (epc, edt.to_vec())).collect();
                self.home.take(news.node, news.eoj, &said);
            }
            Event::NodeReady(addr) => self.ready(addr, out)?,
            Event::NodeLost(addr) => self.home.is_lost(addr, true),
            Event::NodeReturned(addr) => {
                self.home.is_lost(addr, false);
                // Somebody else may have its number now.
                self.ready(addr, out)?;
                self.ask_all(self.home.devices(|device| device.addr == addr));
            }
            Event::NodeAnnounced(addr) => self.ask_all(self.home.devices(|device| device.addr == addr)),
            Event::NodeJoined { addr, .. } => self.home.lacks(addr),
            Event::Missed(count) => {
                out.remark(format_args!("{count} events came too fast: everything is asked for"));
                self.ask_all(self.home.devices(|_| true));
            }
            _ => {}
        }
        Ok(())
    }

    /// All is known of a node.
    fn ready(&self, addr: NodeAddr, out: &Output) -> Result<(), Failure> {
        let Some(info) = self.endpoint.node(addr).filter(|info| info.is_ready) else { return Ok(()) };
        let is_there = |addr| self.endpoint.node(addr).is_some_and(|info| !info.is_lost);
        for device in self.home.has(&info, &self.quirks, is_there) {
            let object = render::object_json(device.eoj);
            out.result(
                || json!({ "event": "found", "address": addr.to_string(), "object": object, "device": device.id }),
                || format!("{addr} {} is {}", render::object(device.eoj), device.id),
            )?;
            self.ask_for(device.readable(), device);
        }
        Ok(())
    }

    fn search(&self) {
        let endpoint = self.endpoint.clone();
        // What it finds comes as events; a search that cannot be made is made up for by the next.
        tokio::spawn(async move { endpoint.discover(SEARCH).await.map(drop) });
    }

    fn ask(&self) {
        for (device, epcs) in self.home.due(Instant::now()) {
            self.ask_for(epcs, device);
        }
    }

    /// Asks for whatever may have changed.
    fn ask_all(&self, devices: Vec<Arc<Device>>) {
        for device in devices {
            self.ask_for(device.state(), device);
        }
    }

    fn ask_for(&self, epcs: PropertySet, device: Arc<Device>) {
        let web = self.clone();
        tokio::spawn(async move {
            // Who is silent now is asked again.
            let _ = web.fetch(&device, epcs, false).await;
            web.home.was_asked(&device.id);
        });
    }
}

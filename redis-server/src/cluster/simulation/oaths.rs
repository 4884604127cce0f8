//! Invariants of the cluster, checked at every packet.

use std::collections::{HashMap, VecDeque};

use crate::cluster::packet::{Kind, Packet};
use crate::cluster::{Millis, NodeId, SlotSet};

/// Lines of the log that are kept.
const KEPT_LINES: usize = 300;

/// The claims and votes so far.
#[derive(Debug, Default)]
pub(super) struct Oaths {
    /// The claimed slots of each node, by epoch.
    claims: HashMap<u64, Vec<(NodeId, SlotSet)>>,
    /// The vote of each node, by epoch.
    votes: HashMap<(NodeId, u64), usize>,
    pub(super) votes_given: u64,
    /// The violations so far.
    pub(super) broken: Vec<String>,
    pub(super) lines: VecDeque<(Millis, usize, String)>,
    pub(super) keeps_lines: bool,
}

impl Oaths {
    pub(super) fn log(&mut self, now: Millis, host: usize, line: String) {
        if self.keeps_lines {
            if self.lines.len() == KEPT_LINES {
                self.lines.pop_front();
            }
            self.lines.push_back((now, host, line));
        }
    }

    /// A packet is sent to a host.
    pub(super) fn hear(&mut self, bytes: &[u8], to: usize, now: Millis) {
        let Some(packet) = Packet::parse(bytes) else {
            self.broken.push("a packet is none".to_owned());
            return;
        };
        let header = &packet.header;
        match header.kind {
            Kind::Ping | Kind::Pong | Kind::Meet if header.primary.is_none() => {
                self.hear_claim(header.sender, header.config_epoch, header.slots, now);
            }
            Kind::AuthAck => self.hear_vote(header.sender, header.current_epoch, to, now),
            _ => {}
        }
    }

    fn hear_claim(&mut self, id: NodeId, epoch: u64, slots: &[u8; crate::cluster::BITMAP], now: Millis) {
        let claims = self.claims.entry(epoch).or_default();
        let mine = claims.iter().position(|(owner, _)| *owner == id);
        if mine.is_some_and(|mine| claims[mine].1.bitmap() == slots) {
            return;
        }
        let claimed = SlotSet::from_bitmap(slots);
        for (owner, others) in claims.iter().filter(|(owner, _)| *owner != id) {
            if let Some(slot) = claimed.iter().find(|slot| others.has(*slot)) {
                self.broken.push(format!("{now}: slot {slot} is of {owner} and of {id} in epoch {epoch}"));
                break;
            }
        }
        match mine {
            Some(mine) => claims[mine].1 = claimed,
            None => claims.push((id, claimed)),
        }
    }

    fn hear_vote(&mut self, voter: NodeId, epoch: u64, candidate: usize, now: Millis) {
        self.votes_given += 1;
        if self.votes.insert((voter, epoch), candidate).is_some_and(|other| other != candidate) {
            self.broken.push(format!("{now}: {voter} has voted twice in epoch {epoch}"));
        }
    }
}

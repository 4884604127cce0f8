//! Outgoing messages, and the work that is due by time.

use core::time::Duration;

use super::patience;
use super::slot::{Attempt, State, Target};
use super::tids::Tids;
use super::{Controller, Failure};
use crate::node::{Destination, Instant};
use crate::wire::{Header, PropertySet};

impl Controller {
    /// Writes the next datagram to send into `buffer`; returns where it goes and its size. `None` when there is nothing to
    /// send at `now`. Deals with what has timed out first, so that nothing else has to be called when
    /// [`poll_timeout`](Self::poll_timeout) has come. The buffer should hold [`Config::max_frame`](super::Config::max_frame)
    /// bytes: a request that does not fit fails.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Destination, usize)> {
        while let Some(index) = self.deadlines.take_due(now) {
            self.time_is_up(now, index);
        }
        while let Some(place) = self.pauses.take_due(now) {
            self.line_up(now, place);
        }
        if !self.joined.is_empty() {
            self.forget_joined();
        }
        self.resume_interviews(now);
        if !self.interviews.is_empty() {
            self.continue_interviews(now);
        }
        while let Some((node, frame)) = self.confirmations.pop_front() {
            if let Some(target) = buffer.get_mut(..frame.len()) {
                target.copy_from_slice(&frame);
                return Some((Destination::Unicast(node.at(self.config.port)), frame.len()));
            }
        }
        while let Some(index) = self.group_line.pop_front() {
            if let Some(size) = self.send(now, index, buffer) {
                return Some((Destination::Multicast, size));
            }
        }
        while let Some(place) = self.line.pop_front() {
            let peer = self.peer_mut(place);
            peer.is_ready = false;
            // Those that wait can have been cancelled since.
            let Some(index) = peer.queue.pop_front() else { continue };
            let destination = Destination::Unicast(peer.addr().at(self.config.port));
            let size = self.send(now, index, buffer);
            self.line_up(now, place);
            if let Some(size) = size {
                return Some((destination, size));
            }
        }
        None
    }

    /// Writes a request that has been taken out of its line. If it cannot be written, it ends.
    fn send(&mut self, now: Instant, index: u32, buffer: &mut [u8]) -> Option<usize> {
        let tid = self.tids.take(now, index);
        let slot = &mut self.slots[index as usize];
        let (deoj, esv) = slot.asks();
        let header = Header { tid, seoj: self.config.eoj, deoj, esv };
        let most = match slot.target {
            Target::Group => usize::MAX,
            Target::Peer(place) => {
                let peer = self.peers[place as usize].as_ref().expect("requests keep their node");
                properties_at_once(peer.info.properties_at_once, slot)
            }
        };
        let Ok((size, lists)) = slot.write(header, most, buffer) else {
            self.tids.free(tid);
            self.finish(now, index, None, Some(Failure::FrameTooLong));
            return None;
        };
        self.statistics.sent += 1;
        if slot.checks().is_some() {
            self.statistics.repeated += u64::from(slot.checks_tried > 0);
            slot.checks_tried += 1;
        } else {
            self.statistics.repeated += u64::from(slot.tried > 0);
            slot.tried += 1;
            slot.sent = slot.sent.saturating_add(1);
        }
        if let Some(old) =
            slot.attempts.push(Attempt { tid, at: now, lists }, Tids::tries_kept(self.config.max_requests))
        {
            self.tids.put_to_rest(now, old);
        }
        let until = now + self.wait(now, index, lists.writes.union(lists.reads));
        let slot = &mut self.slots[index as usize];
        slot.state = if slot.is_gathering() {
            State::Gathering
        } else if esv == crate::wire::Esv::SetI {
            State::Listening
        } else {
            State::Outstanding
        };
        let (state, target) = (slot.state, slot.target);
        self.deadlines.set(index, slot.give_up_at.map_or(until, |at| at.min(until)));
        if let Target::Peer(place) = target {
            let spacing = self.config.spacing;
            let peer = self.peer_mut(place);
            peer.outstanding += u16::from(state == State::Outstanding);
            peer.not_before = now + peer.response_time.spacing(spacing);
        }
        Some(size)
    }

    /// How long to wait for the answer to a try that is sent now.
    fn wait(&mut self, now: Instant, index: u32, asked: PropertySet) -> Duration {
        let slot = &mut self.slots[index as usize];
        if slot.is_gathering() {
            let end = *slot.gathered_at.get_or_insert(now + self.config.gathering);
            let left = u32::from(slot.tries.saturating_sub(slot.tried));
            // The repetitions leave the last one as much time as there is between two.
            return end.since(now) / (left + 1);
        }
        let (eoj, service) = slot.asks();
        let least = patience::least(eoj, service, asked);
        let Target::Peer(place) = slot.target else { return least };
        let peer = self.peers[place as usize].as_ref().expect("requests keep their node");
        peer.response_time.timeout(&self.config).max(least)
    }

    /// The deadline of a request has come.
    fn time_is_up(&mut self, now: Instant, index: u32) {
        let usual_tries = self.config.tries;
        let slot = &mut self.slots[index as usize];
        let timed_out = slot.silence(now);
        // To ask who the node is does no harm.
        let is_tried = match slot.checks() {
            Some(_) => slot.checks_tried >= usual_tries,
            None => slot.tried >= slot.tries,
        };
        let is_over = slot.give_up_at.is_some_and(|at| at <= now);
        match slot.state {
            State::Free | State::Done => {}
            State::Queued => self.finish(now, index, None, Some(timed_out)),
            State::Listening => {
                slot.settle(super::Status::Done);
                self.finish(now, index, None, None);
            }
            State::Gathering => {
                let target = slot.target;
                if is_over || slot.tried >= slot.tries || slot.gathered_at.is_none_or(|at| at <= now) {
                    self.finish(now, index, None, None);
                    return;
                }
                slot.state = State::Queued;
                match target {
                    Target::Group => self.group_line.push_back(index),
                    Target::Peer(place) => {
                        self.peer_mut(place).queue.push_front(index);
                        self.line_up(now, place);
                    }
                }
            }
            State::Outstanding => {
                let Target::Peer(place) = slot.target else { return };
                let peer = self.peers[place as usize].as_mut().expect("requests keep their node");
                let sent_at = slot.attempts.last().map_or(now, |attempt| attempt.at);
                peer.response_time.missed(now, sent_at);
                // A node with another address can be there.
                let is_silent = peer.response_time.is_silent() && !peer.try_next_address();
                if is_over || is_silent || is_tried {
                    self.finish(now, index, None, Some(timed_out));
                } else {
                    self.requeue(now, index);
                }
                if is_silent {
                    self.lose(place);
                    self.give_up(now, place);
                }
            }
        }
    }

    /// Tells that a node is gone, once, if it was ever there.
    fn lose(&mut self, place: u32) {
        let info = &mut self.peer_mut(place).info;
        if info.last_heard.is_some() && !core::mem::replace(&mut info.is_lost, true) {
            let addr = info.addr;
            self.tell(super::Event::NodeLost(addr));
        }
    }

    /// Ends what waits for a node that answers nothing: each would wait longer than the one before.
    fn give_up(&mut self, now: Instant, place: u32) {
        while let Some(index) = self.peer_mut(place).queue.front().copied() {
            let slot = &self.slots[index as usize];
            let failure = match slot.sent {
                0 => Failure::NodeSilent { waited: now.since(slot.made_at) },
                _ => slot.silence(now),
            };
            self.finish(now, index, None, Some(failure));
        }
    }

    /// Has an outstanding request sent again, or its next part, before what else waits for its node. Another node can have
    /// the address by then.
    pub(super) fn requeue(&mut self, now: Instant, index: u32) {
        let slot = &mut self.slots[index as usize];
        let Target::Peer(place) = slot.target else { return };
        slot.checks_again(self.peers[place as usize].as_ref().expect("requests keep their node").info.profile);
        let state = core::mem::replace(&mut slot.state, State::Queued);
        match slot.give_up_at {
            Some(at) => self.deadlines.set(index, at),
            None => self.deadlines.clear(index),
        }
        let peer = self.peer_mut(place);
        peer.leave(state, index);
        peer.queue.push_front(index);
        self.line_up(now, place);
    }
}

/// How many properties to ask for: as many as the node has shown to answer, and fewer with each repetition, because there
/// are nodes that do not answer what is too much for them.
fn properties_at_once(known: Option<u8>, slot: &super::slot::Slot) -> usize {
    use crate::wire::Esv;
    if !matches!(slot.service, Esv::Get | Esv::SetC | Esv::InfReq) || slot.is_gathering() {
        return usize::MAX;
    }
    let limit = known.map_or(usize::MAX, usize::from);
    // The first repetition asks for the same: most often it is the datagram that was lost.
    let halvings = u32::from(slot.tried.saturating_sub(1));
    limit.min(slot.left.len() >> halvings.min(7)).max(1)
}

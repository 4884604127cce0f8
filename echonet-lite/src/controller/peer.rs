//! One node, as a controller deals with it: its queue, its pace, its refusals, its latest notifications.

use core::time::Duration;
use std::collections::VecDeque;
use std::vec::Vec;

use super::patience::ResponseTime;
use super::slot::State;
use super::stage::Stage;
use super::{Config, NodeAddr, NodeInfo, PropertyMaps};
use crate::node::Instant;
use crate::wire::{Eoj, PropertySet};

/// How many objects of a node can have refusals that are remembered.
const MAX_REFUSERS: usize = 256;
/// Within this an announcement of instances is a copy of the one before; later, the node has started anew.
const START_COPIED: Duration = Duration::from_secs(1);
/// How many notifications of a node are remembered to tell a second copy: more than a node sends in ten seconds.
const MAX_RECENT: usize = 64;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) info: NodeInfo,
    /// By which of its addresses it is asked.
    pub(super) by: usize,
    /// How many of them have turned out silent since it was heard.
    silent: usize,
    /// Whether it is another node's address: it stays until its requests have ended.
    pub(super) is_joined: bool,
    /// Slots of requests that wait for their turn.
    pub(super) queue: VecDeque<u32>,
    /// Requests that are waited for.
    pub(super) outstanding: u16,
    /// All requests to it.
    pub(super) requests: usize,
    /// Of these, the controller's own.
    pub(super) own_requests: usize,
    /// Whether it is in the line of nodes that something can be sent to.
    pub(super) is_ready: bool,
    /// Until when it is left alone.
    pub(super) not_before: Instant,
    pub(super) response_time: ResponseTime,
    pub(super) stage: Stage,
    /// Whether it has to be asked who it is before its interview goes on.
    pub(super) is_doubted: bool,
    /// Property maps of an object that were read so far, not all three.
    partial_maps: Option<(Eoj, Maps)>,
    /// Objects of which at least one property map was refused.
    without_maps: Vec<Eoj>,
    /// How many of its interviews in a row ended because it did not answer.
    pub(super) broken_off: u8,
    /// When a notification last began its interview.
    prompted: Option<Instant>,
    refused: Vec<Refused>,
    recent: VecDeque<Recent>,
}

/// Between two interviews that notifications begin of a node that answers nothing.
const PROMPTED_AGAIN: Duration = Duration::from_secs(10);

/// The announced, writable and readable properties: maps 9D, 9E, 9F.
type Maps = [Option<PropertySet>; 3];

/// The properties that an object refused to read.
#[derive(Debug)]
struct Refused {
    eoj: Eoj,
    epcs: PropertySet,
    until: Instant,
}

#[derive(Debug)]
struct Recent {
    news: News,
    at: Instant,
}

/// The marks that tell one notification from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) tid: u16,
    pub(super) eoj: Eoj,
    pub(super) confirmed: bool,
    /// The properties of the notification.
    pub(super) epcs: PropertySet,
    /// Of all but the transaction identifier.
    pub(super) hash: u64,
}

impl Peer {
    pub(super) fn new(addr: NodeAddr) -> Self {
        Self {
            info: NodeInfo::new(addr),
            by: 0,
            silent: 0,
            is_joined: false,
            queue: VecDeque::new(),
            outstanding: 0,
            requests: 0,
            own_requests: 0,
            is_ready: false,
            not_before: Instant::from_micros(0),
            response_time: ResponseTime::default(),
            stage: Stage::Idle,
            is_doubted: false,
            partial_maps: None,
            without_maps: Vec::new(),
            broken_off: 0,
            prompted: None,
            refused: Vec::new(),
            recent: VecDeque::new(),
        }
    }

    pub(super) fn footprint(&self) -> usize {
        let objects = self.info.objects.capacity() * size_of::<super::ObjectInfo>();
        let refused = self.refused.capacity() * size_of::<Refused>() + self.without_maps.capacity() * size_of::<Eoj>();
        objects + refused + self.recent.capacity() * size_of::<Recent>() + self.queue.capacity() * size_of::<u32>()
    }

    /// Whether nothing is going on, so that it could be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.requests == 0 && !self.is_ready && self.stage == Stage::Idle
    }

    /// The address by which it is asked.
    pub(super) fn addr(&self) -> NodeAddr {
        self.info.addrs[self.by]
    }

    /// The node does not answer: it is asked by its next address from now on. False if all have been tried.
    pub(super) fn try_next_address(&mut self) -> bool {
        self.silent += 1;
        if self.silent >= self.info.addrs.len() {
            return false;
        }
        self.by = (self.by + 1) % self.info.addrs.len();
        self.response_time.heard();
        true
    }

    /// It is asked by this one of its addresses from now on.
    pub(super) fn ask_at(&mut self, addr: NodeAddr) {
        self.by = self.info.addrs.iter().position(|own| own.covers(addr)).unwrap_or(self.by);
    }

    /// An address is not its own any more; the first one that is left names it.
    pub(super) fn leave_address(&mut self, addr: NodeAddr) {
        self.info.addrs.retain(|own| !own.covers(addr));
        self.info.addr = self.info.addrs.first().copied().unwrap_or(self.info.addr);
        self.by = 0;
    }

    /// The node was heard; whether it was lost before.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        self.info.last_heard = Some(now);
        self.silent = 0;
        core::mem::take(&mut self.info.is_lost)
    }

    /// Whether it has answered anything. A sender that only pretends to be at its address cannot.
    pub(super) fn has_answered(&self) -> bool {
        self.info.response_time.is_some()
    }

    /// Whether the program has asked it something that has not ended.
    pub(super) fn is_wanted(&self) -> bool {
        self.requests > self.own_requests
    }

    /// A request that was in this state is no longer.
    pub(super) fn leave(&mut self, state: State, slot: u32) {
        match state {
            // Most often the first: it has timed out, or a try before was answered late.
            State::Queued => {
                if let Some(place) = self.queue.iter().position(|other| *other == slot) {
                    self.queue.remove(place);
                }
            }
            State::Outstanding => self.outstanding -= 1,
            State::Free | State::Listening | State::Gathering | State::Done => {}
        }
    }

    /// The properties that an object is known not to let read.
    pub(super) fn refused(&mut self, now: Instant, eoj: Eoj) -> PropertySet {
        self.refused.retain(|refused| refused.until > now);
        let refused = self.refused.iter().find(|refused| refused.eoj == eoj);
        refused.map_or(PropertySet::EMPTY, |refused| refused.epcs)
    }

    /// Remembers what an object refused to read, unless its property map says that it can be read: then it refused for
    /// the moment only.
    pub(super) fn remember_refused(&mut self, now: Instant, eoj: Eoj, epcs: PropertySet, config: &Config) {
        let readable = self.info.maps(eoj).map_or(PropertySet::EMPTY, |maps| maps.readable);
        let epcs = epcs.difference(readable);
        if epcs.is_empty() || config.refusal_memory.is_zero() {
            return;
        }
        let until = now + config.refusal_memory;
        if let Some(refused) = self.refused.iter_mut().find(|refused| refused.eoj == eoj) {
            *refused = Refused { eoj, epcs: refused.epcs.union(epcs), until };
            return;
        }
        if self.refused.len() >= MAX_REFUSERS {
            self.refused.swap_remove(0);
        }
        self.refused.push(Refused { eoj, epcs, until });
    }

    /// Forgets all refusals: a property that was refused once can be granted now.
    pub(super) fn forget_refused(&mut self) {
        self.refused.clear();
    }

    /// That an object answered for properties after all.
    pub(super) fn forget_refused_of(&mut self, eoj: Eoj, epcs: PropertySet) {
        if let Some(refused) = self.refused.iter_mut().find(|refused| refused.eoj == eoj) {
            refused.epcs = refused.epcs.difference(epcs);
        }
    }

    /// Whether a notification is one that was heard before: doubled on its way, or sent again because the confirmation was
    /// lost.
    pub(super) fn is_repeated(&mut self, now: Instant, news: News, config: &Config) -> bool {
        while self.recent.front().is_some_and(|recent| recent.at + config.duplicate_window <= now) {
            self.recent.pop_front();
        }
        // There are nodes whose notifications all have the same identifier.
        let is_tid_unique =
            self.recent.iter().all(|Recent { news: other, .. }| other.tid != news.tid || *other == news);
        let subject = |news: &News| (news.eoj, news.confirmed, news.epcs);
        let before = self.recent.iter().rev().map(|recent| recent.news);
        let mut before = before.filter(|other| subject(other) == subject(&news));
        let repeated = if news.confirmed {
            // Sent again, it has a fresh identifier. A notification with the content of the last one is no news.
            before.next().is_some_and(|last| News { tid: news.tid, ..last } == news)
        } else if !is_tid_unique {
            // On, off, on again all look alike then: only a copy of the last one is surely one.
            before.next() == Some(news)
        } else {
            before.any(|other| other == news)
        };
        if !repeated {
            self.remember(now, news);
        }
        repeated
    }

    /// Whether an announcement of instances is a copy of the last one. If not, the node may have started anew, and its
    /// next messages are no copies of those before, even if they begin with the same identifiers.
    pub(super) fn is_start_repeated(&mut self, now: Instant, news: News) -> bool {
        // A notification that needs a confirmation is known by its content, not by its identifier.
        self.recent.retain(|recent| recent.news.confirmed || now.since(recent.at) < START_COPIED);
        let repeated = self.recent.iter().any(|recent| recent.news == news);
        if !repeated {
            self.remember(now, news);
        }
        repeated
    }

    fn remember(&mut self, now: Instant, news: News) {
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent { news, at: now });
    }

    /// Whether an object has refused a property map that an interview asks for.
    pub(super) fn has_refused_maps(&self, eoj: Eoj) -> bool {
        self.without_maps.contains(&eoj)
    }

    /// Whether a notification begins its interview: nothing is known of it, and none has begun it for a while.
    pub(super) fn is_prompted(&mut self, now: Instant) -> bool {
        let is_new = !self.info.is_ready && self.info.objects.is_empty() && self.stage == Stage::Idle;
        let is_due = is_new && self.prompted.is_none_or(|at| now.since(at) >= PROMPTED_AGAIN);
        if is_due {
            self.prompted = Some(now);
        }
        is_due
    }

    /// Takes property maps that were read, which can come one by one. Returns whether they are those of an object that has refused some before.
    pub(super) fn learn_maps(&mut self, eoj: Eoj, read: Maps) -> bool {
        let has_refused = self.has_refused_maps(eoj);
        let partial = self.partial_maps.take().filter(|(of, _)| *of == eoj);
        let mut maps = match (self.info.maps(eoj).filter(|_| !has_refused), partial) {
            (Some(maps), _) => [maps.announced, maps.writable, maps.readable].map(Some),
            (None, Some((_, maps))) => maps,
            (None, None) => Maps::default(),
        };
        for (map, read) in maps.iter_mut().zip(read) {
            *map = read.or(*map);
        }
        let is_complete = maps.iter().all(Option::is_some);
        self.partial_maps = Some((eoj, maps));
        if is_complete {
            self.without_maps.retain(|of| *of != eoj);
            self.settle_maps(eoj);
        }
        has_refused && is_complete
    }

    /// All that can be read of the property maps of an object was read: those that it refused are empty until the next interview. All three are
    /// mandatory, so that a refusal says that the device is not ready.
    pub(super) fn settle_maps(&mut self, eoj: Eoj) {
        let partial = self.partial_maps.take().filter(|(of, _)| *of == eoj);
        if partial.is_some() || self.info.maps(eoj).is_none() {
            let maps = partial.map_or_else(Maps::default, |(_, maps)| maps);
            if maps.iter().any(Option::is_none) && !self.has_refused_maps(eoj) {
                self.without_maps.push(eoj);
            }
            let [announced, writable, readable] = maps.map(Option::unwrap_or_default);
            self.info.set_maps(eoj, PropertyMaps { announced, writable, readable });
        }
    }

    /// Another node has the address.
    pub(super) fn replaced(&mut self) {
        let NodeInfo { addr, profile, last_heard, .. } = self.info;
        let addrs = core::mem::take(&mut self.info.addrs);
        self.info = NodeInfo { addrs, profile, last_heard, ..NodeInfo::new(addr) };
        self.refused.clear();
        self.partial_maps = None;
        self.without_maps.clear();
        self.prompted = None;
        self.response_time = ResponseTime::default();
    }

    /// The node starts afresh, or may be another by now.
    pub(super) fn restarted(&mut self, now: Instant) {
        self.forget_refused();
        self.info.properties_at_once = None;
        self.broken_off = 0;
        self.response_time.begins_anew(now);
    }
}

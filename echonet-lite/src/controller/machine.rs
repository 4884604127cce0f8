//! The controller: its tables, and the life of a request but for sending and receiving.

use std::collections::{HashMap, HashSet, VecDeque};
use std::vec::Vec;

use super::answer::Status;
use super::deadlines::Deadlines;
use super::peer::Peer;
use super::slot::{Lists, Owner, Slot, State, Target};
use super::tids::{MAX_REQUESTS, Tids};
use super::{Answer, Config, Event, Failure, NodeAddr, NodeInfo, Operation, Request, RequestError, RequestId};
use crate::node::Instant;
use crate::wire::{Eoj, PropertySet};

/// The requesting side of a node. See the [module](super) for how to drive it.
#[derive(Debug)]
pub struct Controller {
    pub(super) config: Config,
    pub(super) statistics: Statistics,
    pub(super) tids: Tids,
    pub(super) slots: Vec<Slot>,
    free_slots: Vec<u32>,
    /// By slot.
    pub(super) deadlines: Deadlines,
    /// A place of a node that was forgotten is empty.
    pub(super) peers: Vec<Option<Peer>>,
    free_peers: Vec<u32>,
    /// Places of nodes that turned out to be addresses of others.
    pub(super) joined: Vec<u32>,
    pub(super) places: HashMap<NodeAddr, u32>,
    /// By node: when something can be sent to it again.
    pub(super) pauses: Deadlines,
    /// When interviews begin again that were broken off, by place.
    pub(super) resumptions: Deadlines,
    /// Nodes that something can be sent to.
    pub(super) line: VecDeque<u32>,
    /// Slots of requests to all nodes that are to be sent.
    pub(super) group_line: VecDeque<u32>,
    /// Nodes whose interview goes on when there is room for a request.
    pub(super) interviews: VecDeque<u32>,
    /// Answers to INFC that are to be sent.
    pub(super) confirmations: VecDeque<(NodeAddr, Vec<u8>)>,
    /// Slots whose end was not taken yet.
    done: VecDeque<u32>,
    news: VecDeque<Event>,
    missed: u64,
    /// As the statistics count them, since it was told.
    pub(super) crowded_out: u64,
}

/// The counters of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests sent, repetitions included.
    pub sent: u64,
    /// Of these, repetitions.
    pub repeated: u64,
    /// Answers that belong to a request.
    pub answers: u64,
    /// Requests that timed out.
    pub timeouts: u64,
    /// Answers to requests that had ended before.
    pub late: u64,
    /// Answers that fit no request.
    pub unmatched: u64,
    /// Notifications.
    pub notifications: u64,
    /// Notifications that were heard before.
    pub repeated_notifications: u64,
    /// Messages of nodes for which there was no place: [`Config::max_nodes`](super::Config::max_nodes) that have answered
    /// within the hour are known.
    pub crowded_out: u64,
    /// INFC that were confirmed.
    pub confirmed: u64,
    /// Datagrams that are no frames, or frames of format 2.
    pub malformed: u64,
}

impl Controller {
    /// A controller that knows no node.
    pub fn new(mut config: Config) -> Self {
        config.max_requests = config.max_requests.clamp(1, MAX_REQUESTS);
        config.window = config.window.max(1);
        // The seed's bits are mixed, so that neighbouring seeds do not give neighbouring identifiers.
        let first = (config.seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as u16;
        Self {
            statistics: Statistics::default(),
            tids: Tids::new(first, config.tid_rest),
            slots: Vec::new(),
            free_slots: Vec::new(),
            deadlines: Deadlines::default(),
            peers: Vec::new(),
            free_peers: Vec::new(),
            joined: Vec::new(),
            places: HashMap::new(),
            pauses: Deadlines::default(),
            resumptions: Deadlines::default(),
            line: VecDeque::new(),
            group_line: VecDeque::new(),
            interviews: VecDeque::new(),
            confirmations: VecDeque::new(),
            done: VecDeque::new(),
            news: VecDeque::new(),
            missed: 0,
            crowded_out: 0,
            config,
        }
    }

    /// Makes a request to one node. It ends with [`Event::Done`]; to all instances of a class (instance 0), with
    /// [`Event::GatheringEnded`].
    ///
    /// # Errors
    /// The request cannot be sent at all, or a limit is reached.
    pub fn request(&mut self, now: Instant, node: NodeAddr, request: &Request<'_>) -> Result<RequestId, RequestError> {
        self.enqueue(now, Some(node), request, Owner::Caller)
    }

    /// Makes a request to all nodes. Each answer is [`Event::Gathered`]; [`Event::GatheringEnded`] ends it. It is sent
    /// once, unless [`Request::tries`] says otherwise.
    ///
    /// # Errors
    /// The request cannot be sent at all, or a limit is reached.
    pub fn request_all(&mut self, now: Instant, request: &Request<'_>) -> Result<RequestId, RequestError> {
        self.enqueue(now, None, request, Owner::Caller)
    }

    /// Searches for nodes: asks all for their lists of instances and identification numbers. A node that answers
    /// becomes known, with [`Event::NodeFound`] if it is new, and is interviewed. The search ends with
    /// [`Event::GatheringEnded`].
    ///
    /// # Errors
    /// A limit is reached.
    pub fn discover(&mut self, now: Instant) -> Result<RequestId, RequestError> {
        let tries = self.config.searches;
        self.request_all(now, &Request::get(Eoj::NODE_PROFILE, &[0xD6, 0x83]).tries(tries))
    }

    /// Gives a request up. No event follows; an answer that comes nevertheless is dropped. Returns whether there was
    /// such a request.
    pub fn cancel(&mut self, now: Instant, id: RequestId) -> bool {
        let Some(slot) = self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation) else {
            return false;
        };
        match slot.state {
            State::Free => return false,
            // Its place in the line of ended requests keeps the slot from being used again.
            State::Done if slot.owner == Owner::Nobody => return false,
            State::Done => slot.owner = Owner::Nobody,
            State::Queued | State::Outstanding | State::Listening | State::Gathering => {
                self.release(now, id.slot, None);
                self.free(id.slot);
            }
        }
        true
    }

    /// The time at which [`poll_transmit`](Self::poll_transmit) is to be called at the latest, though nothing came.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.deadlines.next(), self.pauses.next(), self.resumptions.next()].into_iter().flatten().min()
    }

    /// The next event; `None` when there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.missed > 0 {
            return Some(Event::Missed(core::mem::take(&mut self.missed)));
        }
        if self.crowded_out > 0 {
            return Some(Event::CrowdedOut(core::mem::take(&mut self.crowded_out)));
        }
        if let Some(event) = self.news.pop_front() {
            return Some(event);
        }
        while let Some(index) = self.done.pop_front() {
            let slot = &mut self.slots[index as usize];
            let id = RequestId { slot: index, generation: slot.generation };
            let event = match slot.owner {
                Owner::Nobody | Owner::Interview(_) => None,
                Owner::Caller if slot.is_gathering() => {
                    Some(Event::GatheringEnded { id, answers: slot.heard.len() as u32 })
                }
                Owner::Caller => Some(Event::Done { id, result: self.take_result(index) }),
            };
            self.free(index);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// The nodes that are known, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeInfo> {
        self.peers.iter().flatten().filter(|peer| !peer.is_joined).map(|peer| &peer.info)
    }

    /// The known facts about a node.
    pub fn node(&self, node: NodeAddr) -> Option<&NodeInfo> {
        let place = self.find_peer(node)?;
        Some(&self.peer(place).info)
    }

    /// Forgets what the objects of a node refused to read.
    pub fn forget_refusals(&mut self, node: NodeAddr) {
        if let Some(place) = self.find_peer(node) {
            self.peer_mut(place).forget_refused();
        }
    }

    /// Forgets a node, unless something is going on with it. Returns whether it is forgotten.
    pub fn forget(&mut self, node: NodeAddr) -> bool {
        let Some(place) = self.find_peer(node).filter(|place| self.peer(*place).is_idle()) else { return false };
        self.vacate(Instant::ZERO, place);
        self.peers[place as usize] = None;
        self.free_peers.push(place);
        true
    }

    /// Requests that have not ended.
    pub fn outstanding(&self) -> usize {
        self.slots.len() - self.free_slots.len() - self.done.len()
    }

    /// About how many bytes its tables take.
    pub fn footprint(&self) -> usize {
        let slots: usize = self.slots.iter().map(Slot::footprint).sum();
        let peers: usize =
            self.peers.iter().map(|peer| size_of_val(peer) + peer.as_ref().map_or(0, Peer::footprint)).sum();
        let lines =
            self.line.capacity() + self.group_line.capacity() + self.interviews.capacity() + self.done.capacity();
        let news = self.news.capacity() * size_of::<Event>();
        let confirmations: usize = self.confirmations.iter().map(|(_, frame)| frame.capacity()).sum();
        slots + peers + 4 * lines + news + confirmations + self.tids.footprint()
    }

    /// The counters.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        node: Option<NodeAddr>,
        request: &Request<'_>,
        owner: Owner,
    ) -> Result<RequestId, RequestError> {
        if self.config.listens_only {
            return Err(RequestError::ListensOnly);
        }
        let (writes, reads) = request.check(self.config.max_frame)?;
        if self.free_slots.is_empty() && self.slots.len() >= self.config.max_requests {
            return Err(RequestError::Full);
        }
        let target = match node {
            None => Target::Group,
            Some(node) => {
                let place = self.find_peer(node).or_else(|| self.add_peer(now, node, true));
                Target::Peer(place.ok_or(RequestError::TooManyNodes)?)
            }
        };
        let (named, profile) = match target {
            Target::Group => (None, None),
            Target::Peer(place) => {
                let info = &self.peer(place).info;
                (Some(info.addr), Some(info.profile))
            }
        };
        let mut left = Lists { writes, reads };
        let mut known_refused = PropertySet::EMPTY;
        if let Target::Peer(place) = target {
            let limit = self.config.max_requests_per_node;
            let peer = self.peer_mut(place);
            if peer.requests >= limit {
                return Err(RequestError::NodeFull);
            }
            if matches!(request.operation, Operation::Get(_)) && !request.fresh && request.eoj.instance() != 0 {
                known_refused = peer.refused(now, request.eoj).intersection(reads);
                left.reads = left.reads.difference(known_refused);
            }
            peer.requests += 1;
            peer.own_requests += usize::from(owner != Owner::Caller);
        }
        let index = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            self.slots.len() as u32 - 1
        });
        let usual_tries = if target == Target::Group { 1 } else { self.config.tries_of(request.eoj, writes) };
        let slot = &mut self.slots[index as usize];
        slot.fill(now, owner, target, request, left);
        slot.node = named;
        if let (Some(only), Some(profile), false) = (request.node, profile, slot.is_gathering()) {
            slot.restrict(only, profile);
        }
        slot.tries = request.tries.unwrap_or(usual_tries).max(1);
        for epc in known_refused.iter() {
            slot.outcomes.push(epc, false, Status::KnownRefused, &[]);
        }
        let id = RequestId { slot: index, generation: slot.generation };
        let give_up_at = slot.give_up_at;
        if left.is_empty() {
            self.finish(now, index, None, None);
            return Ok(id);
        }
        if let Some(at) = give_up_at {
            self.deadlines.set(index, at);
        }
        match target {
            Target::Group => self.group_line.push_back(index),
            Target::Peer(place) => {
                self.peer_mut(place).queue.push_back(index);
                self.line_up(now, place);
            }
        }
        Ok(id)
    }

    /// Puts a node in the line of those that something can be sent to, or has it come back when it can.
    pub(super) fn line_up(&mut self, now: Instant, place: u32) {
        let window = self.config.window;
        let peer = self.peers[place as usize].as_mut().expect("requests keep their node");
        if peer.is_ready || peer.queue.is_empty() || peer.outstanding >= window {
            return;
        }
        if peer.not_before > now {
            let at = peer.not_before;
            self.pauses.set(place, at);
            return;
        }
        peer.is_ready = true;
        self.line.push_back(place);
    }

    /// Ends a request: its event, or the next step of the interview it belongs to. `answered` is the identifier that the
    /// answer came with.
    pub(super) fn finish(&mut self, now: Instant, index: u32, answered: Option<u16>, failure: Option<Failure>) {
        self.release(now, index, answered);
        if matches!(failure, Some(Failure::TimedOut { .. } | Failure::NodeSilent { .. })) {
            self.statistics.timeouts += 1;
        }
        let slot = &mut self.slots[index as usize];
        slot.state = State::Done;
        slot.failure = failure;
        if let (Owner::Interview(step), Target::Peer(place)) = (slot.owner, slot.target) {
            let result = self.take_result(index);
            self.free(index);
            self.interviewed(now, place, step, result);
        } else {
            self.done.push_back(index);
        }
    }

    /// Takes a request out of every table but that of slots.
    fn release(&mut self, now: Instant, index: u32, answered: Option<u16>) {
        self.drop_attempts(now, index, answered);
        self.deadlines.clear(index);
        let slot = &self.slots[index as usize];
        let (state, owner) = (slot.state, slot.owner);
        match slot.target {
            Target::Group => {
                if state == State::Queued {
                    self.group_line.retain(|other| *other != index);
                }
            }
            Target::Peer(place) => {
                let peer = self.peer_mut(place);
                peer.requests -= 1;
                peer.own_requests -= usize::from(owner != Owner::Caller);
                peer.leave(state, index);
                self.line_up(now, place);
            }
        }
    }

    /// Frees the identifier that was answered, and has the others rest.
    pub(super) fn drop_attempts(&mut self, now: Instant, index: u32, answered: Option<u16>) {
        for tid in self.slots[index as usize].attempts.drain() {
            if answered == Some(tid) { self.tids.free(tid) } else { self.tids.put_to_rest(now, tid) }
        }
    }

    fn take_result(&mut self, index: u32) -> Result<Answer, Failure> {
        let slot = &mut self.slots[index as usize];
        if let Some(failure) = slot.failure {
            return Err(failure);
        }
        let (eoj, service, response_time) = (slot.eoj, slot.requested, slot.response_time);
        let outcomes = core::mem::take(&mut slot.outcomes);
        let node = slot.node.expect("requests to all nodes end without a result");
        Ok(Answer { node, eoj, service, response_time, outcomes })
    }

    fn free(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.state = State::Free;
        slot.generation = slot.generation.wrapping_add(1);
        slot.heard = HashSet::new();
        self.free_slots.push(index);
    }

    /// Whether few enough requests are outstanding for one that no caller waits for.
    pub(super) fn has_room(&self) -> bool {
        (self.slots.len() - self.free_slots.len()) * 2 < self.config.max_requests
    }

    /// Tells news. Where no caller takes them, the oldest go.
    pub(crate) fn tell(&mut self, event: Event) {
        if self.news.len() >= self.config.max_events.max(1) {
            self.news.pop_front();
            self.missed += 1;
        }
        self.news.push_back(event);
    }

    pub(super) fn peer(&self, place: u32) -> &Peer {
        self.peers[place as usize].as_ref().expect("places in use hold a node")
    }

    pub(super) fn peer_mut(&mut self, place: u32) -> &mut Peer {
        self.peers[place as usize].as_mut().expect("places in use hold a node")
    }

    /// The node at an address; one that was named without its scope is found in every scope.
    pub(super) fn find_peer(&self, addr: NodeAddr) -> Option<u32> {
        let exactly = self.places.get(&addr).copied();
        if exactly.is_some() || addr.scope() == 0 { exactly } else { self.places.get(&addr.unscoped()).copied() }
    }

    /// Gives a node a place; where all are in use, that of the node that is known least: one that has answered nothing
    /// yet, otherwise the one that was heard last the longest ago. A node that turned up by itself does not push out
    /// one that has answered and was heard within the hour. Otherwise messages from forged addresses would empty the
    /// table.
    pub(super) fn add_peer(&mut self, now: Instant, addr: NodeAddr, wanted: bool) -> Option<u32> {
        let place = if let Some(place) = self.free_peers.pop() {
            place
        } else if self.peers.len() < self.config.max_nodes {
            self.peers.push(None);
            self.peers.len() as u32 - 1
        } else {
            let known = self.peers.iter().zip(0..).filter_map(|(peer, place)| Some((peer.as_ref()?, place)));
            let dispensable = known.filter(|(peer, _)| peer.is_idle() || (!peer.has_answered() && !peer.is_wanted()));
            let (has_answered, last_heard, place) =
                dispensable.map(|(peer, place)| (peer.has_answered(), peer.info.last_heard, place)).min()?;
            if !wanted && has_answered && last_heard.is_some_and(|at| now.since(at) < NODE_KEPT) {
                return None;
            }
            self.vacate(now, place);
            place
        };
        self.places.insert(addr, place);
        self.peers[place as usize] = Some(Peer::new(addr));
        Some(place)
    }

    /// Takes the node at a place out of every table, and drops the controller's own requests to it. No request of a caller
    /// may wait for the node.
    fn vacate(&mut self, now: Instant, place: u32) {
        let peer = self.peer(place);
        if peer.requests > 0 {
            for index in 0..self.slots.len() as u32 {
                let slot = &self.slots[index as usize];
                if slot.target == Target::Peer(place) && !matches!(slot.state, State::Free | State::Done) {
                    self.release(now, index, None);
                    self.free(index);
                }
            }
        }
        self.line.retain(|other| *other != place);
        self.interviews.retain(|other| *other != place);
        self.pauses.clear(place);
        self.resumptions.clear(place);
        let addrs = core::mem::take(&mut self.peer_mut(place).info.addrs);
        for addr in addrs {
            // An address that turned out to be another node's leads there.
            if self.places.get(&addr) == Some(&place) {
                self.places.remove(&addr);
            }
        }
    }

    /// Makes the node at `place` an address of the one at `node`.
    pub(super) fn join(&mut self, node: u32, place: u32) {
        let joined = self.peer_mut(place);
        joined.is_joined = true;
        let addrs = joined.info.addrs.clone();
        let name = self.peer(node).info.addr;
        for addr in addrs {
            self.places.insert(addr, node);
            self.peer_mut(node).info.addrs.push(addr);
            self.tell(Event::NodeJoined { node: name, addr });
        }
        self.joined.push(place);
    }

    /// Forgets those that are addresses of others and have nothing more to do.
    pub(super) fn forget_joined(&mut self) {
        let mut joined = core::mem::take(&mut self.joined);
        joined.retain(|&place| {
            // The place can be another's by now.
            let Some(peer) = self.peers[place as usize].as_ref().filter(|peer| peer.is_joined) else { return false };
            if peer.requests > 0 {
                return true;
            }
            self.vacate(Instant::ZERO, place);
            self.peers[place as usize] = None;
            self.free_peers.push(place);
            false
        });
        self.joined = joined;
    }
}

/// How long a node that has answered keeps its place from others that turn up.
const NODE_KEPT: core::time::Duration = core::time::Duration::from_secs(3600);

//! The streams of a connection, and a memory of those that are gone.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::priority::Priority;

/// Streams that are remembered when they are over: frames for them may still be on their way. More than most clients have at
/// one time, in a kilobyte.
const REMEMBERED: usize = 128;

/// A stream, for as long as it lives; afterwards it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId {
    pub(crate) number: u32,
    pub(crate) slot: u32,
}

impl StreamId {
    /// The number that it has on the wire.
    pub fn number(self) -> u32 {
        self.number
    }

    /// A small number that no other stream of its connection has at the same time, for tables of one's own. It is given
    /// again when the stream is over: below [`Config::max_streams`](crate::Config::max_streams), always.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The part of an answer that has been sent. With `remote_open`, the stream's state (RFC 9113 section 5.1):
///
/// ```text
///                        HEADERS
///                           |
///        remote_open, Head or Body: open
///        | END_STREAM                  | END_STREAM
///        | by the peer                 | by us
///   !remote_open, Head or Body:      remote_open, Closed:
///   half-closed (remote)             half-closed (local)
///        |                             |
///        +------- gone: closed --------+   or by RST_STREAM from any state
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// Nothing, or interim heads.
    Head,
    /// The head.
    Body,
    /// All.
    Closed,
}

/// The condition that a stream waits for to send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    No,
    /// Its own window.
    Window,
    /// Its turn.
    Turn,
}

/// A stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// 0: none has the slot.
    pub(crate) number: u32,
    pub(crate) remote_open: bool,
    pub(crate) local: Local,
    pub(crate) waits: Waits,
    pub(crate) priority: Priority,
    /// Bytes that may be sent; settings can make it negative.
    pub(crate) send_window: i64,
    /// Bytes that may come.
    pub(crate) receive_window: i64,
    /// Bytes that came and are not released.
    pub(crate) unreleased: u32,
    /// Bytes that were released and not announced.
    pub(crate) unannounced: u32,
    /// Bytes that are still to come, if `content-length` says how many.
    pub(crate) expected: Option<u64>,
}

impl Stream {
    pub(crate) fn id(&self, slot: u32) -> StreamId {
        StreamId { number: self.number, slot }
    }
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Past {
    /// Both sides have sent all.
    Finished,
    /// By the peer's RST_STREAM.
    ResetByPeer,
    /// By ours: frames on their way mean nothing.
    ResetByUs,
    /// Long ago, or it was left out.
    Unknown,
}

/// All streams of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
    /// Slots by number.
    places: HashMap<u32, u32, BuildHasherDefault<NumberHasher>>,
    /// The stream that was looked for last: frames of one stream mostly follow each other.
    last: Option<StreamId>,
    past: VecDeque<(u32, Past)>,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn insert(&mut self, stream: Stream) -> StreamId {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = stream;
                slot
            }
            None => {
                self.slots.push(stream);
                self.slots.len() as u32 - 1
            }
        };
        let id = self.slots[slot as usize].id(slot);
        self.places.insert(id.number, slot);
        self.last = Some(id);
        id
    }

    /// The stream of a number, if it lives.
    #[inline]
    pub(crate) fn find(&mut self, number: u32) -> Option<StreamId> {
        if let Some(last) = self.last.filter(|last| last.number == number) {
            return Some(last);
        }
        let slot = *self.places.get(&number)?;
        self.last = Some(StreamId { number, slot });
        self.last
    }

    /// The stream, if it lives.
    #[inline]
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.slots.get(id.slot()).filter(|stream| stream.number == id.number)
    }

    /// The stream, if it lives.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.slots.get_mut(id.slot()).filter(|stream| stream.number == id.number)
    }

    /// All that live.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut Stream)> {
        let live = self.slots.iter_mut().enumerate().filter(|(_, stream)| stream.number != 0);
        live.map(|(slot, stream)| (stream.id(slot as u32), stream))
    }

    /// All that live.
    #[cfg(all(feature = "http", any(test, feature = "model")))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StreamId, &Stream)> {
        let live = self.slots.iter().enumerate().filter(|(_, stream)| stream.number != 0);
        live.map(|(slot, stream)| (stream.id(slot as u32), stream))
    }

    /// Takes a stream out that lives, and remembers how it ended.
    pub(crate) fn remove(&mut self, id: StreamId, past: Past) -> Option<Stream> {
        self.get(id)?;
        let stream = self.slots[id.slot()].clone();
        self.slots[id.slot()].number = 0;
        self.free.push(id.slot);
        self.places.remove(&id.number);
        self.last = None;
        self.remember(id.number, past);
        Some(stream)
    }

    /// Notes that a stream ended, which may have been at once.
    pub(crate) fn remember(&mut self, number: u32, past: Past) {
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back((number, past));
    }

    /// How a stream ended that does not live.
    pub(crate) fn past(&self, number: u32) -> Past {
        let known = self.past.iter().rev().find(|(known, _)| *known == number);
        known.map_or(Past::Unknown, |(_, past)| *past)
    }
}

/// Spreads numbers of streams, of which a connection has few at a time, so that no choice of them costs much.
#[derive(Clone, Copy, Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        // Fibonacci hashing: 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

//! The sockets of a loop, and the tasks that wait for them.

use rustix::event::epoll::{Event, EventFlags};
use slab::Slab;
use std::task::{Context, Waker};

/// Sockets that one look tells of.
const EVENTS: usize = 256;

/// A socket in the loop that it is registered with. It is never given twice, so an event of a socket that is closed concerns no
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    pub(super) fn of(data: u64) -> Self {
        Self { index: data as u32, generation: (data >> 32) as u32 }
    }

    pub(super) fn data(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

/// A direction of a socket.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// True if a call may succeed.
    pub(super) is_ready: bool,
    /// The task that waits, and stays here for the next time.
    waker: Option<Waker>,
    waits: bool,
}

impl Direction {
    fn happened(&mut self) {
        self.is_ready = true;
        if std::mem::take(&mut self.waits)
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }

    /// Has this task woken when there is something.
    #[inline]
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        self.waits = true;
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
    }
}

/// One socket.
#[derive(Debug, Default)]
pub(super) struct Source {
    generation: u32,
    pub(super) read: Direction,
    pub(super) write: Direction,
    /// True if the other end sends nothing more: then even a short read has not emptied the socket.
    pub(super) has_ended: bool,
}

#[derive(Default)]
pub(super) struct Sources {
    slab: Slab<Source>,
    next_generation: u32,
    /// Room for the events of a look.
    events: Vec<Event>,
}

impl Sources {
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.events);
        events.reserve(EVENTS);
        events
    }

    pub(super) fn give_back(&mut self, events: Vec<Event>) {
        self.events = events;
    }

    pub(super) fn insert(&mut self) -> Key {
        // The last is left out, so no key is the event of the interrupt.
        self.next_generation = (self.next_generation + 1) % u32::MAX;
        let generation = self.next_generation;
        // A write may go through at once; a socket is registered when a read, or a write, has just found that it would block.
        let write = Direction { is_ready: true, ..Direction::default() };
        let index = self.slab.insert(Source { generation, write, ..Source::default() });
        Key { index: u32::try_from(index).expect("a process has fewer descriptors"), generation }
    }

    #[inline]
    pub(super) fn get(&mut self, key: Key) -> Option<&mut Source> {
        self.slab.get_mut(key.index as usize).filter(|source| source.generation == key.generation)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Source> {
        self.get(key)?;
        self.slab.try_remove(key.index as usize)
    }

    pub(super) fn happened(&mut self, key: Key, flags: EventFlags) {
        let Some(source) = self.get(key) else { return };
        let both = EventFlags::ERR | EventFlags::HUP;
        source.has_ended |= flags.intersects(EventFlags::RDHUP | both);
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | both) {
            source.read.happened();
        }
        if flags.intersects(EventFlags::OUT | both) {
            source.write.happened();
        }
    }
}

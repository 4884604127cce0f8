//! The streams of a connection that have no answer yet, found by their number without a search.
//!
//! A stream's place follows from its number. A new stream takes the next number whose place is free: numbers may be left out (RFC 9113,
//! 5.1.1), so one slow answer does not stall others.

use crate::clock::Nanos;

/// The last number that is used: with a margin for those that are left out.
const LAST: u32 = 0x7fff_0000;

/// Places of a new connection; a power of two, like all later sizes.
const FIRST_PLACES: usize = 2;

/// The streams in use.
#[derive(Debug)]
pub(super) struct Streams<E> {
    places: Vec<Stream<E>>,
    in_use: usize,
    /// The lowest number that was never used.
    next: u32,
}

/// A request that has no complete answer yet.
#[derive(Debug, Default)]
pub(super) struct Stream<E> {
    /// Its number; 0 where the place is free.
    pub(super) id: u32,
    /// Whether the answer's head has come, and what follows is body and trailers.
    pub(super) headed: bool,
    /// When the request was intended.
    pub(super) intended: Nanos,
    /// How many bytes the server takes.
    pub(super) window: i64,
    /// How many came since the server's window was last made larger.
    pub(super) received: usize,
    /// The part of the request's body that the server's windows have kept back.
    pub(super) rest: Option<Box<Rest>>,
    /// The state of the protocol on top. It stays when the stream ends, for its memory.
    pub(super) exchange: E,
}

/// The rest of a request's body.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) bytes: Vec<u8>,
    pub(super) sent: usize,
}

impl<E: Default> Streams<E> {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), in_use: 0, next: 1 }
    }

    /// How many are in use.
    pub(super) fn len(&self) -> usize {
        self.in_use
    }

    /// Whether there are numbers left.
    pub(super) fn may_open(&self) -> bool {
        self.next < LAST
    }

    /// Whether a stream of this number was never opened.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id >= self.next || id.is_multiple_of(2)
    }

    /// Opens the next stream.
    #[inline]
    pub(super) fn open(&mut self, intended: Nanos, window: i64) -> &mut Stream<E> {
        // Half of the places stay free, so that few numbers are left out.
        if self.in_use * 2 >= self.places.len() {
            self.grow();
        }
        while self.places[self.place(self.next)].id != 0 {
            self.next += 2;
        }
        let (id, place) = (self.next, self.place(self.next));
        self.next += 2;
        self.in_use += 1;
        let stream = &mut self.places[place];
        stream.id = id;
        stream.headed = false;
        stream.intended = intended;
        stream.window = window;
        stream.received = 0;
        stream
    }

    /// The stream of this number, unless it has ended.
    #[inline]
    pub(super) fn find(&mut self, id: u32) -> Option<&mut Stream<E>> {
        let place = self.place(id);
        self.places.get_mut(place).filter(|stream| stream.id == id)
    }

    /// Frees a stream's place, and gives when it was intended.
    #[inline]
    pub(super) fn close(&mut self, id: u32) {
        if let Some(stream) = self.find(id) {
            stream.id = 0;
            stream.rest = None;
            self.in_use -= 1;
        }
    }

    /// All that are in use.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream<E>> {
        self.places.iter_mut().filter(|stream| stream.id != 0)
    }

    /// Closes those that `ends` says it of.
    pub(super) fn close_where(&mut self, mut ends: impl FnMut(&mut Stream<E>) -> bool) {
        for stream in self.places.iter_mut().filter(|stream| stream.id != 0) {
            if ends(stream) {
                stream.id = 0;
                stream.rest = None;
                self.in_use -= 1;
            }
        }
    }

    #[inline]
    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & self.places.len().wrapping_sub(1)
    }

    /// Doubles the places. Streams that had places of their own have so again, because one more bit tells them apart.
    #[cold]
    fn grow(&mut self) {
        let number = (self.places.len() * 2).max(FIRST_PLACES);
        let mut places: Vec<Stream<E>> = std::iter::repeat_with(Stream::default).take(number).collect();
        for stream in self.places.drain(..).filter(|stream| stream.id != 0) {
            let place = (stream.id >> 1) as usize & (number - 1);
            places[place] = stream;
        }
        self.places = places;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_stream_does_not_block_new_streams() {
        let mut streams: Streams<()> = Streams::new();
        let slow = streams.open(7, 0).id;
        let mut last = slow;
        for _ in 0..1000 {
            let id = streams.open(0, 0).id;
            assert!(id > last && id % 2 == 1);
            assert_eq!(streams.find(id).map(|stream| stream.id), Some(id));
            streams.close(id);
            assert!(streams.find(id).is_none());
            last = id;
        }
        assert_eq!(streams.find(slow).map(|stream| stream.intended), Some(7));
        assert_eq!((streams.len(), streams.places.len()), (1, 4));
    }

    #[test]
    fn many_streams_at_once() {
        let mut streams: Streams<()> = Streams::new();
        let ids: Vec<u32> = (0..1000).map(|intended| streams.open(intended, 0).id).collect();
        for (intended, id) in ids.iter().enumerate() {
            assert_eq!(streams.find(*id).map(|stream| stream.intended), Some(intended as u64));
        }
        assert_eq!(streams.iter_mut().count(), 1000);
        streams.close_where(|stream| stream.intended % 2 == 0);
        assert_eq!((streams.len(), streams.iter_mut().count()), (500, 500));
        assert!(streams.is_idle(2) && streams.is_idle(5001) && !streams.is_idle(1));
    }
}

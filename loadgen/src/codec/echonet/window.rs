//! The requests of one connection that have no answer yet, found by their TIDs.

use std::collections::VecDeque;

use crate::clock::Nanos;

/// The largest window: a quarter of all TIDs, so that a TID rests before it is used again.
pub const LARGEST_WINDOW: usize = 1 << 14;

/// How many TIDs of requests that were given up are kept from use, until their late answers have come.
const REMEMBERED: usize = 1024;

/// The requests under way.
///
/// A TID has the place in the window in its lower bits, and the number of uses of that place in its upper bits. An
/// answer thus finds its request without a search. A repeated or late answer finds the place in use by another request.
#[derive(Debug)]
pub struct Window {
    place_bits: u32,
    places: Vec<Place>,
    /// Places in the order in which they became free: the longest rested is used first.
    free: VecDeque<u16>,
    given_up: VecDeque<u16>,
}

#[derive(Debug)]
struct Place {
    request: Request,
    tid: u16,
    busy: bool,
}

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) intended: Nanos,
    pub(super) operation: u16,
}

impl Window {
    /// An empty window of up to `size` requests, 1 to [`LARGEST_WINDOW`].
    pub(super) fn new(size: usize) -> Self {
        let place_bits = size.clamp(1, LARGEST_WINDOW).next_power_of_two().trailing_zeros();
        Self { place_bits, places: Vec::new(), free: VecDeque::new(), given_up: VecDeque::new() }
    }

    /// How many requests are under way.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// How many more there is room for.
    pub(super) fn room(&self) -> usize {
        (1 << self.place_bits) - self.len()
    }

    /// Adds a request and gives its TID. There must be room.
    pub(super) fn begin(&mut self, request: Request) -> u16 {
        let place = self.free.pop_front().unwrap_or_else(|| {
            let place = self.places.len() as u16;
            self.places.push(Place { request, tid: place, busy: false });
            place
        });
        // Window 1 has no bits for the place, so that the step is 1; in the largest it is 1 << 14.
        let step = 1_u16 << self.place_bits;
        let slot = &mut self.places[usize::from(place)];
        slot.tid = slot.tid.wrapping_add(step);
        while !self.given_up.is_empty() && self.given_up.contains(&slot.tid) {
            slot.tid = slot.tid.wrapping_add(step);
            // Where all TIDs of a place are given up, the oldest of all returns sooner than planned.
            if self.given_up.len() >= usize::from(u16::MAX >> self.place_bits) {
                self.given_up.pop_front();
            }
        }
        slot.request = request;
        slot.busy = true;
        slot.tid
    }

    /// Takes out the request that an answer with this TID is for; nothing if the answer is late, or comes again.
    pub(super) fn answered(&mut self, tid: u16) -> Option<Request> {
        let place = tid & ((1 << self.place_bits) - 1);
        let slot = self.places.get_mut(usize::from(place)).filter(|slot| slot.tid == tid);
        match slot {
            Some(slot) if slot.busy => {
                slot.busy = false;
                self.free.push_back(place);
                Some(slot.request)
            }
            _ => {
                self.given_up.retain(|given_up| *given_up != tid);
                None
            }
        }
    }

    /// Takes out the requests that were intended before a time; late answers to them will find nothing.
    pub(super) fn expire(&mut self, before: Nanos, mut each: impl FnMut(Request, u16)) {
        for (place, slot) in (0..).zip(&mut self.places) {
            if slot.busy && slot.request.intended < before {
                slot.busy = false;
                self.free.push_back(place);
                if self.given_up.len() == REMEMBERED {
                    self.given_up.pop_front();
                }
                self.given_up.push_back(slot.tid);
                each(slot.request, slot.tid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(intended: Nanos) -> Request {
        Request { intended, operation: 0 }
    }

    #[test]
    fn answers_find_their_requests_once_in_any_order() {
        for size in [1, 2, 3, 32, 1000, LARGEST_WINDOW] {
            let mut window = Window::new(size);
            for round in 0..10 {
                let tids: Vec<u16> = (0..size as u64).map(|i| window.begin(request(round * 100_000 + i))).collect();
                assert_eq!(window.len(), size);
                for (i, tid) in tids.iter().enumerate().rev() {
                    assert_eq!(window.answered(*tid), Some(request(round * 100_000 + i as u64)), "{size} {round}");
                    assert_eq!(window.answered(*tid), None, "twice");
                }
                assert_eq!(window.len(), 0);
            }
        }
    }

    #[test]
    fn the_tid_of_a_request_given_up_is_not_used_before_its_late_answer_came() {
        let mut window = Window::new(2);
        let lost = window.begin(request(1));
        let kept = window.begin(request(5));
        let mut expired = Vec::new();
        window.expire(5, |request, tid| expired.push((request.intended, tid)));
        assert_eq!(expired, [(1, lost)]);
        assert_eq!(window.answered(kept), Some(request(5)));
        let mut reused = |rounds: usize| {
            let tids: Vec<u16> = (0..rounds)
                .map(|_| {
                    let tid = window.begin(request(9));
                    assert_eq!(window.answered(tid), Some(request(9)));
                    tid
                })
                .collect();
            assert_eq!(window.answered(lost), None);
            tids.contains(&lost)
        };
        assert!(!reused(70_000));
        assert!(reused(70_000), "after its late answer it is free again");
    }

    #[test]
    fn the_largest_window_recovers_from_losing_everything() {
        let mut window = Window::new(LARGEST_WINDOW);
        for round in 1..20 {
            while window.room() > 0 {
                window.begin(request(round));
            }
            window.expire(round + 1, |_, _| ());
            assert_eq!(window.len(), 0);
        }
    }
}

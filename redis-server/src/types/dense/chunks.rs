//! A vector in pieces: it grows by a piece, so that no addition moves more than a piece of elements.

use std::slice;

use crate::types::{GROWS_SLOWLY, allocated};

/// A vector of which an addition moves the elements of its last piece at most, and a list of pieces, which is an ordinary vector: 24 bytes
/// for each `CHUNK` elements. A piece grows to the allocator's next size, or by an eighth of all elements if that is more. Little space
/// stays unused, and few elements move.
#[derive(Clone)]
pub(super) struct Chunks<T, const CHUNK: usize> {
    /// The first `CHUNK` elements: all that a small table has, without a list of pieces.
    first: Vec<T>,
    /// The others.
    rest: Option<Box<Pieces<T>>>,
    len: usize,
}

/// All pieces but the last are full; the last may be empty.
#[derive(Clone)]
struct Pieces<T>(Vec<Vec<T>>);

/// Below this capacity nothing is given back: it would only be asked for again.
const SHRINK_FLOOR: usize = 64;

impl<T, const CHUNK: usize> Chunks<T, CHUNK> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { first: Vec::with_capacity(capacity.min(CHUNK)), rest: None, len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        if at < self.len { Some(self.at(at)) } else { None }
    }

    #[inline]
    pub(super) fn at(&self, at: usize) -> &T {
        match self.first.get(at) {
            Some(element) => element,
            None => &self.pieces()[at / CHUNK - 1][at % CHUNK],
        }
    }

    #[inline]
    pub(super) fn at_mut(&mut self, at: usize) -> &mut T {
        match (self.first.get_mut(at), &mut self.rest) {
            (Some(element), _) => element,
            (None, Some(pieces)) => &mut pieces.0[at / CHUNK - 1][at % CHUNK],
            (None, None) => panic!("no element {at}"),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, element: T) {
        self.len += 1;
        let all = self.len;
        let piece = if all <= CHUNK {
            &mut self.first
        } else {
            let pieces = &mut self.rest.get_or_insert_with(|| Box::new(Pieces(Vec::new()))).0;
            if pieces.last().is_none_or(|last| last.len() == CHUNK) {
                pieces.push(Vec::new());
            }
            pieces.last_mut().expect("there is a piece by now")
        };
        if piece.len() == piece.capacity() {
            grow(piece, all, CHUNK);
        }
        piece.push(element);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        if let Some(pieces) = &mut self.rest {
            // An empty piece is kept until the one before it is begun, which may be full again at the next addition.
            pieces.0.pop_if(|last| last.is_empty());
            match pieces.0.last_mut() {
                Some(last) => return last.pop(),
                None => self.rest = None,
            }
        }
        let popped = self.first.pop();
        if self.first.capacity() > SHRINK_FLOOR && self.len < self.first.capacity() / 8 {
            self.first.shrink_to(self.len * 2);
        }
        popped
    }

    /// Takes out the element at `at`, which must exist; the last one takes its place.
    pub(super) fn swap_remove(&mut self, at: usize) -> T {
        let last = self.pop().expect("there is the element at this place");
        if at == self.len { last } else { std::mem::replace(self.at_mut(at), last) }
    }

    pub(super) fn iter(&self) -> Iter<'_, T, CHUNK> {
        Iter { chunk: self.first.iter(), rest: self.pieces().iter() }
    }

    /// Heap bytes of the pieces.
    pub(super) fn memory(&self) -> usize {
        let rest: usize = self.pieces().iter().map(Vec::capacity).sum();
        let list = self.rest.as_ref().map_or(0, |pieces| (pieces.0.capacity() + 1) * size_of::<Vec<T>>());
        (self.first.capacity() + rest) * size_of::<T>() + list
    }

    #[inline]
    fn pieces(&self) -> &[Vec<T>] {
        self.rest.as_ref().map_or(&[], |pieces| &pieces.0)
    }
}

/// Room for more in a full piece of at most `most` elements, when there are `all` in all pieces.
#[cold]
fn grow<T>(piece: &mut Vec<T>, all: usize, most: usize) {
    let len = piece.len();
    let more = if len * size_of::<T>() < GROWS_SLOWLY { len / 2 } else { all / 8 };
    // For an alignment above that of any allocation, the buffer is longer by `align` bytes.
    let align = if align_of::<T>() > align_of::<u128>() { align_of::<T>() - 1 } else { 0 };
    let room = (allocated((len + more.max(1)) * size_of::<T>() + align) - align) / size_of::<T>();
    piece.reserve_exact(room.min(most) - len);
}

/// Walks the elements in order.
pub(in crate::types) struct Iter<'a, T, const CHUNK: usize> {
    chunk: slice::Iter<'a, T>,
    rest: slice::Iter<'a, Vec<T>>,
}

impl<T, const CHUNK: usize> Clone for Iter<'_, T, CHUNK> {
    fn clone(&self) -> Self {
        Self { chunk: self.chunk.clone(), rest: self.rest.clone() }
    }
}

impl<'a, T, const CHUNK: usize> Iterator for Iter<'a, T, CHUNK> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        if let Some(element) = self.chunk.next() {
            return Some(element);
        }
        self.chunk = self.rest.next()?.iter();
        self.chunk.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = match self.rest.as_slice() {
            [] => 0,
            [full @ .., last] => full.len() * CHUNK + last.len(),
        };
        let left = self.chunk.len() + rest;
        (left, Some(left))
    }
}

impl<T, const CHUNK: usize> ExactSizeIterator for Iter<'_, T, CHUNK> {}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Rng;
    use super::*;

    fn check(chunks: &Chunks<u32, 128>, model: &[u32]) {
        assert_eq!(chunks.len(), model.len());
        assert!(chunks.iter().eq(model));
        let mut walk = chunks.iter();
        for left in (0..=model.len()).rev() {
            assert_eq!(walk.len(), left);
            walk.next();
        }
        for (at, element) in model.iter().enumerate() {
            assert_eq!((chunks.at(at), chunks.get(at)), (element, Some(element)));
        }
        assert_eq!(chunks.get(model.len()), None);
    }

    #[test]
    fn behaves_like_a_vector() {
        let (mut chunks, mut model, mut rng) = (Chunks::with_capacity(0), Vec::new(), Rng::new(1));
        for step in 0..60_000u32 {
            // More additions and more removals in turn, through several pieces and back to none.
            let adds = if step / 3000 % 2 == 0 { 6 } else { 4 };
            match rng.below(10) {
                n if n < adds => {
                    chunks.push(step);
                    model.push(step);
                }
                9 if !model.is_empty() => {
                    let at = rng.below(model.len());
                    assert_eq!(chunks.swap_remove(at), model.swap_remove(at));
                }
                _ => assert_eq!(chunks.pop(), model.pop()),
            }
            if step % 100 == 0 {
                check(&chunks, &model);
            }
        }
    }

    /// However many there are, an eighth of them and a size of the allocator's is the most that there is to spare.
    #[test]
    fn little_room_is_to_spare() {
        let mut chunks = Chunks::<u64, 2048>::with_capacity(0);
        for len in 1..20_000_usize {
            chunks.push(0);
            let (held, needed) = (chunks.memory(), len * size_of::<u64>());
            let list = 24 * (len.div_ceil(2048) * 2 + 4);
            assert!(held <= needed + needed / 2 + 16 + list, "{held} for {needed}");
            assert!(needed < GROWS_SLOWLY || held <= needed + needed / 8 + needed / 4 + list, "{held} for {needed}");
        }
    }

    /// Where the elements are is where they stay, but for the last piece.
    #[test]
    fn additions_and_removals_move_less_than_a_piece() {
        const CHUNK: usize = 128;
        let mut chunks = Chunks::<usize, CHUNK>::with_capacity(0);
        let places = |chunks: &Chunks<usize, CHUNK>| chunks.iter().map(std::ptr::from_ref).collect::<Vec<_>>();
        let mut before = places(&chunks);
        for step in 0..20 * CHUNK {
            if step < 10 * CHUNK {
                chunks.push(step);
            } else {
                chunks.pop();
            }
            let after = places(&chunks);
            let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
            assert!(moved < CHUNK, "{moved} at {step}");
            before = after;
        }
    }
}

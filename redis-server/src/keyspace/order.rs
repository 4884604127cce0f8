//! A few keys in the order in which their shards are locked.

use super::key::{Access, Key};

/// Most keys that are put in order: as many as a window has.
pub(super) const FEW: usize = 32;

/// Runs of neighbouring shards, one for each bit of a word: few enough to be quickly emptied, and many enough for most runs to have no
/// more than one of a window's keys.
const RUNS: usize = 64;

/// No key.
const NOBODY: u8 = u8::MAX;

/// Keys, in ascending order of their shards.
pub(super) struct Order {
    /// Of each run the position of its first key, and behind those of each key the next one's in the same run.
    links: [u8; RUNS + FEW],
    /// Runs that have keys.
    used: u64,
    next: u8,
}

impl Order {
    /// Of at most [`FEW`] keys whose shards are below `shards`, a power of two.
    #[inline]
    pub(super) fn new(keys: &[(Key<'_>, Access)], shards: usize) -> Self {
        let run_bits = shards.trailing_zeros().saturating_sub(RUNS.trailing_zeros());
        let (mut links, mut used) = ([NOBODY; RUNS + FEW], 0);
        for (at, (key, _)) in keys.iter().enumerate() {
            let run = (key.shard >> run_bits) as usize % RUNS;
            used |= 1 << run;
            let mut link = run;
            while let Some((other, _)) = keys.get(usize::from(links[link]))
                && other.shard < key.shard
            {
                link = RUNS + usize::from(links[link]);
            }
            links[RUNS + at] = links[link];
            links[link] = at as u8;
        }
        Self { links, used, next: NOBODY }
    }
}

impl Iterator for Order {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.next == NOBODY {
            if self.used == 0 {
                return None;
            }
            self.next = self.links[self.used.trailing_zeros() as usize % RUNS];
            self.used &= self.used - 1;
        }
        let at = usize::from(self.next);
        self.next = self.links[RUNS + at];
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_the_order_of_their_shards() {
        let check = |shards: &[u32], count: usize| {
            let keys: Vec<_> = shards.iter().map(|shard| (Key::new(b"", 0, *shard), Access::Read)).collect();
            let order: Vec<usize> = Order::new(&keys, count).collect();
            let came: Vec<u32> = order.iter().map(|at| shards[*at]).collect();
            let mut sorted = shards.to_vec();
            sorted.sort_unstable();
            assert_eq!(came, sorted, "{count} shards");
            let mut positions = order;
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..shards.len()), "each comes once: {shards:?}");
        };
        check(&[], 4096);
        check(&[1, 0, 1, 0], 2);
        check(&[16_383, 0, 255, 256, 255, 0, 16_383], 16_384);
        let mut random = 1u32;
        for count in [2, 16, 64, 128, 4096, 16_384] {
            // All over, and all in one run.
            for within in [count, count.min(7)] {
                let mut next = || {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (random >> 8) % within
                };
                let shards: Vec<u32> = (0..FEW).map(|_| next()).collect();
                check(&shards, count as usize);
                check(&[within - 1; FEW], count as usize);
            }
        }
    }
}

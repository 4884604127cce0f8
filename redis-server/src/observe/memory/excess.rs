//! When free memory is given back to the system.
//!
//! mimalloc gives back what has been free for a second, but only on threads that go on allocating: a server at rest would keep what a
//! burst has left. So its memory is looked at each second, and where much more is resident than in use, all workers give back. Memory may
//! also be resident because values that are left lie on pages with much that is free, which nothing gives back; then looks become rare.

/// Bytes that may be resident beyond those in use, whatever these are: stacks, and a few pages for each size of each thread.
const SLACK: u64 = 6 << 20;
/// Rounds in which only what has been free for a while is given back: memory that is about to be used again stays.
const GENTLE: u32 = 3;
/// Most seconds between two rounds that have brought nothing.
const PAUSE_MAX: u32 = 64;

/// The memory that workers should release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Nothing,
    /// Memory that has been free for a while.
    Old,
    /// Everything that is free.
    All,
}

/// The history of the process' memory.
#[derive(Debug, Default)]
pub struct Excess {
    /// Rounds since there is too much.
    rounds: u32,
    /// Seconds until the next one.
    pause: u32,
    /// Bytes in use at the last round.
    used: u64,
}

impl Excess {
    /// Looks at the bytes in use, and those of them and others that are resident; to be called each second.
    pub fn look(&mut self, used: u64, resident: u64) -> Wanted {
        if resident <= used + used / 4 + SLACK {
            *self = Self::default();
            return Wanted::Nothing;
        }
        if used < self.used - self.used / 20 {
            // More has been freed since.
            *self = Self::default();
        }
        if self.pause > 0 {
            self.pause -= 1;
            return Wanted::Nothing;
        }
        self.used = used;
        self.rounds += 1;
        if self.rounds <= GENTLE {
            return Wanted::Old;
        }
        self.pause = (1 << (self.rounds - GENTLE).min(PAUSE_MAX.ilog2())) - 1;
        Wanted::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn first_what_is_old_then_all_then_ever_more_rarely() {
        let mut excess = Excess::default();
        assert_eq!(excess.look(100 * MB, 130 * MB), Wanted::Nothing);
        let looks: Vec<_> = (0..200).map(|_| excess.look(10 * MB, 200 * MB)).collect();
        assert_eq!(looks[..5], [Wanted::Old, Wanted::Old, Wanted::Old, Wanted::All, Wanted::Nothing]);
        let all: Vec<_> = (0..200).filter(|&at| looks[at] == Wanted::All).collect();
        assert_eq!(all, [3, 5, 9, 17, 33, 65, 129, 193]);
    }

    #[test]
    fn newly_freed_memory_resets_the_pause() {
        let mut excess = Excess::default();
        (0..100).for_each(|_| _ = excess.look(100 * MB, 200 * MB));
        assert_eq!(excess.look(99 * MB, 200 * MB), Wanted::Nothing);
        assert_eq!(excess.look(90 * MB, 200 * MB), Wanted::Old);
        assert_eq!(excess.look(90 * MB, 100 * MB), Wanted::Nothing);
        assert_eq!(excess.look(10 * MB, 100 * MB), Wanted::Old);
    }
}

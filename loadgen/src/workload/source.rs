//! Random choices.

use rand::SeedableRng;
use rand::rngs::SmallRng;

/// One thread's source of random choices, repeatable from the run's seed.
#[derive(Clone, Debug)]
pub struct Source {
    /// The generator.
    pub rng: SmallRng,
    /// How many numbers in a row the thread's sequences have given; see [`Source::next_in_sequence`].
    sequence: u64,
    stride: u64,
}

impl Source {
    /// The source of thread `thread` of `threads`.
    #[must_use]
    pub fn new(seed: u64, thread: usize, threads: usize) -> Self {
        // SplitMix's increment keeps the threads' seeds apart.
        let rng = SmallRng::seed_from_u64(seed ^ (thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { rng, sequence: thread as u64, stride: threads.max(1) as u64 }
    }

    /// The next number of the run's sequence 0, 1, 2, …, of which each thread has its share.
    pub fn next_in_sequence(&mut self) -> u64 {
        let number = self.sequence;
        self.sequence = self.sequence.wrapping_add(self.stride);
        number
    }
}

//! The validity of a run.

use crate::record::Outcome;

/// How the note of a run begins that others disturbed.
pub(crate) const DISTURBED: &str = "disturbed: ";

/// How the note of a run begins that showed the generator's speed.
const GENERATOR_BOUND: &str = "generator-bound";

/// Above this share of a processor the generator's busiest thread is the limit.
const BUSY: f64 = 0.9;

/// Whether other programs, or other machines, used the processors, or the generator was stopped. Such a run decides nothing.
#[must_use]
pub fn is_disturbed(outcome: &Outcome) -> bool {
    outcome.is_stalled() || outcome.notes.iter().any(|note| note.starts_with(DISTURBED))
}

/// Whether the generator was the limit: then rate and latencies are its own, and only the server's CPU time is the server's.
#[must_use]
pub fn is_generator_bound(outcome: &Outcome) -> bool {
    outcome.generator.busiest_thread > BUSY || outcome.notes.iter().any(|note| is_note_of_generator(note))
}

/// Whether a run's note says that, which names figures that differ from run to run.
pub(crate) fn is_note_of_generator(note: &str) -> bool {
    note.starts_with(GENERATOR_BOUND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn notes_and_figures_tell() {
        let mut outcome = made_up::run_of(1000, 1000);
        assert!(!is_disturbed(&outcome) && !is_generator_bound(&outcome));
        outcome.notes.push("disturbed: other programs used more than 10 % of the processors".to_owned());
        assert!(is_disturbed(&outcome) && !is_generator_bound(&outcome));
        outcome.generator.busiest_thread = 0.91;
        assert!(is_generator_bound(&outcome));
        outcome.generator.busiest_thread = 0.9;
        outcome.notes.push("generator-bound: a thread of the generator was 91 % busy".to_owned());
        assert!(is_generator_bound(&outcome));
    }
}

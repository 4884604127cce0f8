//! The validity of a run.

use super::margin::MARGIN;
use crate::record::Outcome;

/// How the note of a run begins that others disturbed.
pub(crate) const DISTURBED: &str = "disturbed: ";

/// How the note of a run begins that showed the generator's speed.
const GENERATOR_BOUND: &str = "generator-bound";

/// Above this share of a processor the generator's busiest thread is saturated.
const BUSY: f64 = 0.9;

/// A server that used at least this share of its processors is saturated: it could not have answered more than the margin of
/// equivalence, 5 %, above its rate, however fast the generator.
const SATURATED: f64 = 1.0 / (1.0 + MARGIN);

/// Whether other programs, or other machines, used the processors, or the generator was stopped. Such a run decides nothing.
#[must_use]
pub fn is_disturbed(outcome: &Outcome) -> bool {
    outcome.is_stalled() || outcome.notes.iter().any(|note| note.starts_with(DISTURBED))
}

/// The generator was saturated. If the server was not, rate and latencies are the generator's own.
#[must_use]
pub fn is_generator_saturated(outcome: &Outcome) -> bool {
    outcome.generator.busiest_thread > BUSY || outcome.notes.iter().any(|note| is_note_of_generator(note))
}

/// How many processors the server used: its CPU time by the time in which it was measured.
#[must_use]
pub fn processors_used(outcome: &Outcome) -> Option<f64> {
    outcome.server.filter(|_| outcome.seconds > 0.0).map(|server| server.cpu.total() / outcome.seconds)
}

/// A server that used so many of its processors was saturated. An unknown use says nothing.
#[must_use]
pub fn is_saturated(used: f64, processors: usize) -> bool {
    used >= SATURATED * processors.max(1) as f64
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
        assert!(!is_disturbed(&outcome) && !is_generator_saturated(&outcome));
        outcome.notes.push("disturbed: other programs used more than 10 % of the processors".to_owned());
        assert!(is_disturbed(&outcome) && !is_generator_saturated(&outcome));
        outcome.generator.busiest_thread = 0.91;
        assert!(is_generator_saturated(&outcome));
        outcome.generator.busiest_thread = 0.9;
        outcome.notes.push("generator-bound: a thread of the generator was 91 % busy".to_owned());
        assert!(is_generator_saturated(&outcome));
    }

    #[test]
    fn a_saturated_server_uses_its_processors() {
        let mut outcome = made_up::run_of(1000, 1000);
        #[track_caller]
        fn check(outcome: &mut Outcome, cpu: f64, processors: usize, expected: bool) {
            if let Some(server) = &mut outcome.server {
                server.cpu = crate::record::Cpu { user: cpu * outcome.seconds, system: 0.0 };
            }
            let used = processors_used(outcome).unwrap_or(f64::NAN);
            assert_eq!(is_saturated(used, processors), expected, "{cpu} of {processors}");
        }
        check(&mut outcome, 0.96, 1, true);
        check(&mut outcome, 0.95, 1, false);
        check(&mut outcome, 0.96, 2, false);
        check(&mut outcome, 1.92, 2, true);
        outcome.server = None;
        check(&mut outcome, 1.0, 1, false);
    }
}

//! Runs of a drop-in, as command lines of ours.

use std::cell::Cell;

use super::answers::answered;
use crate::cli::drive::ReadScenario;
use crate::front::{self, Exit, Show, Wanted};
use crate::output::Outputs;
use crate::record::{Ending, Outcome};

/// Runs our command line `words`, and shows the result as `render` has it.
pub(super) fn run(words: &[String], scenario: ReadScenario, render: &dyn Fn(&Outcome) -> String) -> Exit {
    run_and_write(words, scenario, Outputs::default(), render)
}

/// Runs our command line `words`, shows the result as `render` has it, and writes files.
pub(super) fn run_and_write(
    words: &[String],
    scenario: ReadScenario,
    outputs: Outputs,
    render: &dyn Fn(&Outcome) -> String,
) -> Exit {
    let scenario = match scenario(words) {
        Ok(scenario) => scenario,
        Err(error) => {
            eprintln!("error: {error}");
            return Exit::Usage;
        }
    };
    let wanted = Wanted { outputs, show: Show::OnTerminal, metrics: None };
    let is_answered = Cell::new(false);
    let exit = front::run(scenario, &wanted, &|outcome, _| {
        is_answered.set(outcome.ending == Ending::Complete && answered(outcome) > 0);
        match &outcome.ending {
            Ending::Failed(reason) if outcome.answers() == 0 => {
                eprintln!("error: {reason}");
                String::new()
            }
            Ending::Complete | Ending::Interrupted | Ending::Failed(_) => render(outcome),
        }
    });
    // To the other tools an answer is an answer, whatever it says.
    if exit == Exit::Failed && is_answered.get() { Exit::Fine } else { exit }
}

/// The failures on standard error, for tools whose output has no place for them.
pub(super) fn complain(outcome: &Outcome) {
    for failure in &outcome.failures {
        let example = failure.examples.first().map(|example| format!(": {example}")).unwrap_or_default();
        eprintln!("{} {}{example}", failure.count, failure.kind.words());
    }
}

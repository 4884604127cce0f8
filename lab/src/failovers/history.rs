//! The answers that one client got for a register and a list that it alone writes, and whether servers still have them.

use std::collections::BTreeSet;

/// One step of a history, in its order. A key's writes are numbered upwards.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The number was sent.
    Tried(u64),
    /// It was done: whether it stays is not known.
    Answered(u64),
    /// It was said to stay.
    Kept(u64),
    /// When all was settled, one of the servers had this: a register's number, or a list's elements.
    Saw(Vec<u64>),
}

/// The answers before a moment of a history.
#[derive(Default)]
struct Said {
    tried: u64,
    /// Tried, and never answered: these may be done at any time later, or never.
    open: BTreeSet<u64>,
    kept: BTreeSet<u64>,
    /// The values seen on all servers.
    seen: Vec<u64>,
}

/// Faults of a register, which holds the last written value.
pub(super) fn register(steps: &[Step]) -> Vec<String> {
    judge(steps, |said, seen| {
        let [found] = seen else { return vec![format!("a register of {} numbers", seen.len())] };
        let least = said.kept.last().max(said.seen.last()).copied().unwrap_or(0);
        if *found > said.tried {
            return vec![format!("{found} is there, and {} was tried last", said.tried)];
        }
        if *found < least && !said.open.contains(found) {
            return vec![format!("{found} is there, and {least} was acknowledged")];
        }
        Vec::new()
    })
}

/// Faults of a list, to whose end everything was pushed.
pub(super) fn list(steps: &[Step]) -> Vec<String> {
    judge(steps, |said, seen| {
        let mut faults = Vec::new();
        let there: BTreeSet<u64> = seen.iter().copied().collect();
        let mut lost = said.kept.difference(&there);
        if let Some(first) = lost.next() {
            faults.push(format!("{} acknowledged elements are lost, {first} first", 1 + lost.count()));
        }
        if !seen.starts_with(&said.seen) {
            faults.push(format!("of {} elements that were there, some are not where they were", said.seen.len()));
        }
        if there.len() != seen.len() {
            faults.push(format!("{} elements are there twice", seen.len() - there.len()));
        }
        if there.iter().any(|element| !(1..=said.tried).contains(element)) {
            faults.push("there are elements that nobody has pushed".to_owned());
        }
        let known = seen.iter().filter(|element| !said.open.contains(element));
        if !known.is_sorted() {
            faults.push("elements are not in order".to_owned());
        }
        faults
    })
}

/// Goes through a history; `judge_one` says what is wrong with what was seen.
fn judge(steps: &[Step], judge_one: impl Fn(&Said, &[u64]) -> Vec<String>) -> Vec<String> {
    let mut said = Said::default();
    let mut faults = Vec::new();
    for step in steps {
        match step {
            Step::Tried(number) => {
                said.tried = *number;
                said.open.insert(*number);
            }
            Step::Answered(number) => _ = said.open.remove(number),
            Step::Kept(number) => _ = said.kept.insert(*number),
            Step::Saw(seen) => {
                faults.extend(judge_one(&said, seen));
                said.seen.clone_from(seen);
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 to 9 are tried; what `kept` holds is acknowledged, what `open` holds is never answered; then `seen` are seen.
    fn history(kept: &[u64], open: &[u64], seen: &[&[u64]]) -> Vec<Step> {
        let mut steps = Vec::new();
        for number in 1..=9 {
            steps.push(Step::Tried(number));
            if !open.contains(&number) {
                steps.push(Step::Answered(number));
            }
            if kept.contains(&number) {
                steps.push(Step::Kept(number));
            }
        }
        steps.extend(seen.iter().map(|seen| Step::Saw(seen.to_vec())));
        steps
    }

    #[test]
    fn a_register_holds_what_was_acknowledged_or_tried_later() {
        let check = |kept: &[u64], open: &[u64], seen: &[&[u64]], expected: &[&str]| {
            assert_eq!(register(&history(kept, open, seen)), expected, "{kept:?} {open:?} {seen:?}");
        };
        for number in 7..=9 {
            check(&[2, 7], &[], &[&[number]], &[]);
        }
        check(&[2, 7], &[], &[&[6]], &["6 is there, and 7 was acknowledged"]);
        check(&[], &[], &[&[0]], &[]);
        check(&[2, 7], &[], &[&[10]], &["10 is there, and 9 was tried last"]);
        // A write without an answer may be done at any time.
        check(&[2, 7], &[6], &[&[6]], &[]);
        check(&[2, 7], &[6], &[&[5]], &["5 is there, and 7 was acknowledged"]);
        // One server has it, so that all have: it stays.
        check(&[2], &[], &[&[8], &[7]], &["7 is there, and 8 was acknowledged"]);
        check(&[2], &[], &[&[]], &["a register of 0 numbers"]);
    }

    #[test]
    fn a_list_has_all_that_was_acknowledged_once_and_in_order() {
        let check = |open: &[u64], seen: &[&[u64]], expected: &[&str]| {
            assert_eq!(list(&history(&[1, 3, 7], open, seen)), expected, "{open:?} {seen:?}");
        };
        check(&[], &[&[1, 3, 7]], &[]);
        check(&[], &[&[1, 2, 3, 7, 9], &[1, 2, 3, 7, 9]], &[]);
        check(&[], &[&[1, 7]], &["1 acknowledged elements are lost, 3 first"]);
        check(&[], &[&[]], &["3 acknowledged elements are lost, 1 first"]);
        check(&[], &[&[1, 3, 3, 7]], &["1 elements are there twice"]);
        check(&[], &[&[1, 3, 7, 11]], &["there are elements that nobody has pushed"]);
        check(&[], &[&[0, 1, 3, 7]], &["there are elements that nobody has pushed"]);
        check(&[], &[&[3, 1, 7]], &["elements are not in order"]);
        check(&[5], &[&[1, 3, 7, 5]], &[]);
        check(&[5], &[&[1, 3, 7], &[1, 3, 7, 5]], &[]);
        let moved = "of 4 elements that were there, some are not where they were";
        check(&[], &[&[1, 2, 3, 7], &[1, 3, 7]], &[moved]);
        check(&[2], &[&[1, 2, 3, 7], &[1, 3, 7, 2]], &[moved]);
    }
}

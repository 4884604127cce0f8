//! Slots that this node has released, in its file. After a restart, the node must not serve them before it knows their owner.

use super::job::{Job, LetGo, SLACK, Stage};
use crate::cluster::Millis;
use crate::cluster::machine::Machine;
use crate::cluster::moves::LEASE;

/// The variable's name. Other servers pass by variables that they do not know.
pub(in crate::cluster::machine) const NAME: &str = "letGo";

impl Machine {
    /// Restores a released move from the file.
    pub(in crate::cluster::machine) fn restore_let_go(&mut self, saved: LetGo, now: Millis) {
        let LetGo { name, target, epoch, slots } = saved;
        let mut job = Job::new(name, false, slots, Some((self.my_id(), target)), now);
        job.stage = Stage::Granted { epoch, lapsed: now + LEASE + SLACK, is_asked: false, denied: None };
        "The node was started again".clone_into(&mut job.message);
        self.moves.0.push(job);
    }

    /// Appends what the file is to say, each with its variable's name.
    pub(in crate::cluster::machine) fn write_let_go(&self, text: &mut String) {
        for job in &self.moves.0 {
            let (Stage::Granted { epoch, .. }, Some((_, target))) = (job.stage, job.nodes) else { continue };
            text.push_str(&format!(" {NAME} {},{target},{epoch}", job.name));
            for range in job.slots.ranges() {
                text.push_str(&format!(",{}-{}", range.start(), range.end()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_moves_parse_only_when_well_formed() {
        let (name, target) = ("1".repeat(40), "b".repeat(40));
        let text = format!("{name},{target},7,0-9,16383-16383");
        let saved = LetGo::parse(&text).expect("it is whole");
        assert_eq!((saved.target.to_string(), saved.epoch), (target.clone(), 7));
        assert_eq!(saved.slots.ranges(), [0..=9, 16_383..=16_383]);
        for wrong in [
            "",
            &name,
            &format!("{name},{target}"),
            &format!("{name},{target},x,0-9"),
            &format!("{name},{target},7,9"),
            &format!("{name},{target},7,9-0"),
            &format!("{name},{target},7,0-16384"),
            &format!("{name},x,7,0-9"),
        ] {
            assert_eq!(LetGo::parse(wrong), None, "{wrong}");
        }
    }
}

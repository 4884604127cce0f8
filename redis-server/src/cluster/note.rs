//! A snapshot's note of slots that move in.

use std::sync::Arc;

use crate::cluster::moves::{Ranges, parse_ranges};
use crate::cluster::{NodeId, SlotSet};

/// The note of these imports: their names and slots. Empty if there are none.
pub(crate) fn note_of_imports(imports: &[(NodeId, Arc<SlotSet>)]) -> String {
    let notes: Vec<String> = imports.iter().map(|(name, slots)| format!("{name} {}", Ranges(slots))).collect();
    notes.join(";")
}

pub(crate) fn parse_note(note: &str) -> Option<(NodeId, SlotSet)> {
    let (name, ranges) = note.split_once(' ')?;
    Some((NodeId::parse(name.as_bytes())?, parse_ranges(ranges.split(' '))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_are_written() {
        let name = NodeId::from_random(|| 7);
        let slots: SlotSet = [0, 1, 5, 16_383].into_iter().collect();
        assert_eq!(parse_note(&format!("{name} {}", Ranges(&slots))), Some((name, slots)));
        for wrong in ["", "x 0-1", &format!("{name} 0"), &format!("{name} 2-1"), &format!("{name} 0-16384")] {
            assert_eq!(parse_note(wrong), None, "{wrong}");
        }
    }
}

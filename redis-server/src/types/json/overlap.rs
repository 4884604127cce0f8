//! Values that a path leads to inside of others that it leads to, too.

use super::build::Builder;
use super::document::{Json, MAX_BYTES, Refused};
use super::merge::Index;
use super::node::{Kind, Node};

/// Returns `old` with a new value at each of the places `found`, which must ascend; `change` makes the new value. `old` itself may be among
/// them. A value changes before those inside of it. A place that the new value no longer has is skipped, as in RedisJSON.
///
/// # Errors
/// Those of `change`; it would be too deep or too large.
pub fn change_within(
    old: Node<'_>,
    found: &[usize],
    change: &dyn Fn(Node<'_>) -> Result<Json, Refused>,
) -> Result<Json, Refused> {
    let mut out = Builder::default();
    Within { found, change }.write(&mut out, old, old)?;
    Ok(out.finish())
}

struct Within<'c> {
    found: &'c [usize],
    change: &'c dyn Fn(Node<'_>) -> Result<Json, Refused>,
}

impl Within<'_> {
    fn has(&self, node: Node<'_>) -> bool {
        self.found.binary_search(&node.at()).is_ok()
    }

    /// Whether a value inside of this one changes.
    fn reaches_into(&self, node: Node<'_>) -> bool {
        let next = self.found.partition_point(|&at| at <= node.at());
        self.found.get(next).is_some_and(|&at| at < node.end())
    }

    /// Writes `new`, which stands where `old` stood, with its changes. Recurses as deep as `old` is, which is a document.
    fn write(&self, out: &mut Builder, new: Node<'_>, old: Node<'_>) -> Result<(), Refused> {
        let changed = self.has(old).then(|| (self.change)(new)).transpose()?;
        let new = changed.as_ref().map_or(new, Json::root);
        if out.len() + new.raw().len() > MAX_BYTES {
            return Err(Refused::Size);
        }
        match (new.kind(), old.kind()) {
            _ if !self.reaches_into(old) => out.copy(new),
            (Kind::Object(members), Kind::Object(before)) => {
                let before = Index::new(Some(before));
                out.begin_object()?;
                for (name, value) in members {
                    out.name(name);
                    match before.get(name) {
                        Some(before) => self.write(out, value, before)?,
                        None => out.copy(value),
                    }
                }
                out.end()?;
            }
            (Kind::Array(elements), Kind::Array(mut before)) => {
                out.begin_array()?;
                for value in elements {
                    match before.next() {
                        Some(before) => self.write(out, value, before)?,
                        None => out.copy(value),
                    }
                }
                out.end()?;
            }
            _ => out.copy(new),
        }
        Ok(())
    }
}

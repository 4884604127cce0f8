//! Values that a path leads to inside of others that it leads to, too.

use super::build::Builder;
use super::merge::Index;
use super::node::{Kind, Node};
use super::{Json, MAX_BYTES, Refused};

/// What becomes of `old` when `change` makes a new value of each value in it, `old` itself included, that stands at one of the places
/// `found`, which ascend. A value changes before those inside of it; these are passed by where the new value has none in their place.
/// So does RedisJSON.
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

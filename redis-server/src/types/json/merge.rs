//! Merge patches (RFC 7396).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::build::Builder;
use super::document::{Json, Refused};
use super::node::{Kind, Members, Node};

/// Members up to which a name is looked for one by one.
const FEW: usize = 8;

/// Applies `patch` to `target`: members that are `null` in the patch go, others are merged or added. A value that is no object replaces the
/// other one.
///
/// # Errors
/// It would be too deep or too large.
pub fn merge(target: Node<'_>, patch: Node<'_>) -> Result<Json, Refused> {
    let mut out = Builder::default();
    merge_into(&mut out, Some(target), patch)?;
    Ok(out.finish())
}

/// Recurses as deep as the patch is, which is a document.
fn merge_into(out: &mut Builder, target: Option<Node<'_>>, patch: Node<'_>) -> Result<(), Refused> {
    let Kind::Object(changes) = patch.kind() else {
        out.copy(patch);
        return Ok(());
    };
    out.begin_object()?;
    let old = match target.map(Node::kind) {
        Some(Kind::Object(members)) => Some(members),
        _ => None,
    };
    let (by_name, known) = (Index::new(Some(changes)), Index::new(old));
    for (name, value) in old.into_iter().flatten() {
        match by_name.get(name) {
            None => {
                out.name(name);
                out.copy(value);
            }
            Some(change) if matches!(change.kind(), Kind::Null) => {}
            Some(change) => {
                out.name(name);
                merge_into(out, Some(value), change)?;
            }
        }
    }
    for (name, change) in changes {
        if !matches!(change.kind(), Kind::Null) && known.get(name).is_none() {
            out.name(name);
            merge_into(out, None, change)?;
        }
    }
    out.end()
}

/// Members by name.
pub(super) enum Index<'a> {
    Few(Option<Members<'a>>),
    Many(HashMap<&'a [u8], Node<'a>, RandomState>),
}

impl<'a> Index<'a> {
    pub(super) fn new(members: Option<Members<'a>>) -> Self {
        match members {
            Some(members) if members.len() > FEW => Self::Many(members.collect()),
            few => Self::Few(few),
        }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Node<'a>> {
        match self {
            Self::Few(members) => {
                members.iter().copied().flatten().find(|(known, _)| *known == name).map(|(_, value)| value)
            }
            Self::Many(members) => members.get(name).copied(),
        }
    }
}

//! Words of valkey-search about the nodes of a cluster, for `compatibility valkey-9`.

use super::words::Words;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// The nodes whose figures FT.INFO shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// This node.
    Local,
    /// All primaries.
    Primary,
    /// All nodes; replicas have what their primaries have.
    Cluster,
}

impl Scope {
    /// `FT.INFO index [LOCAL | PRIMARY | CLUSTER] [ALLSHARDS | SOMESHARDS] [CONSISTENT | INCONSISTENT]`. `None` if the call names none.
    pub(super) fn parse(cx: &Ctx<'_>, args: Args<'_>) -> Result<Option<Self>> {
        if args.len() > 2 && !cx.config().level().is_valkey() {
            return Err(Error::WrongArity("FT.INFO".into()));
        }
        let mut words = Words::new(args, 2);
        let scope = match () {
            () if words.take("LOCAL") => Some(Self::Local),
            () if words.take("PRIMARY") => Some(Self::Primary),
            () if words.take("CLUSTER") => Some(Self::Cluster),
            () => None,
        };
        while take_demand(&mut words) {}
        if words.is_empty() { Ok(scope) } else { Err(Error::Message(format!("Unknown argument `{}`", words.shown()))) }
    }

    /// The value of `mode`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Primary => "primary",
            Self::Cluster => "cluster",
        }
    }
}

/// Takes a word about nodes that do not answer. All nodes must answer here, and they have the same definitions.
pub(super) fn take_demand(words: &mut Words<'_>) -> bool {
    ["ALLSHARDS", "SOMESHARDS", "CONSISTENT", "INCONSISTENT"].iter().any(|word| words.take(word))
}

/// Returns true if a call asks this node alone.
pub(super) fn is_local(name: &str, args: Args<'_>) -> bool {
    match name {
        // LOCAL is the default.
        "ft.info" => args.len() == 2 || !args.is(2, "PRIMARY") && !args.is(2, "CLUSTER"),
        "ft.search" | "ft.aggregate" => (3..args.len()).any(|at| args.is(at, "LOCALONLY")),
        _ => false,
    }
}

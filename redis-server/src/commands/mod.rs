//! The handlers of all commands: one file per family, ending in its table.

mod bitmap;
#[cfg(feature = "bloom")]
mod bloom;
mod cluster;
mod connection;
mod databases;
pub mod definition;
mod function;
mod generic;
mod geo;
mod hash;
mod help;
mod hyperloglog;
#[cfg(feature = "json")]
mod json;
mod limits;
mod list;
mod pubsub;
mod random;
mod registry;
mod replication;
mod scan;
mod script;
#[cfg(feature = "search")]
mod search;
mod server;
mod set;
mod sort;
mod sorted_set;
mod store;
mod stream;
mod string;
mod transaction;
#[cfg(feature = "vector-sets")]
mod vector_set;
mod wait;

pub use registry::{REGISTRY, TABLE};
#[cfg(feature = "search")]
pub(crate) use search::look_after as look_after_indexes;
pub(crate) use server::end_hot_keys_if_due;

/// The part of other nodes of a cluster.
#[cfg(feature = "search")]
const GATHER: Gather = search::gather;
#[cfg(not(feature = "search"))]
const GATHER: Gather = |_, _, _, _| Ok(Vec::new());

use crate::commands::definition::Family;
use crate::exec::core::Gather;

/// Every family.
pub const FAMILIES: &[&Family] = &[
    &string::FAMILY,
    &bitmap::FAMILY,
    &generic::FAMILY,
    &databases::FAMILY,
    &hash::FAMILY,
    &list::FAMILY,
    &set::FAMILY,
    &sorted_set::FAMILY,
    &stream::FAMILY,
    &hyperloglog::FAMILY,
    &geo::FAMILY,
    #[cfg(feature = "json")]
    &json::FAMILY,
    #[cfg(feature = "bloom")]
    &bloom::FAMILY,
    #[cfg(feature = "search")]
    &search::FAMILY,
    #[cfg(feature = "search")]
    &search::SUGGESTIONS,
    #[cfg(feature = "vector-sets")]
    &vector_set::FAMILY,
    &sort::FAMILY,
    &wait::FAMILY,
    &pubsub::FAMILY,
    &transaction::FAMILY,
    &script::FAMILY,
    &connection::FAMILY,
    &cluster::FAMILY,
    &cluster::NODE,
    &server::FAMILY,
    &replication::FAMILY,
];

//! Every number that was tuned: its default elsewhere, ours, and why.

/// Whether answers wait in hyper's buffer while further pipelined requests have already been read, so that a batch of
/// requests is answered by one write. hyper's default: no.
pub const PIPELINE_FLUSH: bool = true;

//! Large clusters.

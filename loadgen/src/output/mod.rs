//! What people and programs read of a result.

pub(crate) mod chart;
pub mod html;
pub(crate) mod svg;

//! Results, written for people and for programs.

pub mod chart;
mod csv;
mod files;
mod hdr;
pub mod html;
mod json;
#[cfg(test)]
pub(crate) mod made_up;
pub mod svg;
mod table;

pub use csv::csv;
pub use files::{Files, Outputs};
pub use hdr::hdr_log;
pub use json::json;
pub use table::table;

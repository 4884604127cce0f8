//! Results, written for people and for programs.

mod csv;
mod files;
mod hdr;
mod json;
#[cfg(test)]
pub(crate) mod made_up;
mod table;

pub use csv::csv;
pub use files::{Files, Outputs};
pub use hdr::hdr_log;
pub use json::json;
pub use table::table;

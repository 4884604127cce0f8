//! Results, written for people and for programs.

pub mod chart;
mod csv;
mod files;
mod hdr;
pub mod html;
mod json;
#[cfg(test)]
pub(crate) mod made_up;
mod prometheus;
pub mod svg;
mod table;

use std::io::{self, Write as _};

pub use csv::csv;
pub use files::{Files, Outputs};
pub use hdr::hdr_log;
pub use json::json;
pub use prometheus::prometheus;
pub use table::table;

/// Writes a text to the standard output. A reader that stops early, such as `head`, is no error.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

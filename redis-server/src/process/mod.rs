//! The process as the system sees it: in the background or supervised, with a title, and with a report when it crashes.
//!
//! What is here knows nothing of commands or data, and of the configuration only what the title shows. Each part is asked for once, by `main.rs`; a server inside another program
//! leaves that program's process alone.

mod crash;
mod daemon;
mod supervisor;
mod title;

pub use crash::{enable as enable_crash_reports, install as report_crashes, serving};
pub use daemon::{create_pidfile, detach, ignore_hangup};
pub use supervisor::Supervisor;
pub use title::Title;

/// A process that is one server's own.
#[derive(Debug, Default)]
pub struct Process {
    /// Whoever has started it and wants to know its state.
    pub supervisor: Supervisor,
    /// Its title, where it has one that can be changed.
    pub title: Option<Title>,
}

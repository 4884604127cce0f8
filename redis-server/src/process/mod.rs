//! The process as the system sees it: in the background or supervised, with a title, and with a report when it crashes.
//!
//! This folder knows neither commands nor data, and of the configuration only the settings that the title shows. Each part is asked for
//! once, by `main.rs`; a server inside another program leaves that program's process alone.

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
    /// The service manager, if it wants to know the state.
    pub supervisor: Supervisor,
    /// Its title, where it has one that can be changed.
    pub title: Option<Title>,
}

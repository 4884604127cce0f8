//! What this workspace publishes, looked at as its readers do.

mod report;

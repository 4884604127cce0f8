//! Redis over HTTP: against the server in the process, and against genuine ones.

mod api;
mod browser;
mod console;
mod faults;
mod get;
mod strangers;
mod subscriptions;
mod support;
mod ways;

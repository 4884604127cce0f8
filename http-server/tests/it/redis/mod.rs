//! Redis over HTTP: against the server in the process, and against genuine ones.

mod api;
mod faults;
mod support;
mod ways;

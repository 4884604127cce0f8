//! Integration tests: the crate as its users see it.
#![allow(unreachable_pub, reason = "the modules of a test binary are its own")]

mod announcements;
mod conformance;
mod malformed;
mod support;
mod vectors;

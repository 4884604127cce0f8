//! Integration tests: one binary, one module per subject.
#![allow(missing_docs, unreachable_pub, reason = "the modules of a test binary are its own")]

mod class;
mod home;
mod network;
mod simulation;

//! The engine from outside: its answers to every frame in every state, under floods, and to random clients.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod answers;
mod any;
mod floods;
mod h2spec;
mod honest;
mod memory;
mod model;
mod settings;
mod states;
mod support;

//! Scripts in Lua 5.1.

pub mod lib;

//! The load generator against servers that the tests make themselves, and against genuine ones.

mod faults;
mod target;
mod truth;

//! The SKSTACK driver and its clients against a module and a meter that are acted out.

mod client;
mod driver;
mod module;

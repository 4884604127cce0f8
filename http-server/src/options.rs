//! What [`serve`](crate::serve) is told.

use server_runtime::Listen;

/// How to serve. Take [`Options::listening`] or the [`Default`] and set what differs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Places to listen, workers, TLS, shutdown, metrics.
    pub runtime: server_runtime::Options,
}

impl Options {
    /// The defaults, listening at one place.
    pub fn listening(place: Listen) -> Self {
        let runtime = server_runtime::Options { listen: vec![place], ..server_runtime::Options::default() };
        Self { runtime }
    }
}

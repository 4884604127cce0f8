//! The operations of a mix.

use serde::{Deserialize, Serialize};

use super::histogram::Latencies;

/// One operation of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Its name: `GET`, `/json`, `SayHello`.
    pub name: String,
    /// Right answers, from the intended time of each request.
    pub latencies: Latencies,
}

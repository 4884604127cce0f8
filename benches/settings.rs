//! How long a microbenchmark measures.

use std::time::Duration;

use criterion::Criterion;

/// Short runs with many samples: compared programs stand side by side in one group, on one machine, within seconds.
pub(crate) fn settings() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(30)
        .configure_from_args()
}

//! Log lines (features `log` and `tracing`). Without either nothing is computed, let alone written.

/// Writes a line at a level (`error`, `warn`, `info`, `debug`) to the log crate, to tracing, or to both.
macro_rules! report {
    ($level:ident, $($argument:tt)+) => {{
        #[cfg(feature = "log")]
        ::log::$level!(target: "echonet_lite", $($argument)+);
        #[cfg(feature = "tracing")]
        ::tracing::$level!(target: "echonet_lite", $($argument)+);
        #[cfg(not(any(feature = "log", feature = "tracing")))]
        if false {
            let _ = ::core::format_args!($($argument)+);
        }
    }};
}
pub(super) use report;

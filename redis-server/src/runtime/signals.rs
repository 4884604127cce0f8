//! SIGTERM and SIGINT.

use std::io;
use std::sync::Arc;

use server_runtime::{Handle, Running};

use crate::config::settings;
use crate::exec::instance::Instance;
use crate::exec::snapshot::{Leave, SaveAtEnd, prepare_shutdown};

/// What `shutdown-on-sigint` and `shutdown-on-sigterm` can say.
const SAVE: i64 = 1;
const NO_SAVE: i64 = 2;
const FORCE: i64 = 8;

/// Has the server end on SIGTERM and SIGINT, with a snapshot where the configuration wants one: it goes on where that cannot
/// be written. A second signal ends it at once, without one.
///
/// # Errors
/// When the handlers or their thread cannot be set up.
pub fn shutdown_on_signals(running: &Running, instance: &Arc<Instance>) -> io::Result<()> {
    let instance = Arc::clone(instance);
    server_runtime::shutdown_on_signals_if(running, move |signal, handle| end(&instance, signal, handle))
}

/// Whether the server ends now.
fn end(instance: &Arc<Instance>, signal: &str, handle: &Handle) -> bool {
    tracing::info!("Received {signal} scheduling shutdown...");
    let setting = if signal == "SIGINT" { settings::SHUTDOWN_ON_SIGINT } else { settings::SHUTDOWN_ON_SIGTERM };
    let words = instance.config.int(setting);
    let save = match () {
        () if words & SAVE != 0 => SaveAtEnd::Always,
        () if words & NO_SAVE != 0 => SaveAtEnd::Never,
        () => SaveAtEnd::Configured,
    };
    match prepare_shutdown(instance, save, words & FORCE != 0) {
        Ok(Leave::Saved) => handle.abort(),
        Ok(Leave::Unsaved) => handle.trigger(),
        Err(_) => {
            tracing::warn!("Errors trying to shut down the server. Check the logs for more information.");
            return false;
        }
    }
    true
}

//! SIGTERM and SIGINT, and SIGHUP.

use std::sync::Arc;

use server_runtime::{Error, Handle, Signals};

use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::snapshot::{self, Leave, SaveAtEnd, Shutdown, prepare_shutdown};

/// The values of `shutdown-on-sigint` and `shutdown-on-sigterm`.
const SAVE: i64 = 1;
const NO_SAVE: i64 = 2;
const NOW: i64 = 4;
const FORCE: i64 = 8;

/// Has the server end on SIGTERM and SIGINT, with a snapshot where the configuration wants one: it goes on where that cannot
/// be written. A second signal ends it at once, without one. SIGHUP reloads, where the process is the server's own.
pub(super) fn obey(signals: Signals, instance: &Arc<Instance>, handle: &Handle) {
    let (ended, insisted, reloaded) = (Arc::clone(instance), Arc::clone(instance), Arc::clone(instance));
    let signals = match instance.process() {
        Some(_) => signals.with_reload(move |handle| reload(&reloaded, handle)),
        None => signals,
    };
    signals.shut_down(
        handle,
        move |signal, handle| end(&ended, signal, handle),
        move |signal| insist(&insisted, signal),
    );
}

/// Reads the certificates again, if there are any, and tells systemd (`Type=notify-reload`).
fn reload(instance: &Instance, handle: &Handle) {
    if let Some(supervisor) = instance.supervisor() {
        supervisor.reloading();
    }
    match handle.reload_tls() {
        Ok(()) => tracing::info!("SIGHUP: certificates reloaded"),
        Err(Error::TlsWithoutCertificate) => tracing::info!("SIGHUP: there is nothing to reload"),
        Err(error) => {
            tracing::error!("SIGHUP: the certificate in use stays, because the new one does not load: {error}");
        }
    }
    if let Some(supervisor) = instance.supervisor() {
        supervisor.ready(READY);
    }
}

/// The status that systemd shows of a server that serves.
pub const READY: &str = "Ready to accept connections";

/// A signal while the server is about to end: an operator that presses Ctrl-C twice does not want to wait for the
/// snapshot.
fn insist(instance: &Instance, signal: &str) {
    if signal == "SIGINT" {
        tracing::warn!("You insist... exiting now.");
        snapshot::forget_temporary(instance);
        std::process::exit(1);
    }
}

/// Whether the server ends now.
fn end(instance: &Arc<Instance>, signal: &str, handle: &Handle) -> bool {
    tracing::info!("Received {signal} scheduling shutdown...");
    if !instance.ending.wait() {
        return false;
    }
    let setting = if signal == "SIGINT" { settings::SHUTDOWN_ON_SIGINT } else { settings::SHUTDOWN_ON_SIGTERM };
    let words = instance.config.int(setting);
    let save = match () {
        () if words & SAVE != 0 => SaveAtEnd::Always,
        () if words & NO_SAVE != 0 => SaveAtEnd::Never,
        () => SaveAtEnd::Configured,
    };
    match prepare_shutdown(instance, Shutdown { save, force: words & FORCE != 0, now: words & NOW != 0 }) {
        Ok(Leave::Saved) => handle.abort(),
        Ok(Leave::Unsaved) => handle.trigger(),
        Err(_) => {
            tracing::warn!("Errors trying to shut down the server. Check the logs for more information.");
            return false;
        }
    }
    true
}

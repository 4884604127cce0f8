//! The consequences of a panic.
//!
//! A value that a command has half changed must be neither served nor kept. So a panic ends the **process**, before any lock is
//! released, where data could be changed: under exclusive locks of the keyspace, or alone with the data (a script, a
//! transaction with one). Elsewhere (parsing, commands that read) it ends the **connection**; its client is told
//! nothing, the log says why. The server's own tasks are started again ([`supervise`](crate::runtime)); its threads are in [`threads`](crate::threads).
//!
//! Commands pay nothing for it: [`Ctx`] and the keyspace's guards look for a panic when they are dropped, and what is to be
//! said of it is noted while the stack unwinds.

use std::mem;

use crate::clients::client::ClientShared;
use crate::command::Row;
use crate::exec::core::{Ctx, Worker};
use crate::exec::run::client_list;
use crate::journal;
use crate::keyspace::View;

/// Dropped by a panic, it notes the command that it came from.
pub(crate) struct Blame<'a> {
    worker: &'a Worker,
    row: &'static Row,
}

impl<'a> Blame<'a> {
    /// The command is about to run.
    #[inline]
    pub(crate) fn new(worker: &'a Worker, row: &'static Row) -> Self {
        Self { worker, row }
    }

    /// It has not panicked.
    #[inline]
    pub(crate) fn lift(self) {
        mem::forget(self);
    }
}

impl Drop for Blame<'_> {
    fn drop(&mut self) {
        // Of a command that ran others, the innermost.
        self.worker.panicked.set(self.worker.panicked.get().or(Some(self.row)));
    }
}

impl Drop for Ctx<'_> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            leave_call(self);
            journal::forget();
        }
    }
}

/// The command that has panicked, or the one that the client has sent last.
pub(crate) fn command(worker: &Worker, client: &ClientShared) -> String {
    worker.panicked.take().map_or_else(|| client_list::last_command(&worker.instance, client), Row::name)
}

/// A call is left by a panic, its locks still held.
#[cold]
pub(crate) fn leave_call(cx: &Ctx<'_>) {
    if cx.worker.is_alone() || std::iter::once(&cx.db).chain(&cx.others).any(View::is_exclusive) {
        end_process(cx.worker, &cx.client.shared);
    }
}

/// Ends the process; the log has the panic's own message in the line before.
#[cold]
pub(crate) fn end_process(worker: &Worker, client: &ClientShared) -> ! {
    let (id, addr, command) = (client.id, &client.addr, command(worker, client));
    tracing::error!(id, addr, command, "a command panicked while it could change data: the process ends");
    std::process::abort()
}

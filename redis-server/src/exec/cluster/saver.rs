//! The thread that writes the file of a node's state: neither the bus nor a client that asks the machine waits for a disk.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::threads::{self, OnPanic};

use super::file::NodesFile;

/// The text to be written, and the written one. Texts have numbers, from 1 on.
#[derive(Debug, Default)]
pub(super) struct Saver {
    state: Mutex<State>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    /// The newest text, if it is not being written yet, and whether it must be on disk. It stands for all in front of it.
    next: Option<(String, bool)>,
    asked: u64,
    /// The last text that must be on disk before what was asked for behind it is done.
    vital: u64,
    written: u64,
    is_over: bool,
}

impl Saver {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the thread write from now on. `wrote` is called behind each write.
    ///
    /// # Errors
    /// There is no thread.
    pub(super) fn start(self: &Arc<Self>, file: NodesFile, wrote: impl Fn() + Send + 'static) -> Result<(), String> {
        let saver = Arc::clone(self);
        let run = move || saver.run(file, wrote);
        // A node that cannot write its votes must not vote.
        let thread = threads::spawn("cluster-file", OnPanic::EndProcess, run);
        let thread =
            thread.map_err(|error| format!("there is no thread that writes the cluster config file: {error}"))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    fn run(&self, mut file: NodesFile, wrote: impl Fn()) {
        while let Some((text, sync, number)) = self.next() {
            threads::panic_point();
            if let Err(error) = file.replace(&text, sync) {
                // A vote that is not on disk could be given twice.
                tracing::error!("Fatal: can't update cluster config file: {error}");
                std::process::exit(1);
            }
            self.state().written = number;
            self.changed.notify_all();
            wrote();
        }
    }

    /// The next text to write, with its number; `None` when it is over.
    fn next(&self) -> Option<(String, bool, u64)> {
        let idle = |state: &mut State| state.next.is_none() && !state.is_over;
        let mut state = self.changed.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
        let number = state.asked;
        state.next.take().map(|(text, sync)| (text, sync, number))
    }

    /// Asks for a text to be written, `sync` if it must be on disk.
    pub(super) fn ask(&self, text: String, sync: bool) {
        let mut state = self.state();
        let must_be_on_disk = sync || state.next.as_ref().is_some_and(|(_, sync)| *sync);
        state.next = Some((text, must_be_on_disk));
        state.asked += 1;
        if sync {
            state.vital = state.asked;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// How many texts were asked for.
    pub(super) fn asked(&self) -> u64 {
        self.state().asked
    }

    /// The text that must be on disk before anything else is done that is asked for now.
    pub(super) fn vital(&self) -> u64 {
        self.state().vital
    }

    /// Whether this text is written, or a newer one.
    pub(super) fn has_written(&self, number: u64) -> bool {
        self.state().written >= number
    }

    /// Waits until all is written that was asked for so far.
    pub(super) fn wait(&self) {
        let state = self.state();
        let asked = state.asked;
        let waits = |state: &mut State| state.written < asked && !state.is_over;
        drop(self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes what is left, and gives the file up.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A write that fails has ended the process.
        let _ = thread.map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use super::*;

    /// The write of a text takes as long as the test likes. Others neither wait for it nor are taken for written.
    #[test]
    fn a_hanging_write_does_not_block_save_requests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes.conf");
        let (file, _) = NodesFile::open(&path).unwrap();
        let saver = Arc::<Saver>::default();
        let (wrote, writes) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let hangs = move || {
            wrote.send(()).unwrap();
            // Ended when the test is.
            let _ = goes_on.recv();
        };
        saver.start(file, hangs).unwrap();
        saver.ask("one\n".to_owned(), true);
        writes.recv().unwrap();
        // The thread hangs.
        saver.ask("two\n".to_owned(), true);
        let vital = saver.vital();
        saver.ask("three\n".to_owned(), false);
        assert_eq!((vital, saver.vital()), (2, 2), "what is asked for behind it waits for the second");
        assert!(saver.has_written(1) && !saver.has_written(vital));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        go_on.send(()).unwrap();
        saver.wait();
        assert!(saver.has_written(3), "one write is all");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        saver.ask("last\n".to_owned(), false);
        drop(go_on);
        saver.end();
        assert_eq!(fs::read_to_string(&path).unwrap(), "last\n");
        assert_eq!(NodesFile::open(&path).unwrap().1, "last\n", "it is nobody's");
    }
}

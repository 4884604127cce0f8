//! The changes of this thread's window so far.

use std::cell::RefCell;

use crate::protocol::encode_command;

/// Bytes that an empty draft keeps.
const KEPT: usize = 64 * 1024;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// Units that are complete, and the one of the call under way.
#[derive(Debug, Default)]
pub(super) struct Draft {
    bytes: Vec<u8>,
    /// Where the last unit begins, and its commands.
    unit: usize,
    commands: usize,
    /// Databases of the first and the last command.
    first_db: usize,
    db: usize,
    /// Calls under way: those of a transaction or a script run inside of another one.
    depth: usize,
    /// Whether the innermost call has said by itself what it has changed.
    is_replaced: bool,
    /// Keys that it has met after their time.
    met: Vec<Met>,
}

/// A key whose time is over, and which is still there.
#[derive(Debug)]
struct Met {
    db: usize,
    key: Vec<u8>,
    unlink: bool,
}

thread_local! {
    static DRAFT: RefCell<Draft> = RefCell::default();
}

/// Calls `work` with the draft of this thread.
pub(super) fn with<R>(work: impl FnOnce(&mut Draft) -> R) -> R {
    DRAFT.with_borrow_mut(work)
}

/// A call begins. All changes until its end form one unit with it.
pub(crate) fn begin_call() {
    with(Draft::begin);
}

/// The innermost call ends. `words` are its own, to be said if it has changed something and has not said it otherwise.
pub(crate) fn end_call<'w>(db: usize, words: Option<impl ExactSizeIterator<Item = &'w [u8]>>) {
    with(|draft| {
        if let Some(words) = words
            && !draft.is_replaced
        {
            draft.push(db, words);
        }
        draft.is_replaced = false;
        draft.met.clear();
        draft.end();
    });
}

/// The innermost call's own words are not said.
pub(crate) fn replace() {
    with(|draft| draft.is_replaced = true);
}

/// Says a command, as part of the call under way.
pub(crate) fn command<'w>(db: usize, words: impl ExactSizeIterator<Item = &'w [u8]>) {
    with(|draft| draft.push(db, words));
}

/// A panic has ended the call under way, which has changed nothing.
#[cold]
pub(crate) fn forget() {
    with(|draft| *draft = Draft::default());
}

impl Draft {
    /// Whether there is something and no call is under way.
    pub(super) fn is_ready(&self) -> bool {
        self.depth == 0 && !self.bytes.is_empty()
    }

    /// Whether there is nothing, and no call under way.
    pub(super) fn is_idle(&self) -> bool {
        self.depth == 0 && self.bytes.is_empty()
    }

    /// Databases of the first and the last command.
    pub(super) fn databases(&self) -> (usize, usize) {
        (self.first_db, self.db)
    }

    pub(super) fn begin(&mut self) {
        self.depth += 1;
    }

    /// Ends a call; with the outermost one ends its unit.
    pub(super) fn end(&mut self) {
        self.depth -= 1;
        if self.depth > 0 {
            return;
        }
        if self.commands > 1 {
            self.bytes.splice(self.unit..self.unit, MULTI.iter().copied());
            self.bytes.extend_from_slice(EXEC);
        }
        (self.unit, self.commands) = (self.bytes.len(), 0);
    }

    /// Remembers a key that the call under way takes for absent.
    #[cold]
    pub(super) fn meet(&mut self, db: usize, key: &[u8], unlink: bool) {
        if self.depth > 0 {
            self.met.push(Met { db, key: key.into(), unlink });
        }
    }

    /// Says that a key was removed.
    #[cold]
    pub(super) fn delete(&mut self, db: usize, key: &[u8], unlink: bool) {
        self.met.retain(|met| met.db != db || met.key != key);
        self.push_deletion(db, key, unlink);
    }

    fn push_deletion(&mut self, db: usize, key: &[u8], unlink: bool) {
        let name: &[u8] = if unlink { b"UNLINK" } else { b"DEL" };
        self.push(db, [name, key].into_iter());
    }

    pub(super) fn push<'w>(&mut self, db: usize, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        if !self.met.is_empty() {
            for Met { db, key, unlink } in std::mem::take(&mut self.met) {
                self.push_deletion(db, &key, unlink);
            }
        }
        if self.bytes.is_empty() {
            self.first_db = db;
        } else if self.db != db {
            select(&mut self.bytes, db);
        }
        self.db = db;
        self.commands += 1;
        encode_command(&mut self.bytes, words);
    }

    /// Moves everything to the end of `stream`.
    pub(super) fn pour(&mut self, stream: &mut Vec<u8>) {
        if stream.is_empty() && self.bytes.len() > KEPT {
            // Large values are not copied while others wait.
            std::mem::swap(stream, &mut self.bytes);
        } else {
            stream.extend_from_slice(&self.bytes);
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.unit = 0;
    }
}

/// Appends a `SELECT`.
pub(super) fn select(bytes: &mut Vec<u8>, db: usize) {
    encode_command(bytes, [&b"SELECT"[..], itoa::Buffer::new().format(db).as_bytes()].into_iter());
}

//! The engine of a connection, as the connection's task and those of its requests share it: all are on one thread.

use std::cell::{Cell, RefCell, RefMut};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::pipe::{Pipe, Releases};
use crate::{Connection, Reason, StreamId};

/// State that a connection's task shares with its requests' tasks.
///
/// The connection's task does all its work in turns; output that other tasks queue in between wakes it.
#[derive(Debug)]
pub struct Shared {
    engine: RefCell<Connection>,
    /// By the streams' slots.
    streams: RefCell<Vec<Entry>>,
    releases: Arc<Releases>,
    /// The connection's task.
    waker: RefCell<Option<Waker>>,
    /// Whether that task is running: it writes what there is when it is done.
    is_turning: Cell<bool>,
}

#[derive(Debug, Default)]
struct Entry {
    stream: Option<StreamId>,
    /// The request's task, which waits for room or for its end.
    waker: Option<Waker>,
    pipe: Option<Arc<Pipe>>,
}

impl Shared {
    /// A connection for several tasks. A quarter of a stream's window that handlers have read is told to the client: the other
    /// half that the engine announces at a time comes on top, so that no client waits for it.
    pub fn new(engine: Connection) -> Self {
        let due = engine.config.stream_window as usize / 4;
        Self {
            engine: RefCell::new(engine),
            streams: RefCell::default(),
            releases: Arc::new(Releases::new(due)),
            waker: RefCell::new(None),
            is_turning: Cell::new(false),
        }
    }

    /// The engine, for as long as nothing else of this is called.
    ///
    /// # Panics
    /// When somebody has it.
    pub fn engine(&self) -> RefMut<'_, Connection> {
        self.engine.borrow_mut()
    }

    /// The same, to send something: the connection's task writes it.
    ///
    /// # Panics
    /// When somebody has it.
    pub fn sending(&self) -> RefMut<'_, Connection> {
        if !self.is_turning.get()
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
        self.engine()
    }

    /// One turn of the connection's task, which is `run`. Its output goes through `buffer`, which all connections of a
    /// thread share, unless requests have begun one of the connection's own.
    pub(super) fn turn<T>(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        run: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        self.begin_turn(cx);
        let is_lent = self.engine().output().is_empty();
        if is_lent {
            self.engine().swap_buffer(buffer);
        }
        let result = run(cx);
        let mut engine = self.engine();
        if is_lent {
            engine.swap_buffer(buffer);
        } else if engine.open_streams() == 0 {
            // An idle connection needs none.
            engine.swap_buffer(&mut Vec::new());
        }
        self.is_turning.set(false);
        result
    }

    fn begin_turn(&self, cx: &Context<'_>) {
        self.is_turning.set(true);
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
            self.releases.watch(cx.waker());
        }
    }

    pub(super) fn releases(&self) -> &Arc<Releases> {
        &self.releases
    }

    /// The body of a stream comes through this pipe, as long as the stream lives.
    pub(super) fn attach(&self, stream: StreamId, pipe: Arc<Pipe>) {
        if self.engine().is_alive(stream) {
            self.with_entry(stream, |entry| entry.pipe = Some(pipe));
        } else {
            pipe.detach();
        }
    }

    /// The entry of a stream that lives. One that has ended may have had its slot: the bytes taken of its body are the
    /// engine's already, and must not stay in the account.
    fn with_entry(&self, stream: StreamId, change: impl FnOnce(&mut Entry)) {
        let mut streams = self.streams.borrow_mut();
        if streams.len() <= stream.slot() {
            streams.resize_with(stream.slot() + 1, Entry::default);
        }
        let entry = &mut streams[stream.slot()];
        let ended = if entry.stream == Some(stream) {
            None
        } else {
            let replaced = std::mem::replace(entry, Entry { stream: Some(stream), ..Entry::default() });
            replaced.pipe.map(|pipe| (pipe, replaced.waker))
        };
        change(entry);
        drop(streams);
        if let Some((pipe, waker)) = ended {
            pipe.detach();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn pipe(&self, stream: StreamId) -> Option<Arc<Pipe>> {
        let streams = self.streams.borrow();
        streams.get(stream.slot()).filter(|entry| entry.stream == Some(stream)).and_then(|entry| entry.pipe.clone())
    }

    /// Something has happened to a stream: its task looks again.
    pub(super) fn notify(&self, stream: StreamId) {
        let mut streams = self.streams.borrow_mut();
        let entry = streams.get_mut(stream.slot()).filter(|entry| entry.stream == Some(stream));
        let waker = entry.and_then(|entry| entry.waker.take());
        drop(streams);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Has those look again for which there is room: in windows, by what was read, or in the output.
    pub(super) fn notify_writable(&self) {
        loop {
            let Some(stream) = self.engine().next_writable() else { return };
            self.notify(stream);
        }
    }

    /// Tells the client what handlers have read, if it is enough, and to go on where they ask for a body that it holds back.
    pub(super) fn release(&self) {
        if !self.releases.are_due() {
            return;
        }
        let mut engine = self.engine();
        for entry in &*self.streams.borrow() {
            if let (Some(stream), Some(pipe)) = (entry.stream, &entry.pipe) {
                engine.release(stream, pipe.take_released());
                if pipe.take_asked() {
                    // An answer that has begun says as much.
                    let _ = engine.send_head(stream, 100, std::iter::empty(), false);
                }
            }
        }
    }

    /// The connection is gone, and with it all its requests. So many of their tasks at most hear of it now; whether those are all.
    pub(super) fn end(&self, most: usize) -> bool {
        self.engine().close(Reason::NO_ERROR);
        let mut streams = self.streams.borrow_mut();
        let rest = streams.len().saturating_sub(most);
        let ended = streams.split_off(rest);
        drop(streams);
        for entry in ended {
            if let Some(pipe) = &entry.pipe {
                pipe.detach();
            }
            entry.waker.into_iter().for_each(Waker::wake);
        }
        rest == 0
    }

    /// Ready when the answer is wanted no more. Until then, the task that polls is woken when there is room for more of
    /// it.
    pub fn poll_gone(&self, stream: StreamId, cx: &Context<'_>) -> Poll<()> {
        if !self.engine().is_alive(stream) {
            return Poll::Ready(());
        }
        self.with_entry(stream, |entry| match &mut entry.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => entry.waker = Some(cx.waker().clone()),
        });
        Poll::Pending
    }

    /// A request's task has ended. A client need not send the rest of a request that is answered (RFC 9113 section
    /// 8.1).
    pub fn leave(&self, stream: StreamId, is_answered: bool) {
        if self.engine().is_alive(stream) {
            self.sending().reset(stream, if is_answered { Reason::NO_ERROR } else { Reason::CANCEL });
        }
        let mut streams = self.streams.borrow_mut();
        if let Some(entry) = streams.get_mut(stream.slot()).filter(|entry| entry.stream == Some(stream)) {
            let pipe = std::mem::take(entry).pipe;
            drop(streams);
            if let Some(pipe) = pipe {
                pipe.detach();
            }
        }
    }
}

#[cfg(any(test, feature = "model"))]
impl Shared {
    /// Accounts for every byte of the windows, between turns.
    ///
    /// # Panics
    /// If one is lost, or the connection was not woken for what it owes.
    pub(super) fn check(&self) {
        let (engine, streams) = (self.engine(), self.streams.borrow());
        let (mut unreleased, mut untold) = (0, 0);
        for (id, stream) in engine.streams.iter() {
            unreleased += i64::from(stream.unreleased);
            if stream.remote_open {
                let window = stream.receive_window + i64::from(stream.unreleased) + i64::from(stream.unannounced);
                assert_eq!(window, i64::from(engine.config.stream_window), "{id:?}");
            }
            let entry = streams.get(id.slot()).filter(|entry| entry.stream == Some(id));
            let pipe = entry.and_then(|entry| entry.pipe.as_ref());
            let (held, released) = pipe.map_or((0, 0), |pipe| pipe.held_and_released());
            assert_eq!(stream.unreleased as usize, held + released, "{id:?}");
            untold += released;
        }
        let window = engine.receive_window + unreleased + i64::from(engine.unannounced);
        assert_eq!(window, i64::from(engine.config.connection_window));
        assert_eq!(self.releases.check(), untold);
    }
}

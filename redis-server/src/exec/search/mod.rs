//! The server's search indexes: their thread, their place in files, and the end of all with the data.
//!
//! No other module of `exec` knows more of indexes than these functions.

#[cfg(feature = "search")]
pub(crate) mod definitions;
#[cfg(feature = "search")]
pub(crate) mod shards;

#[cfg(feature = "search")]
pub(crate) use with::{Kept, clear, flush, note, restore};
#[cfg(feature = "search")]
pub use with::{ask_for_documents, catch_up, read_document, start};
#[cfg(not(feature = "search"))]
pub(crate) use without::{Kept, clear, flush, note, restore};

/// The name of a note in a snapshot that has a command which makes an index.
pub(crate) const NOTE: &str = "search-command";

#[cfg(feature = "search")]
mod with {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use crate::command::OwnedArgs;
    use crate::exec::core::clock::now_ms;
    use crate::exec::core::priority;
    use crate::exec::core::{Ctx, Instance};
    use crate::keyspace::{Access, Entry};
    use crate::protocol::error::shown;
    use crate::protocol::{Parser, RequestLimits, encode_command};
    use crate::search::{self, Progress};
    use crate::threads;

    /// How long a query sleeps between two looks at what slow calls have borrowed.
    const NAP: Duration = Duration::from_micros(200);
    /// How long the thread sleeps between two slices, and between two looks while there is less and less to do.
    const PAUSE: Duration = Duration::from_micros(50);
    const FIRST_REST: Duration = Duration::from_millis(2);
    const LAST_REST: Duration = Duration::from_millis(128);

    /// Brings all indexes to the state of the keys, at `now` in milliseconds of Unix time, unless it `is_over` before. The caller holds no lock of
    /// a shard.
    pub fn catch_up(instance: &Instance, now: u64, is_over: &dyn Fn() -> bool) {
        while instance.search.catch_up(instance.database(0), now, is_over) == Progress::Waits && !is_over() {
            thread::sleep(NAP);
        }
    }

    /// Starts the thread that feeds the indexes, unless it runs.
    pub fn start(instance: &Arc<Instance>) {
        if !instance.search.begin_feeding() {
            return;
        }
        let shared = Arc::downgrade(instance);
        // Indexes that a panic has left half changed are filled anew; what else it leaves is sound.
        let mut is_lowered = false;
        let work = move || {
            if !std::mem::replace(&mut is_lowered, true) {
                priority::lower(priority::SEARCH);
            }
            let mut rest = FIRST_REST;
            while let Some(instance) = shared.upgrade() {
                if !instance.search.has_indexes() {
                    instance.search.end_feeding();
                    // An index may have come in between.
                    if !instance.search.has_indexes() || !instance.search.begin_feeding() {
                        return;
                    }
                }
                let has_changes = instance.database(0).has_changes();
                let has_more = instance.search.work(instance.database(0), now_ms());
                drop(instance);
                rest = if has_more || has_changes { FIRST_REST } else { LAST_REST.min(rest * 2) };
                thread::sleep(if has_more { PAUSE } else { rest });
            }
        };
        if let Err(error) = threads::spawn_again("search", work) {
            instance.search.end_feeding();
            tracing::warn!("no thread for search indexes: queries do its work: {error}");
        }
    }

    /// Calls `read` with a document, if it is there. One that a slow call has borrowed to change it is waited for until `is_over`. The caller
    /// holds no lock of a shard.
    pub fn read_document<R>(
        instance: &Instance,
        (id, now): (&[u8], u64),
        is_over: &dyn Fn() -> bool,
        read: impl FnOnce(&Entry) -> R,
    ) -> Option<R> {
        let database = instance.database(0);
        let key = database.key(id);
        loop {
            let mut view = database.lock([(key.shard(), Access::Read)].into_iter(), now);
            view.keep_expired();
            if !database.is_away(&key) {
                return view.peek(&key).map(read);
            }
            drop(view);
            if is_over() {
                return None;
            }
            thread::sleep(NAP);
        }
    }

    /// Asks the processor for what reading these documents will read. The caller holds no lock of a shard.
    pub fn ask_for_documents(instance: &Instance, ids: &[&[u8]], now: u64) {
        let database = instance.database(0);
        let mut keys: Vec<_> = ids.iter().map(|id| (database.key(id), Access::Read)).collect();
        database.lock_keys(&mut keys, now).prefetch(&mut keys);
    }

    /// Database 0 was emptied: indexes go with their documents, and what is beside them, as in RediSearch.
    pub(crate) fn clear(instance: &Instance) {
        instance.search.clear(instance.database(0));
    }

    /// Database 0 is emptied by a client. In a cluster, the definitions stay: they are those of all nodes.
    pub(crate) fn flush(cx: &mut Ctx<'_>) {
        let kept = cx.instance.search.kept();
        clear(cx.instance);
        if cx.instance.cluster.is_enabled() {
            kept.definitions(|words| cx.instance.search.expect(words.iter().map(|word| Box::from(*word)).collect()));
            restore(cx);
            cx.instance.search.set_version(kept.version());
        }
    }

    /// The indexes of this moment, and what is kept beside them.
    pub(crate) struct Kept(search::Kept);

    impl Kept {
        /// Takes them. Large parts are shared, so this is quick.
        pub(crate) fn of(instance: &Instance) -> Self {
            Self(instance.search.kept())
        }

        /// Calls `take` with each command that makes them anew, encoded.
        pub(crate) fn commands(&self, mut take: impl FnMut(&[u8])) {
            let mut bytes = Vec::new();
            self.0.commands(|words| {
                bytes.clear();
                encode_command(&mut bytes, words.iter().copied());
                take(&bytes);
            });
        }
    }

    /// A file has such a command.
    pub(crate) fn note(instance: &Instance, text: &[u8]) {
        let mut spans = Vec::new();
        let parsed = Parser::default().parse(text, 0, &mut spans, &RequestLimits::OF_SERVERS);
        if !matches!(parsed, Ok(Some(_))) {
            tracing::warn!("a command for search indexes in the file is damaged, and left out");
            return;
        }
        let word = |span: &crate::protocol::Span| text[span.start as usize..][..span.len as usize].into();
        instance.search.expect(spans.iter().map(word).collect());
    }

    /// Runs the commands of a file whose data is in its place.
    pub(crate) fn restore(cx: &mut Ctx<'_>) {
        let expected = cx.instance.search.take_expected();
        let db = std::mem::replace(&mut cx.client.db, 0);
        cx.instance.search.set_restoring(true);
        for words in &expected {
            let args: OwnedArgs = words.iter().map(|word| &**word).collect();
            let is_ours = words[0].get(..3).is_some_and(|head| head.eq_ignore_ascii_case(b"FT."));
            let row = cx.instance.registry.lookup(&words[0]).filter(|_| is_ours);
            let Some(row) = row.filter(|row| row.command.accepts(words.len())) else { continue };
            let mark = cx.reply.mark();
            // Of a server that has them already nothing changes.
            if let Err(error) = (cx.instance.handlers[usize::from(row.id)])(cx, args.args()) {
                tracing::info!("{} of the file: {error}", shown(&words[0]));
            }
            cx.reply.truncate(mark);
        }
        cx.instance.search.set_restoring(false);
        cx.client.db = db;
        if !expected.is_empty() {
            cx.forget_changes();
            let search = &cx.instance.search;
            search.indexes().iter().filter(|index| !index.progress(0).0).for_each(|index| search.scan(index, false));
        }
    }
}

/// A server without the feature.
#[cfg(not(feature = "search"))]
mod without {
    use crate::exec::core::{Ctx, Instance};

    pub(crate) fn clear(_: &Instance) {}

    pub(crate) fn flush(_: &mut Ctx<'_>) {}

    pub(crate) struct Kept;

    impl Kept {
        pub(crate) fn of(_: &Instance) -> Self {
            Self
        }

        pub(crate) fn commands(&self, _: impl FnMut(&[u8])) {}
    }

    pub(crate) fn note(_: &Instance, _: &[u8]) {
        tracing::warn!("search indexes in the file are left out: this server has none");
    }

    pub(crate) fn restore(_: &mut Ctx<'_>) {}
}

#[cfg(all(test, feature = "search"))]
mod tests;

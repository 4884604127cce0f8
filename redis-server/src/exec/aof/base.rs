//! The base of the append-only file: all data at the moment of the cut.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crate::config::settings;
use crate::exec::clock::now_ms;
use crate::exec::exclusive::Alone;
use crate::exec::instance::Instance;
use crate::exec::search;
use crate::exec::snapshot::{self, Job, Occupied, Purpose, Target};
use crate::exec::still::stand_still;
use crate::persistence::SnapshotFile;
use crate::persistence::aof::{Layout, PlainWriter};
use crate::persistence::disk::Disk;

/// Writes the base of a server without data.
pub(super) fn write_empty(is_rdb: bool, file: &mut SnapshotFile) -> io::Result<()> {
    if is_rdb { snapshot::write_empty(file) } else { Ok(()) }
}

/// Begins to write a base to [`Layout::new_base`] and to force it to disk, on a thread of its own. `cut` is called once, alone
/// with the data, whose state of that moment the base has; `ended` when it is whole, or will never be.
///
/// # Errors
/// A snapshot is in the making, or there is no thread: it is to be tried again later.
pub(super) fn begin(
    instance: &Arc<Instance>,
    disk: &Arc<dyn Disk>,
    layout: &Layout,
    is_rdb: bool,
    cut: impl FnOnce(&Instance, &Alone) + Send + 'static,
    ended: impl FnOnce(&Instance, io::Result<()>) + Send + 'static,
) -> Result<(), Occupied> {
    let (disk, path) = (Arc::clone(disk), layout.new_base());
    let incremental = instance.config.is_on(settings::AOF_REWRITE_INCREMENTAL_FSYNC);
    let create = move || SnapshotFile::create(&disk, &path, &path, incremental);
    if is_rdb {
        let create = move |_: &Instance| Ok(Box::new(create()?) as Box<dyn Target>);
        let (create, at_cut, ended) = (Box::new(create), Box::new(cut), Box::new(ended));
        let record = Box::new(|_: &Instance, _: &io::Result<()>| {});
        return snapshot::start(instance, Job { purpose: Purpose::AofBase, create, at_cut, record, ended });
    }
    if let Some(running) = instance.background.running() {
        return Err(Occupied(running.purpose));
    }
    let shared = Arc::clone(instance);
    let work = move || {
        let work = || write_plain(&shared, create, cut);
        // The rewrite has failed then, and may be tried again.
        let written = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(io::Error::other("a panic")));
        ended(&shared, written);
    };
    let spawned = thread::Builder::new().name("aof-base".to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| {
        tracing::warn!("no thread for the base of the append-only file: {error}");
        Occupied(Purpose::AofBase)
    })
}

/// Writes the commands that make the data. No thread changes it meanwhile.
fn write_plain(
    instance: &Arc<Instance>,
    create: impl FnOnce() -> io::Result<SnapshotFile>,
    cut: impl FnOnce(&Instance, &Alone),
) -> io::Result<()> {
    let still = stand_still(instance, || Ok(()))?;
    let views = snapshot::locked(instance);
    let (libraries, indexes) = (snapshot::libraries(instance), search::commands(instance));
    let imports = instance.cluster.imports(instance);
    cut(instance, &still);
    drop(still);
    let mut writer = PlainWriter::new(create()?);
    if instance.config.is_on(settings::AOF_TIMESTAMP_ENABLED) {
        writer.timestamp(now_ms() / 1000);
    }
    libraries.iter().for_each(|code| writer.function(code));
    indexes.iter().for_each(|command| writer.encoded(command));
    for (name, slots) in &imports {
        writer.import(name.as_str(), &slots.ranges());
    }
    for (number, view) in views.iter().enumerate().filter(|(_, view)| !view.is_empty()) {
        writer.database(number);
        view.for_each(|entry| {
            writer.record(entry.key(), entry.value(), entry.expire_at());
            !writer.has_failed()
        });
    }
    writer.finish()?.commit()
}

//! The base of the append-only file: all data at the moment of the cut.

use std::io;
use std::sync::Arc;

use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::gate::Alone;
use crate::exec::snapshot::{self, Format, Job, Occupied, Purpose, Target};
use crate::persistence::SnapshotFile;
use crate::persistence::aof::Layout;
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
    let create =
        move |_: &Instance| Ok(Box::new(SnapshotFile::create(&disk, &path, &path, incremental)?) as Box<dyn Target>);
    let job = Job {
        purpose: Purpose::AofBase,
        format: if is_rdb { Format::Rdb } else { Format::Commands },
        create: Box::new(create),
        at_cut: Box::new(cut),
        record: Box::new(|_, _| {}),
        ended: Box::new(ended),
    };
    snapshot::start(instance, job)
}

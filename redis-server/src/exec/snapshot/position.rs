//! Where the stream of changes was at a snapshot's cut, as the file says.

use std::path::Path;

use crate::exec::replication::Position;
use crate::persistence::disk::Disk;
use crate::persistence::rdb::{File, Item, Limits};

/// The file's position in the stream, if it has all of it. A file that cannot be read has none; its loader reports why.
pub(super) fn position(disk: &dyn Disk, path: &Path, limits: Limits) -> Option<Position> {
    let mut file = File::open(disk, path, limits, false).ok()?;
    let (mut id, mut offset, mut db) = (None, None, 0);
    while let Ok(Some(Some((name, text)))) = file.next(|item| match item {
        Item::Note { name, text } => Some((name.into_owned(), String::from_utf8_lossy(&text).into_owned())),
        Item::Header(_) => Some(Default::default()),
        // Notes stand in front of everything else.
        _ => None,
    }) {
        match name.as_slice() {
            b"repl-id" => id = Some(text).filter(|id| id.len() == 40),
            b"repl-offset" => offset = text.parse().ok(),
            b"repl-stream-db" => db = text.parse().unwrap_or(0),
            _ => {}
        }
    }
    Some(Position { id: id?, offset: offset?, db })
}

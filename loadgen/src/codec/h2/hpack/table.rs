//! The tables of header fields: the static one (RFC 7541, Appendix A) and the one that follows from earlier blocks.

use std::collections::VecDeque;

/// The table size that both sides begin with (RFC 9113, 6.5.2).
pub(crate) const DEFAULT_TABLE_SIZE: usize = 4096;

/// The static table, from index 1 on.
#[rustfmt::skip]
pub(super) static STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

/// The index of the first dynamic entry.
pub(super) const FIRST_DYNAMIC: usize = STATIC.len() + 1;

/// The size of an entry beyond its bytes (RFC 7541, 4.1).
pub(super) const ENTRY_OVERHEAD: usize = 32;

/// The fields of earlier blocks, the newest first.
#[derive(Debug)]
pub(super) struct Dynamic {
    entries: VecDeque<Entry>,
    size: usize,
    most: usize,
}

/// Name and value in one piece of memory.
#[derive(Debug)]
struct Entry {
    bytes: Box<[u8]>,
    name: usize,
}

impl Dynamic {
    pub(super) fn new(most: usize) -> Self {
        Self { entries: VecDeque::new(), size: 0, most }
    }

    /// The field of an index, static or dynamic.
    pub(super) fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        if let Some((name, value)) = STATIC.get(index.checked_sub(1)?) {
            return Some((name.as_bytes(), value.as_bytes()));
        }
        let entry = self.entries.get(index - FIRST_DYNAMIC)?;
        Some(entry.bytes.split_at(entry.name))
    }

    /// Adds a field, for which the oldest ones make room. One that is larger than the table empties it.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        if size > self.most {
            self.entries.clear();
            self.size = 0;
            return;
        }
        self.shrink(self.most - size);
        self.entries.push_front(Entry { bytes: [name, value].concat().into_boxed_slice(), name: name.len() });
        self.size += size;
    }

    /// Sets how large it may become.
    pub(super) fn resize(&mut self, most: usize) {
        self.most = most;
        self.shrink(most);
    }

    fn shrink(&mut self, size: usize) {
        while self.size > size {
            let oldest = self.entries.pop_back().expect("what has a size has entries");
            self.size -= oldest.bytes.len() + ENTRY_OVERHEAD;
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

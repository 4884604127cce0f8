//! Strings that are written in place, and that replies share.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use super::entry::HEAVY_STRING;

/// Replies on their way, of all servers in the process, that hold very large strings.
static HEAVY_REPLIES: AtomicUsize = AtomicUsize::new(0);

/// True if a reply on its way may hold a very large string, which a write then copies.
#[inline]
pub fn has_heavy_replies() -> bool {
    HEAVY_REPLIES.load(Relaxed) != 0
}

/// The bytes of a string that grows or is written in place. Replies on their way share them. A write copies them as long as one does.
#[derive(Debug)]
pub struct Buffer(Arc<Vec<u8>>);

impl Buffer {
    /// These bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// The bytes, to be changed.
    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        Arc::make_mut(&mut self.0)
    }

    /// The bytes for a reply, without a copy.
    pub fn share(&self) -> Bytes {
        InReply::Buffer(Arc::clone(&self.0)).share()
    }

    /// True if the bytes can be changed, and grow to `len`, without a copy of them all.
    pub(super) fn holds(&self, len: usize) -> bool {
        !self.is_shared() && len <= self.0.capacity()
    }

    /// True if a reply shares the bytes.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Clone for Buffer {
    /// A value of its own: a write to one of the two copies nothing.
    fn clone(&self) -> Self {
        Self::new(self.0.to_vec())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A string that a reply shares, counted if it is very large.
pub(super) enum InReply {
    Buffer(Arc<Vec<u8>>),
    Shared(Bytes),
}

impl InReply {
    pub(super) fn share(self) -> Bytes {
        if self.is_heavy() {
            HEAVY_REPLIES.fetch_add(1, Relaxed);
        }
        Bytes::from_owner(self)
    }

    fn is_heavy(&self) -> bool {
        self.as_ref().len() >= HEAVY_STRING
    }
}

impl AsRef<[u8]> for InReply {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Buffer(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Drop for InReply {
    fn drop(&mut self) {
        if self.is_heavy() {
            HEAVY_REPLIES.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_keeps_what_it_shares_and_is_counted_while_it_does() {
        let mut buffer = Buffer::new(vec![1; HEAVY_STRING]);
        let before = HEAVY_REPLIES.load(Relaxed);
        let place = buffer.as_ptr();
        let reply = buffer.share();
        assert_eq!(reply.as_ptr(), place, "it is not copied");
        assert!(buffer.is_shared() && has_heavy_replies());
        buffer.bytes_mut()[0] = 2;
        assert_eq!((buffer[0], reply[0]), (2, 1));
        assert!(!buffer.is_shared(), "the value has its own bytes now");
        drop(reply);
        // Other tests share strings, too.
        assert!(HEAVY_REPLIES.load(Relaxed) <= before + 1);
        let place = buffer.as_ptr();
        buffer.bytes_mut()[0] = 3;
        assert_eq!(buffer.as_ptr(), place, "nothing is copied without a reply");
    }
}

//! The bytes that wait to be written.

/// The bytes that wait to be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    /// Bytes at the beginning that are written.
    written: usize,
}

impl Output {
    #[inline]
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
        assert!(self.written <= self.bytes.len(), "more was written than there was");
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        } else if self.written * 2 > self.bytes.len() {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}

//! Frames on a line of bytes, in both directions. A frame's own counts and lengths say where it ends.

use echonet_lite::node::{Destination, Transmit};
use echonet_lite::wire::{MessageLength, message_length};

/// Bytes for what has arrived. A request for every property of a light has 60; a longer frame is dropped.
const INCOMING: usize = 256;
/// Bytes for what is to be sent: the node wants room for the longest property, 255 bytes, and the frame around it.
const OUTGOING: usize = 320;
/// A sender that pauses this long within a frame has given it up: a character takes 0.1 ms.
const PAUSE_US: u64 = 50_000;

/// Bytes that have arrived.
pub(crate) struct Incoming {
    bytes: [u8; INCOMING],
    length: usize,
    /// When the newest byte came.
    last_us: u64,
}

impl Incoming {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; INCOMING], length: 0, last_us: 0 }
    }

    /// Takes one byte; a byte for which there is no room is lost, and the frame with it.
    pub(crate) fn push(&mut self, now_us: u64, byte: u8) {
        self.last_us = now_us;
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// The first whole frame.
    pub(crate) fn frame(&mut self, now_us: u64) -> Option<&[u8]> {
        let bytes = self.bytes.get(..self.length)?;
        // Format 2 does not say how long it is, so that it never counts as whole here.
        match message_length(bytes) {
            MessageLength::Complete(length) if !is_format_2(bytes) => return bytes.get(..length),
            // Bytes that are no frame hide where the next one begins, except after a pause.
            _ if now_us.saturating_sub(self.last_us) > PAUSE_US => self.length = 0,
            _ => {}
        }
        None
    }

    /// Forgets the first `length` bytes.
    pub(crate) fn consume(&mut self, length: usize) {
        self.bytes.copy_within(length..self.length, 0);
        self.length -= length;
    }
}

fn is_format_2(bytes: &[u8]) -> bool {
    matches!(bytes, [_, 0x82, ..])
}

/// Frames that are to be sent, one behind the other; on this line it does not matter for whom they are.
pub(crate) struct Outgoing {
    bytes: [u8; OUTGOING],
    sent: usize,
    length: usize,
}

impl Outgoing {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; OUTGOING], sent: 0, length: 0 }
    }

    /// The next byte to send.
    pub(crate) fn next(&self) -> Option<u8> {
        self.bytes.get(self.sent..self.length)?.first().copied()
    }

    /// The first byte of it is sent.
    pub(crate) fn advance(&mut self) {
        self.sent += 1;
        if self.sent == self.length {
            (self.sent, self.length) = (0, 0);
        }
    }
}

impl Transmit for Outgoing {
    fn buffer(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.length..).unwrap_or_default()
    }

    fn transmit(&mut self, _: Destination, length: usize) {
        self.length += length;
    }
}

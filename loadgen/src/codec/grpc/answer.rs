//! One call's answer as it comes: messages in pieces of any size, between a head and trailers.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::message::PREFIX;
use crate::codec::h2::{Encoding, Head};

/// The longest message that is looked into.
const MAX_MESSAGE: usize = 64 << 20;

/// Memory of an exchange that is kept for the next one.
const KEPT: usize = 64 << 10;

/// The state of a call until its answer is complete.
#[derive(Debug, Default)]
pub struct Exchange {
    /// Which of a mix's calls it is.
    pub(crate) operation: u32,
    /// The key that its message was filled with.
    pub(crate) key: u64,
    /// Why it is wrong, if that is known already.
    pub(crate) wrong: Option<Box<str>>,
    /// HTTP's status.
    pub(crate) status: u16,
    /// Whether the content is gRPC's.
    pub(crate) is_grpc: bool,
    /// gRPC's status, once it has come.
    pub(crate) grpc_status: Option<u16>,
    /// And its text.
    pub(crate) text: Option<Box<str>>,
    encoding: Encoding,
    /// How many messages are complete.
    pub(crate) messages: u32,
    prefix: [u8; PREFIX],
    prefix_read: u8,
    /// How much of the current message is missing.
    left: u32,
    /// The current message so far, where messages are looked into.
    message: Vec<u8>,
}

impl Exchange {
    /// Begins anew, with the memory of the last one.
    #[inline]
    pub(crate) fn begin(&mut self, operation: u32, key: u64) {
        self.operation = operation;
        self.key = key;
        self.status = 0;
        self.is_grpc = false;
        self.grpc_status = None;
        self.encoding = Encoding::Identity;
        self.messages = 0;
        self.prefix_read = 0;
        self.left = 0;
        if self.wrong.is_some() || self.text.is_some() {
            self.wrong = None;
            self.text = None;
        }
        if self.message.capacity() > 0 {
            self.message.clear();
            self.message.shrink_to(KEPT);
        }
    }

    /// The head; a trailers-only answer has the status in it.
    #[inline]
    pub(crate) fn head(&mut self, head: &Head) {
        self.status = head.status;
        self.is_grpc = head.grpc;
        self.encoding = head.grpc_encoding;
        self.trailers(head);
    }

    #[inline]
    pub(crate) fn trailers(&mut self, head: &Head) {
        if head.grpc_status.is_some() {
            self.grpc_status = head.grpc_status;
            if head.grpc_message.is_some() {
                self.text.clone_from(&head.grpc_message);
            }
        }
    }

    /// Whether a message is cut off.
    pub(crate) fn is_inside(&self) -> bool {
        self.left > 0 || self.prefix_read > 0
    }

    /// Takes messages apart without looking into them.
    #[inline]
    pub(crate) fn count(&mut self, mut data: &[u8]) {
        while self.next(&mut data) {
            let taken = data.len().min(self.left as usize);
            self.left -= taken as u32;
            data = &data[taken..];
            if self.left > 0 {
                return;
            }
            self.prefix_read = 0;
            self.messages += 1;
        }
    }

    /// Takes messages apart and looks into each; what the server compressed is given plain. A message that came in one
    /// piece is not copied.
    pub(crate) fn look(&mut self, mut data: &[u8], mut check: impl FnMut(&mut Self, &[u8])) {
        while self.next(&mut data) {
            if self.message.is_empty() && data.len() >= self.left as usize {
                let (message, rest) = data.split_at(self.left as usize);
                data = rest;
                self.message_complete(message, &mut check);
                continue;
            }
            let taken = data.len().min(self.left as usize);
            if self.message.len() + taken <= MAX_MESSAGE {
                self.message.extend_from_slice(&data[..taken]);
            } else {
                self.say_wrong(|| format!("a message of more than {MAX_MESSAGE} bytes cannot be checked"));
            }
            self.left -= taken as u32;
            data = &data[taken..];
            if self.left > 0 {
                return;
            }
            let message = std::mem::take(&mut self.message);
            self.message_complete(&message, &mut check);
            self.message = message;
            self.message.clear();
        }
    }

    /// Keeps the first reason why the answer is wrong.
    pub(crate) fn say_wrong(&mut self, reason: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            self.wrong = Some(reason().into());
        }
    }

    /// Reads the prefix of a message. False if there is nothing to go on with.
    #[inline]
    fn next(&mut self, data: &mut &[u8]) -> bool {
        if usize::from(self.prefix_read) == PREFIX {
            return !data.is_empty();
        }
        let missing = PREFIX - usize::from(self.prefix_read);
        let taken = missing.min(data.len());
        let (bytes, rest) = data.split_at(taken);
        self.prefix[PREFIX - missing..][..taken].copy_from_slice(bytes);
        self.prefix_read += taken as u8;
        *data = rest;
        if taken < missing {
            return false;
        }
        let [_, length @ ..] = self.prefix;
        self.left = u32::from_be_bytes(length);
        // An empty message is complete with its prefix.
        !rest.is_empty() || self.left == 0
    }

    fn message_complete(&mut self, message: &[u8], check: &mut impl FnMut(&mut Self, &[u8])) {
        self.left = 0;
        self.prefix_read = 0;
        match (self.prefix[0], self.encoding) {
            (0, _) => check(self, message),
            (1, Encoding::Gzip) => {
                let mut plain = Vec::new();
                // One byte more than allowed tells that there was more.
                match GzDecoder::new(message).take(MAX_MESSAGE as u64 + 1).read_to_end(&mut plain) {
                    Ok(length) if length <= MAX_MESSAGE => check(self, &plain),
                    Ok(_) => self.say_wrong(|| format!("a message of more than {MAX_MESSAGE} bytes cannot be checked")),
                    Err(error) => self.say_wrong(|| format!("a message that is not in gzip: {error}")),
                }
            }
            (1, _) => self.say_wrong(|| "a message in a compression that was not offered".to_owned()),
            (flag, _) => self.say_wrong(|| format!("a message whose first byte is {flag}, expected 0 or 1")),
        }
        self.messages += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::message;
    use super::*;

    fn messages() -> Vec<u8> {
        let mut bytes = Vec::new();
        for (text, compress) in [(&b"hello"[..], false), (b"", false), (b"a longer message", true)] {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; PREFIX]);
            bytes.extend_from_slice(text);
            message::frame(&mut bytes, start, compress);
        }
        bytes
    }

    #[test]
    fn messages_come_in_pieces_of_any_size() {
        let bytes = messages();
        for size in 1..=bytes.len() {
            let mut found = Vec::new();
            let mut looking = Exchange { encoding: Encoding::Gzip, ..Exchange::default() };
            let mut counting = Exchange::default();
            for piece in bytes.chunks(size) {
                looking.look(piece, |_, message| found.push(message.to_vec()));
                counting.count(piece);
            }
            assert_eq!(found, [&b"hello"[..], b"", b"a longer message"], "{size}");
            assert_eq!((looking.messages, counting.messages), (3, 3), "{size}");
            assert!(!looking.is_inside() && !counting.is_inside(), "{size}");
        }
        let mut counting = Exchange::default();
        counting.count(&bytes[..bytes.len() - 1]);
        assert!(counting.is_inside());
    }

    #[test]
    fn bad_messages_are_named() {
        #[track_caller]
        fn check(encoding: Encoding, data: &[u8], expected: &str) {
            let mut exchange = Exchange { encoding, ..Exchange::default() };
            exchange.look(data, |_, _| panic!("nothing to check"));
            assert_eq!(exchange.wrong.as_deref(), Some(expected));
        }
        check(Encoding::Identity, &[1, 0, 0, 0, 0], "a message in a compression that was not offered");
        check(Encoding::Identity, &[7, 0, 0, 0, 0], "a message whose first byte is 7, expected 0 or 1");
        check(Encoding::Gzip, &[1, 0, 0, 0, 1, 9], "a message that is not in gzip: unexpected end of file");
    }
}

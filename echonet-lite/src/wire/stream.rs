//! Frames in a stream of bytes: TCP has no framing beyond the frame itself (Part II, 1.3).

use super::{Cause, Esv, HEADER_LEN, ParseError, frame};

/// The state of the first message in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum MessageLength {
    /// The first frame has this many bytes, all of which are there. [`Frame::parse`](super::Frame::parse) accepts them.
    Complete(usize),
    /// The beginning of a frame, as far as one can tell.
    NeedMore,
    /// No frame begins like this, so where the next one begins is unknown: close the connection.
    Bad(ParseError),
}

/// How long the first frame in `bytes` is, by its counts and lengths.
///
/// A format-2 frame does not say how long it is. Every byte that is there is taken as its data: a sender that uses
/// format 2 on a stream has to pause behind it, and the receiver asks when it has read all there is.
pub fn message_length(bytes: &[u8]) -> MessageLength {
    let bad = |offset, cause| MessageLength::Bad(ParseError { offset, cause });
    if let Some(&ehd1) = bytes.first()
        && ehd1 != frame::EHD1
    {
        return bad(frame::field::EHD1, Cause::NotEchonetLite(ehd1));
    }
    match bytes.get(frame::field::EHD2) {
        None | Some(&frame::FORMAT_1) => {}
        Some(&frame::FORMAT_2) if bytes.len() < frame::field::SEOJ => return MessageLength::NeedMore,
        Some(&frame::FORMAT_2) => return MessageLength::Complete(bytes.len()),
        Some(&ehd2) => return bad(frame::field::EHD2, Cause::UnknownFormat(ehd2)),
    }
    let Some(&service) = bytes.get(frame::field::ESV) else { return MessageLength::NeedMore };
    let Some(esv) = Esv::from_u8(service) else { return bad(frame::field::ESV, Cause::UnknownService(service)) };
    let mut end = HEADER_LEN - 1;
    for _ in 0..1 + u8::from(esv.has_two_lists()) {
        let Some(&count) = bytes.get(end) else { return MessageLength::NeedMore };
        if count == 0 && esv != Esv::SetGetSna {
            return bad(end, Cause::NoProperties);
        }
        end += 1;
        for _ in 0..count {
            let Some(&length) = bytes.get(end + 1) else { return MessageLength::NeedMore };
            end += 2 + usize::from(length);
        }
    }
    if end <= bytes.len() { MessageLength::Complete(end) } else { MessageLength::NeedMore }
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn split_at_every_byte() {
        let frames: [&[u8]; 3] = [
            b"\x10\x81\x00\x01\x05\xff\x01\x02\x90\x01\x61\x02\x80\x01\x30\xb0\x02\x00\x01",
            b"\x10\x81\x00\x07\x05\xff\x01\x01\x30\x01\x6e\x01\x80\x01\x30\x01\xbb\x00",
            b"\x10\x81\x00\x07\x01\x30\x01\x05\xff\x01\x5e\x00\x00",
        ];
        let stream = frames.concat();
        for frame in frames {
            for end in 0..frame.len() {
                assert_eq!(message_length(&frame[..end]), MessageLength::NeedMore, "{:02X?}", &frame[..end]);
            }
            assert_eq!(message_length(frame), MessageLength::Complete(frame.len()));
        }
        assert_eq!(message_length(&stream), MessageLength::Complete(frames[0].len()));
    }

    #[test]
    fn invalid_frame_prefixes_are_rejected_immediately() {
        let bad = |offset, cause| MessageLength::Bad(ParseError { offset, cause });
        assert_eq!(message_length(b"G"), bad(0, Cause::NotEchonetLite(b'G')));
        assert_eq!(message_length(b"\x10\x80"), bad(1, Cause::UnknownFormat(0x80)));
        assert_eq!(message_length(b"\x10\x81\0\0\0\0\0\0\0\0\x62\x00"), bad(11, Cause::NoProperties));
        assert_eq!(message_length(b"\x10\x81\0\0\0\0\0\0\0\0\x10"), bad(10, Cause::UnknownService(0x10)));
        assert_eq!(message_length(b"\x10\x82\0"), MessageLength::NeedMore);
        assert_eq!(message_length(b"\x10\x82\0\x01\x05"), MessageLength::Complete(5));
    }

    proptest! {
        /// A complete frame of a stream parses, and a frame that parses is complete.
        #[test]
        fn agrees_with_parse(mut bytes in proptest::collection::vec(0..8_u8, 12..40), esv in 0..16_usize, two: bool) {
            bytes[..2].copy_from_slice(if two { b"\x10\x82" } else { b"\x10\x81" });
            bytes[10] = Esv::ALL[esv].to_u8();
            match message_length(&bytes) {
                MessageLength::Complete(end) => prop_assert!(Frame::parse(&bytes[..end]).is_ok()),
                MessageLength::NeedMore => {
                    prop_assert_eq!(Frame::parse(&bytes).err().map(|error| error.cause), Some(Cause::Truncated));
                }
                MessageLength::Bad(error) => prop_assert_eq!(Frame::parse(&bytes), Err(error)),
            }
        }
    }
}

//! Any bytes: what parses as a frame is written again as the same bytes, and is a whole message of a stream.

#![no_main]

use echonet_lite::wire::{Frame, FrameWriter, Header, MessageLength, message_length};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let frame = match Frame::parse(bytes) {
        Ok(frame) => frame,
        Err(error) => {
            assert!(error.offset <= bytes.len());
            assert!(!error.to_string().is_empty());
            assert_ne!(message_length(bytes), MessageLength::Complete(bytes.len()));
            return;
        }
    };
    assert!(!frame.to_string().is_empty());
    assert_eq!(message_length(bytes), MessageLength::Complete(bytes.len()));
    let Frame::Format1(message) = frame else { return };
    let mut buffer = vec![0; bytes.len()];
    let header = Header { tid: message.tid(), seoj: message.seoj(), deoj: message.deoj(), esv: message.esv() };
    let mut writer = FrameWriter::new(&mut buffer, header).expect("the room that it had");
    for property in message.properties() {
        writer.property(property.epc, property.edt).expect("the room that it had");
    }
    if message.esv().has_two_lists() {
        writer.second_list().expect("the room that it had");
    }
    for property in message.get_properties() {
        writer.property(property.epc, property.edt).expect("the room that it had");
    }
    assert_eq!(writer.finish(), Ok(bytes));
});

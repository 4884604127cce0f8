//! Frames as bytes and as text, both ways.

use echonet_lite::wire::{Frame, FrameWriter, Header, MessageLength, message_length};

use crate::support::{hex, text};

/// Bytes and what they mean.
const VECTORS: &[(&str, &str)] = &[
    ("1081 0001 0EF001 0EF001 73 01 D5 04 01 029001", "tid 0001 0EF001 > 0EF001 INF D5=01029001"),
    ("1081 FFFF 05FF01 0EF000 62 03 D6 00 82 00 83 00", "tid FFFF 05FF01 > 0EF000 Get D6 82 83"),
    (
        "1081 0102 0EF001 05FF01 72 02 D6 07 02 013001 028801 82 04 010E0100",
        "tid 0102 0EF001 > 05FF01 Get_Res D6=02013001028801 82=010E0100",
    ),
    ("1081 0002 05FF01 013001 60 02 80 01 30 B3 01 19", "tid 0002 05FF01 > 013001 SetI 80=30 B3=19"),
    ("1081 0003 05FF01 013001 61 01 B0 01 42", "tid 0003 05FF01 > 013001 SetC B0=42"),
    ("1081 0003 013001 05FF01 71 01 B0 00", "tid 0003 013001 > 05FF01 Set_Res B0"),
    ("1081 0003 013001 05FF01 51 01 B0 01 42", "tid 0003 013001 > 05FF01 SetC_SNA B0=42"),
    ("1081 0003 013001 05FF01 50 01 B0 01 42", "tid 0003 013001 > 05FF01 SetI_SNA B0=42"),
    ("1081 0004 028801 05FF01 52 02 E7 04 000001F4 E9 00", "tid 0004 028801 > 05FF01 Get_SNA E7=000001F4 E9"),
    ("1081 0005 05FF01 001101 63 01 E0 00", "tid 0005 05FF01 > 001101 INF_REQ E0"),
    ("1081 0005 001101 05FF01 53 01 EF 00", "tid 0005 001101 > 05FF01 INF_SNA EF"),
    (
        "1081 0006 028801 05FF01 74 01 EA 0B 07E60A17103000 0001E240",
        "tid 0006 028801 > 05FF01 INFC EA=07E60A171030000001E240",
    ),
    ("1081 0006 05FF01 028801 7A 01 EA 00", "tid 0006 05FF01 > 028801 INFC_Res EA"),
    ("1081 0007 05FF01 013001 6E 01 80 01 30 02 BB 00 BE 00", "tid 0007 05FF01 > 013001 SetGet 80=30 / BB BE"),
    ("1081 0007 013001 05FF01 7E 01 80 00 01 BB 01 19", "tid 0007 013001 > 05FF01 SetGet_Res 80 / BB=19"),
    ("1081 0007 013001 05FF01 5E 01 80 01 30 01 BB 01 19", "tid 0007 013001 > 05FF01 SetGet_SNA 80=30 / BB=19"),
    ("1081 0007 013001 05FF01 5E 00 00", "tid 0007 013001 > 05FF01 SetGet_SNA /"),
    ("1082 0008 CAFE", "tid 0008 format 2, 2 bytes: CA FE"),
];

#[test]
fn bytes_mean_text() {
    for (bytes, meaning) in VECTORS {
        let bytes = hex(bytes);
        assert_eq!(Frame::parse(&bytes).map(|frame| frame.to_string()).as_deref(), Ok(*meaning));
    }
}

#[test]
fn parsed_frames_can_be_written_back_unchanged() {
    for (bytes, meaning) in VECTORS {
        let bytes = hex(bytes);
        let Ok(Frame::Format1(message)) = Frame::parse(&bytes) else { continue };
        let mut buffer = [0; 64];
        let header = Header { tid: message.tid(), seoj: message.seoj(), deoj: message.deoj(), esv: message.esv() };
        let mut writer = FrameWriter::new(&mut buffer, header).expect("room");
        for property in message.properties() {
            writer.property(property.epc, property.edt).expect("room");
        }
        if message.esv().has_two_lists() {
            writer.second_list().expect("room");
        }
        for property in message.get_properties() {
            writer.property(property.epc, property.edt).expect("room");
        }
        assert_eq!(writer.finish().map(text), Ok(text(&bytes)), "{meaning}");
    }
}

/// A TCP connection gives the frames in any pieces: all of them come out, wherever it is split.
#[test]
fn a_stream_split_at_every_byte() {
    let frames: Vec<Vec<u8>> = VECTORS.iter().map(|(bytes, _)| hex(bytes)).filter(|bytes| bytes[1] == 0x81).collect();
    let stream = frames.concat();
    for split in 0..=stream.len() {
        let (mut pending, mut found) = (Vec::new(), Vec::new());
        for piece in [&stream[..split], &stream[split..]] {
            pending.extend_from_slice(piece);
            while let MessageLength::Complete(length) = message_length(&pending) {
                found.push(pending.drain(..length).collect::<Vec<_>>());
            }
            assert!(matches!(message_length(&pending), MessageLength::NeedMore));
        }
        assert!(pending.is_empty());
        assert_eq!(found, frames, "split at {split}");
    }
}

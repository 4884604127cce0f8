//! Frames' heads and payloads: every view of any bytes is a view or an error.
#![no_main]

use http2::frame::{self, HEAD, Head};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((head, payload)) = bytes.split_first_chunk::<HEAD>() else { return };
    let head = Head::parse(head);
    if let Ok(data) = frame::unpadded(head, payload) {
        assert!(data.len() <= payload.len());
    }
    if let Ok(headers) = frame::headers(head, payload) {
        assert!(headers.fragment.len() <= payload.len());
        assert!(headers.dependency.is_none_or(|stream| stream <= frame::MOST));
    }
    if let Ok(settings) = frame::settings(payload) {
        assert_eq!(settings.count() * 6, payload.len());
    }
    let _ = frame::priority(payload);
    let _ = frame::number(payload);
    let _ = frame::go_away(payload);
    let _ = frame::priority_update(payload);
});

//! Any bytes and any text for any property: a value that goes back to the same bytes, or an error that says why.

#![no_main]

use echonet_lite::class;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, &[u8], &str)| {
    let (place, epc, edt, text) = input;
    let class = class::all()[usize::from(place) % class::all().len()];
    let Some(property) = class.property(epc | 0x80) else { return };
    let mut buffer = [0; 255];
    if let Ok(length) = property.parse(text, &mut buffer) {
        assert!(property.decode(&buffer[..length]).is_ok(), "{text} became no value");
    }
    match property.decode(edt) {
        Ok(value) => {
            let written = property.encode(value, &mut buffer).map(|length| &buffer[..length] == edt);
            assert!(written.expect("what was decoded can be encoded"), "{value}");
            for text in [value.to_string(), value.json().to_string()] {
                let read = property.parse(&text, &mut buffer).map(|length| &buffer[..length] == edt);
                assert!(read.expect("what is displayed can be read"), "{text}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

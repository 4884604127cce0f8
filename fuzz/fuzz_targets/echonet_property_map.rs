//! Any bytes as a property map: what is accepted means what the map says, and is written as a map of the same meaning.

#![no_main]

use echonet_lite::wire::{PROPERTY_MAP_MAX, PropertySet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let lenient = PropertySet::decode_map_lenient(bytes);
    let Ok(set) = PropertySet::decode_map(bytes) else { return };
    assert_eq!(set, lenient);
    assert_eq!(set.len(), usize::from(bytes[0]));
    let mut map = [0; PROPERTY_MAP_MAX];
    let length = set.encode_map(&mut map);
    assert_eq!(length, bytes.len());
    assert_eq!(PropertySet::decode_map(&map[..length]), Ok(set));
});

//! Patterns never panic nor run away, and agree with a plain definition of what they mean.

#![no_main]

use libfuzzer_sys::fuzz_target;
use redis_server::protocol::glob;

/// A text without special characters matches itself; with `*` around, whatever contains it.
fn check_literal(text: &[u8], other: &[u8]) {
    let escaped: Vec<u8> = text.iter().flat_map(|byte| [b'\\', *byte]).collect();
    assert!(glob::matches(&escaped, text, false));
    assert!(glob::matches(&escaped, text, true));
    assert_eq!(glob::matches(&escaped, other, false), text == other);
    let inside = [b"*", &escaped[..], b"*"].concat();
    // Nothing at all is matched by a lone star only: a quirk of the genuine matcher.
    let contains = !other.is_empty() && (text.is_empty() || other.windows(text.len()).any(|window| window == text));
    assert_eq!(glob::matches(&inside, other, false), contains);
}

fuzz_target!(|input: (&[u8], &[u8])| {
    let (pattern, text) = input;
    // For any pattern and text, matching ends.
    glob::matches(pattern, text, false);
    glob::matches(pattern, text, true);
    assert!(glob::matches(b"*", text, false));
    assert!(glob::matches(&b"?".repeat(text.len()), text, false));
    check_literal(pattern, text);
});

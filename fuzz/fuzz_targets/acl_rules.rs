//! Any words make a user or an error; a user is told back in words that make it again, as in its file. Any bytes have the names of
//! a certificate, or none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use redis_server::clients::acl::{Defaults, NameField, User, certificate_names};
use redis_server::commands::REGISTRY;
use redis_server::config::Level;

fuzz_target!(|text: &[u8]| {
    for field in [NameField::CommonName, NameField::Uri] {
        assert!(certificate_names(text, field).iter().all(|name| !name.is_empty()));
    }
    let Some((&first, text)) = text.split_first() else { return };
    let defaults = Defaults { registry: REGISTRY, all_channels: first & 1 == 1 };
    let words: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    match User::new(defaults).changed(&words, defaults) {
        Ok(user) => {
            let level = if first & 2 == 2 { Level::Redis80 } else { Level::Redis70 };
            let told = user.describe(level);
            assert!(!told.contains(&b'\n'), "it stays on its line");
            let words: Vec<&[u8]> = told.split(|byte| *byte == b' ').collect();
            let again = User::new(defaults).changed(&words, defaults).expect("a description holds rules");
            assert_eq!(again.describe(level), told);
            // Level 8.0 says of each user whether payloads are sanitized, also where no rule has said it.
            if level == Level::Redis70 {
                assert_eq!(again, user);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

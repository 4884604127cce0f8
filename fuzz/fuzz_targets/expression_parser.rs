//! Expressions of any bytes are read and have a value, or an error, for a row.

#![no_main]

use libfuzzer_sys::fuzz_target;
use query_engine::Expression;
use query_engine::{Datum, Row};

struct Fields;

impl Row for Fields {
    fn property(&self, name: &str) -> Option<Datum> {
        match name {
            "n" => Some(Datum::Number(-7.5)),
            "s" => Some(Datum::text("2024-02-29 hello, world")),
            "l" => Some(Datum::List([Datum::text("x"), Datum::Null].into())),
            _ => None,
        }
    }
}

fuzz_target!(|text: &[u8]| {
    if let Ok(expression) = Expression::parse(text) {
        let _ = expression.properties();
        if let Ok(value) = expression.value(&Fields) {
            let _ = value.bytes();
            assert!(value.order(&value).is_eq());
        }
    }
});

//! The body for compression tests: the same nine kilobytes of JSON in every language.

pub fn items() -> String {
    let item = |n: usize| {
        let (price, quantity) = (n * 37 % 1000, n * 11 % 50);
        format!(
            r#"{{"id":{n},"name":"item {n}","price":{price},"quantity":{quantity},"active":true,"tags":["fast","new"]}}"#
        )
    };
    format!(r#"{{"items":[{}]}}"#, (0..100).map(item).collect::<Vec<_>>().join(","))
}

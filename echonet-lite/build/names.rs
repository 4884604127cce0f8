//! Names of the data file as names of Rust.

/// `targetTemperature` as `target_temperature`; digits stay with what is before them.
pub(crate) fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, c) in chars.iter().enumerate() {
        let after_lower = at > 0 && !chars[at - 1].is_uppercase() && chars[at - 1] != '_';
        let before_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && at > 0 && chars[at - 1] != '_' && (after_lower || before_lower) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// The module of a class.
pub(crate) fn module(short_name: &str) -> String {
    match short_name {
        "common" => "super_class".to_owned(),
        name => snake(name),
    }
}

/// `TARGET_TEMPERATURE`
pub(crate) fn constant(name: &str) -> String {
    snake(name).to_uppercase()
}

/// `TargetTemperature`
pub(crate) fn pascal(name: &str) -> String {
    let mut pascal = String::new();
    for word in snake(name).split('_') {
        let mut letters = word.chars();
        pascal.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        pascal.extend(letters);
    }
    // No name of Rust begins with a digit.
    if pascal.starts_with(|c: char| c.is_ascii_digit()) { format!("N{pascal}") } else { pascal }
}

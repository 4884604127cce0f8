//! Queries as valkey-search reads them, for `compatibility valkey-9`: rewritten for RediSearch's grammar.

/// The query in RediSearch's grammar: punctuation in tags is escaped, and the filter of `=>[KNN …]` is in parentheses.
pub(super) fn adapt(query: &[u8]) -> Vec<u8> {
    let mut adapted = Vec::with_capacity(query.len() + 2);
    let (mut rest, mut in_quotes) = (query, false);
    let mut arrow = None;
    while let Some((&byte, behind)) = rest.split_first() {
        if !in_quotes && rest.starts_with(b":{") {
            adapted.extend_from_slice(b":{");
            rest = tags(&rest[2..], &mut adapted);
            continue;
        }
        if !in_quotes && rest.starts_with(b"=>[") {
            arrow = Some(adapted.len());
        }
        let length = if byte == b'\\' { rest.len().min(2) } else { 1 };
        in_quotes ^= byte == b'"';
        adapted.extend_from_slice(&rest[..length]);
        rest = &behind[length - 1..];
    }
    match arrow {
        Some(at) if is_bare(adapted[..at].trim_ascii()) => {
            adapted.insert(at, b')');
            adapted.insert(0, b'(');
        }
        _ => {}
    }
    adapted
}

/// Returns true if a filter needs parentheses.
fn is_bare(filter: &[u8]) -> bool {
    !filter.is_empty() && filter != b"*"
}

/// Appends the tags up to the closing brace, and returns what is behind them.
fn tags<'q>(text: &'q [u8], adapted: &mut Vec<u8>) -> &'q [u8] {
    let end = unescaped(text, b'}').unwrap_or(text.len());
    let mut list = &text[..end];
    while let Some(bar) = unescaped(list, b'|') {
        tag(&list[..bar], adapted);
        adapted.push(b'|');
        list = &list[bar + 1..];
    }
    tag(list, adapted);
    &text[end..]
}

/// Where a byte stands that no backslash escapes.
fn unescaped(text: &[u8], wanted: u8) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|&byte| {
        let found = byte == wanted && !escaped;
        escaped = !escaped && byte == b'\\';
        found
    })
}

/// Appends a tag. A star at its end, a parameter and quotes keep their meaning.
fn tag(text: &[u8], adapted: &mut Vec<u8>) {
    let text = text.trim_ascii();
    if matches!(text.first(), Some(b'$' | b'"' | b'*')) || text.starts_with(b"w'") {
        adapted.extend_from_slice(text);
        return;
    }
    let (text, star): (_, &[u8]) = text.strip_suffix(b"*").map_or((text, b""), |text| (text, b"*"));
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'\\' {
            adapted.push(byte);
            adapted.extend(bytes.next());
            continue;
        }
        if byte.is_ascii_punctuation() && byte != b'_' {
            adapted.push(b'\\');
        }
        adapted.push(byte);
    }
    adapted.extend_from_slice(star);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_rewritten() {
        let check = |query: &str, expected: &str| {
            assert_eq!(String::from_utf8_lossy(&adapt(query.as_bytes())), expected, "{query}");
        };
        check("@t:{Tag:*}", "@t:{Tag\\:*}");
        check("@t:{ a-b | c\\-d |$p|\"x y\"}", "@t:{a\\-b|c\\-d|$p|\"x y\"}");
        check("@t:{a-\\}-b} red", "@t:{a\\-\\}\\-b} red");
        check("@n:[1 2] @t:{a} =>[KNN 2 @v $b]", "(@n:[1 2] @t:{a} )=>[KNN 2 @v $b]");
        check("(a)=>[KNN 2 @v $b]", "((a))=>[KNN 2 @v $b]");
        check("* =>[KNN 2 @v $b]", "* =>[KNN 2 @v $b]");
        check("\"a:{b-c}=>[\"", "\"a:{b-c}=>[\"");
        check("@t:{a\\*}", "@t:{a\\*}");
        check("@t:{open", "@t:{open");
        check("a\\", "a\\");
    }
}

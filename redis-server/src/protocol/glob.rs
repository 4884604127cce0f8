//! Glob patterns as `KEYS`, `SCAN MATCH`, `PSUBSCRIBE` and `CONFIG GET` understand them: `*`, `?`, `[a-z]`, `[^a]`
//! and `\` before a character that stands for itself.

/// Stars with something behind them that a pattern may have to match at all, as in the genuine server.
const MAX_STARS: usize = 1000;

/// Whether `text` matches `pattern`; with `nocase`, ASCII letters match in both cases.
///
/// Takes at most time proportional to the product of both lengths, whatever the pattern.
///
/// ```
/// use redis_server::protocol::glob;
///
/// assert!(glob::matches(b"user:[0-9]*", b"user:1000", false));
/// assert!(!glob::matches(b"user:?", b"user:1000", false));
/// ```
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        // Redis' matcher never enters its loop; its commands take a lone star for everything without asking it.
        return matches!(pattern, b"" | b"*");
    }
    let (mut pattern, mut text) = (pattern, text);
    // The pattern behind the last star, and the text that it was last tried on. An earlier star need not be tried again: the last one can
    // take any text that it would leave.
    let mut retry: Option<(&[u8], &[u8])> = None;
    let mut stars = 0;
    loop {
        if let [b'*', rest @ ..] = pattern {
            if rest.is_empty() {
                return true;
            }
            stars += usize::from(rest.first() != Some(&b'*'));
            if stars > MAX_STARS {
                return false;
            }
            pattern = rest;
            retry = Some((rest, text));
            continue;
        }
        let Some((&byte, text_rest)) = text.split_first() else {
            return pattern.is_empty();
        };
        if let Some(rest) = match_one(pattern, byte, nocase) {
            (pattern, text) = (rest, text_rest);
            continue;
        }
        let Some((rest, tried)) = retry else { return false };
        let Some((_, tried)) = tried.split_first() else { return false };
        retry = Some((rest, tried));
        (pattern, text) = (rest, tried);
    }
}

/// The pattern behind its first element, if that matches `byte`.
#[inline]
fn match_one(pattern: &[u8], byte: u8, nocase: bool) -> Option<&[u8]> {
    let (literal, rest) = match pattern {
        [] => return None,
        [b'?', rest @ ..] => return Some(rest),
        [b'[', rest @ ..] => return match_class(rest, byte, nocase),
        [b'\\', escaped, rest @ ..] => (*escaped, rest),
        [literal, rest @ ..] => (*literal, rest),
    };
    (fold(literal, nocase) == fold(byte, nocase)).then_some(rest)
}

/// The pattern behind the class that began before `pattern`, if the class has `byte`. A class without an end is ended
/// by the end of the pattern.
fn match_class(pattern: &[u8], byte: u8, nocase: bool) -> Option<&[u8]> {
    let (negated, mut pattern) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let folded = fold(byte, nocase);
    let mut found = false;
    loop {
        pattern = match pattern {
            [] => break,
            [b'\\', escaped, rest @ ..] => {
                found |= *escaped == byte; // Redis does not fold here
                rest
            }
            [b']', rest @ ..] => {
                pattern = rest;
                break;
            }
            [from, b'-', to, rest @ ..] => {
                let (from, to) = (fold(*from.min(to), nocase), fold(*from.max(to), nocase));
                found |= (from..=to).contains(&folded);
                rest
            }
            [literal, rest @ ..] => {
                found |= fold(*literal, nocase) == folded;
                rest
            }
        };
    }
    (found != negated).then_some(pattern)
}

#[inline]
fn fold(byte: u8, nocase: bool) -> u8 {
    if nocase { byte.to_ascii_lowercase() } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::oracle::{Oracle, Reply};

    #[test]
    fn patterns() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expected, "{pattern:?} {text:?}");
        };
        for text in ["", "a", "abc", "*"] {
            check("*", text, true);
            check("**", text, !text.is_empty());
            check(text, text, true);
        }
        check("", "a", false);
        check("?", "", false);
        check("h?llo", "hello", true);
        check("h*llo", "hllo", true);
        check("h*llo", "heeeello", true);
        check("*llo*h", "hellohh", true);
        check("*a*b*c", "aXbXbXcX", false);
        check("h[ae]llo", "hallo", true);
        check("h[ae]llo", "hillo", false);
        check("h[^e]llo", "hello", false);
        check("h[^e]llo", "hbllo", true);
        check("h[b-a]llo", "hallo", true);
        check("[a-]", "-", false); // a range from `a` to `]`, as Redis has it
        check("[]", "]", false);
        check("[a", "a", true);
        check("[^", "a", true);
        check("[\\]]", "]", true);
        check("[\\", "\\", true);
        check("\\*", "*", true);
        check("\\*", "a", false);
        check("\\", "\\", true);
        check("a*", "b", false);
        check("*?", "", false);
    }

    #[test]
    fn letters_of_both_cases() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), true), expected, "{pattern:?} {text:?}");
        };
        check("HeL*", "hello", true);
        check("[A-C]x", "bX", true);
        check("[abc]", "C", true);
        check("[\\a]", "A", false);
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let pattern = "a*".repeat(500) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(5000).as_bytes(), false));
        for (stars, expected) in [(1000, true), (1001, false), (50_000, false)] {
            let pattern = "*?".repeat(stars);
            assert_eq!(matches(pattern.as_bytes(), "a".repeat(50_000).as_bytes(), false), expected, "{stars} stars");
        }
    }

    /// Every text of up to three characters, filtered by random patterns.
    #[test]
    fn matches_like_a_genuine_server() {
        let Some(mut oracle) = Oracle::start("glob") else { return };
        let texts: Vec<Vec<u8>> =
            (0..=3u32).flat_map(|len| (0..7u32.pow(len)).map(move |n| (len, n))).map(spell).collect();
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let patterns: Vec<Vec<u8>> = (0..2000)
            .map(|_| (0..random(8)).map(|_| b"ab-]\\[^*?"[random(9) as usize]).collect())
            .filter(|pattern: &Vec<u8>| !pattern.is_empty())
            .collect();
        let mut commands: Vec<Vec<&[u8]>> = texts.iter().map(|text| vec![&b"SADD"[..], b"s", text]).collect();
        for pattern in &patterns {
            commands.push(vec![b"SSCAN", b"s", b"0", b"COUNT", b"10000", b"MATCH", pattern]);
        }
        let replies = oracle.run(&commands);
        for (pattern, reply) in patterns.iter().zip(&replies[texts.len()..]) {
            let Reply::Array(reply) = reply else { panic!("SSCAN answers with an array") };
            let Reply::Array(found) = &reply[1] else { panic!("SSCAN answers with members") };
            for text in &texts {
                let expected = found.contains(&Reply::Text(text.clone()));
                let both = (String::from_utf8_lossy(pattern), String::from_utf8_lossy(text));
                assert_eq!(matches(pattern, text, false), expected, "{both:?}");
            }
        }
    }

    fn spell((len, mut number): (u32, u32)) -> Vec<u8> {
        let mut letter = || {
            let letter = b"ab-]\\[^"[number as usize % 7];
            number /= 7;
            letter
        };
        (0..len).map(|_| letter()).collect()
    }
}

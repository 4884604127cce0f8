//! The shortest sequence that still shows a difference.

use super::grammar::Request;

/// Leaves out of `requests` what is not needed for `fails` to hold: halves first, then smaller parts, then single ones,
/// until no single one can go. Gives up getting shorter after `attempts` trials.
pub(super) fn shrink(
    mut requests: Vec<Request>,
    mut attempts: usize,
    mut fails: impl FnMut(&[Request]) -> bool,
) -> Vec<Request> {
    let mut size = requests.len() / 2;
    while size > 0 {
        let mut start = 0;
        let mut removed = false;
        while start < requests.len() && attempts > 0 {
            let end = (start + size).min(requests.len());
            let without = [&requests[..start], &requests[end..]].concat();
            attempts -= 1;
            if !without.is_empty() && fails(&without) {
                requests = without;
                removed = true;
            } else {
                start = end;
            }
        }
        size = if size == 1 && removed { 1 } else { size / 2 };
        if attempts == 0 {
            break;
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::super::rules::Open;
    use super::*;

    #[test]
    fn only_what_is_needed_is_left() {
        let request = |number: u8| Request { words: vec![vec![number]], open: Open::Nothing };
        let all: Vec<_> = (0..100).map(request).collect();
        let needed = [3u8, 57, 58, 99];
        let fails = |requests: &[Request]| needed.iter().all(|n| requests.iter().any(|r| r.words[0][0] == *n));
        let shrunk = shrink(all, 1000, fails);
        assert_eq!(shrunk.iter().map(|request| request.words[0][0]).collect::<Vec<_>>(), needed);
    }
}

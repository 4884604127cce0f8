//! What SCAN, HSCAN, SSCAN and ZSCAN share: the cursor and the options.

use crate::command::{Args, Result};
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::protocol::glob;

/// Elements that one call looks at unless COUNT says otherwise.
const DEFAULT_COUNT: usize = 10;

/// The options behind a cursor.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanOptions<'a> {
    /// About how many elements to look at.
    pub(super) count: usize,
    /// Which elements to return.
    pattern: Option<&'a [u8]>,
    /// Which type of keys to return (SCAN only).
    pub(super) type_name: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    /// The options from argument `first` on; `TYPE` is accepted where `keys` are scanned.
    ///
    /// # Errors
    /// A syntax error, or a COUNT that is no positive integer.
    pub(super) fn parse(args: Args<'a>, first: usize, keys: bool) -> Result<Self> {
        let mut options = Self { count: DEFAULT_COUNT, pattern: None, type_name: None };
        let mut at = first;
        while at < args.len() {
            let value = args.get(at + 1).ok_or(Error::Syntax)?;
            if args.is(at, "COUNT") {
                let count = args.int(at + 1)?;
                options.count = usize::try_from(count).ok().filter(|&count| count > 0).ok_or(Error::Syntax)?;
            } else if args.is(at, "MATCH") {
                options.pattern = (value != b"*").then_some(value);
            } else if keys && args.is(at, "TYPE") {
                options.type_name = Some(value);
            } else {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        Ok(options)
    }

    /// Whether an element is to be returned.
    pub(super) fn selects(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, element, false))
    }
}

/// A cursor, as C's `strtoul` reads it: a sign is allowed, and nothing at all is 0.
///
/// # Errors
/// `ERR invalid cursor`.
pub(super) fn cursor(arg: &[u8]) -> Result<u64> {
    let (negative, digits) = match arg {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|digits| digits.parse::<u64>().ok());
    let value = value.ok_or(Error::Static("ERR invalid cursor"))?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// Appends the answer of a scan: `scan` writes the elements, and returns the next cursor and how many it wrote.
pub(super) fn reply(reply: &mut Reply, scan: impl FnOnce(&mut Reply) -> (u64, usize)) {
    reply.array(2);
    let mark = reply.mark();
    let (next, elements) = scan(reply);
    reply.array_at(mark, elements);
    reply.bulk_at(mark, itoa::Buffer::new().format(next).as_bytes());
}

/// The answer of a scan where there is nothing.
pub(super) fn reply_nothing(reply: &mut Reply) {
    self::reply(reply, |_| (0, 0));
}

//! The cursor and the options that SCAN, HSCAN, SSCAN and ZSCAN share.

use crate::command::{Args, Result};
use crate::config::Level;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::protocol::glob;
use crate::protocol::number::parse_i64;

/// Elements that one call looks at unless COUNT says otherwise.
const DEFAULT_COUNT: usize = 10;

/// Words that one command alone has, which is told.
const OWNERS: [(&str, &str); 2] = [("NOVALUES", "HSCAN"), ("NOSCORES", "ZSCAN")];

/// Further options of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    /// Nothing.
    None,
    /// `TYPE type`.
    Type,
    /// This word, by which fields come without values, or members without scores.
    Bare(&'static str),
}

/// The options behind a cursor.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanOptions<'a> {
    /// About how many elements to look at.
    pub(super) count: usize,
    /// Which elements to return.
    pattern: Option<&'a [u8]>,
    /// Which type of keys to return (SCAN only).
    pub(super) type_name: Option<&'a [u8]>,
    /// Whether what belongs to an element is left out.
    pub(super) bare: bool,
}

impl<'a> ScanOptions<'a> {
    /// The options from argument `first` on.
    ///
    /// # Errors
    /// A syntax error, or a COUNT that is no positive integer.
    pub(super) fn parse(args: Args<'a>, first: usize, extra: Extra, level: Level) -> Result<Self> {
        let mut options = Self { count: DEFAULT_COUNT, pattern: None, type_name: None, bare: false };
        let mut at = first;
        while at < args.len() {
            if let Extra::Bare(word) = extra
                && args.is(at, word)
            {
                options.bare = true;
                at += 1;
                continue;
            }
            let owner = OWNERS.iter().find(|(word, _)| level >= Level::Redis80 && args.is(at, word));
            if let Some((word, command)) = owner {
                return Err(Error::Message(format!("ERR {word} option can only be used in {command}")));
            }
            let value = args.get(at + 1).ok_or(Error::Syntax)?;
            if args.is(at, "COUNT") {
                let count = args.int(at + 1)?;
                options.count = usize::try_from(count).ok().filter(|&count| count > 0).ok_or(Error::Syntax)?;
            } else if args.is(at, "MATCH") {
                options.pattern = (value != b"*").then_some(value);
            } else if extra == Extra::Type && args.is(at, "TYPE") {
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

/// A cursor, as C's `strtoul` reads it: a sign is allowed, and nothing at all is 0. Redis 8.0 and Valkey take neither nothing nor an integer
/// of 64 bits below 0.
///
/// # Errors
/// `ERR invalid cursor`.
pub(super) fn cursor(arg: &[u8], level: Level) -> Result<u64> {
    let (negative, digits) = match arg {
        [] if level < Level::Redis80 => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let is_number = digits.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|digits| digits.parse::<u64>().ok());
    // A negative integer is refused. Other texts with a sign, such as -01, wrap as in Redis 7.
    let is_refused = level >= Level::Redis80 && parse_i64(arg).is_some_and(i64::is_negative);
    let value = value.filter(|_| !is_refused).ok_or(Error::Static("ERR invalid cursor"))?;
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

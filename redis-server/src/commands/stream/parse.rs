//! Arguments that several commands have: ids, intervals, what to trim.

use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::types::{References, StreamId, StreamLimits, Trim, TrimTo};

const INVALID_ID: Error = Error::Static("ERR Invalid stream ID specified as stream command argument");

/// Entries that an approximate trimming removes at most where blocks have no limit, and in any case.
const TRIM_DEFAULT: u64 = 10_000;
const TRIM_MAX: u64 = 1_000_000;
/// Blocks that an approximate trimming removes at most.
const TRIM_BLOCKS: u64 = 100;

/// An id that names an entry; `ms` alone is its first.
pub(super) fn id(text: &[u8]) -> Result<StreamId> {
    StreamId::parse(text, 0).ok_or(INVALID_ID)
}

/// An id, or `-` or `+` for the smallest and the largest.
pub(super) fn any_id(text: &[u8], missing_seq: u64) -> Result<StreamId> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => StreamId::parse(text, missing_seq).ok_or(INVALID_ID),
    }
}

/// All ids from argument `first` on.
pub(super) fn ids(args: Args<'_>, first: usize) -> Result<Vec<StreamId>> {
    args.from(first).iter().map(id).collect()
}

/// Where an interval starts; `(` leaves the id itself out.
pub(super) fn start(text: &[u8]) -> Result<StreamId> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => {
            id(rest)?.next().ok_or(Error::Static("ERR invalid start ID for the interval"))
        }
        _ => any_id(text, 0),
    }
}

/// Where an interval ends; `(` leaves the id itself out.
pub(super) fn end(text: &[u8]) -> Result<StreamId> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => {
            let id = StreamId::parse(rest, u64::MAX).ok_or(INVALID_ID)?;
            id.previous().ok_or(Error::Static("ERR invalid end ID for the interval"))
        }
        _ => any_id(text, u64::MAX),
    }
}

/// The option at argument `at` for references of consumer groups to deleted entries.
pub(super) fn references(args: Args<'_>, at: usize) -> Option<References> {
    const WORDS: [(&str, References); 3] =
        [("KEEPREF", References::Keep), ("DELREF", References::Delete), ("ACKED", References::Acknowledged)];
    WORDS.iter().find(|(word, _)| args.is(at, word)).map(|(_, references)| *references)
}

/// `[KEEPREF|DELREF|ACKED] IDS numids id [id …]` from argument `at` on, in any order.
pub(super) fn ids_with_references(args: Args<'_>, mut at: usize) -> Result<(References, Vec<StreamId>)> {
    let (mut wanted, mut found) = (None, None);
    while at < args.len() {
        if let Some(word) = references(args, at).filter(|_| wanted.is_none()) {
            wanted = Some(word);
            at += 1;
        } else if args.is(at, "IDS") && at + 1 < args.len() && found.is_none() {
            let count = args.int(at + 1).ok().and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
            let count = count.ok_or(Error::Static("ERR Number of IDs must be a positive integer"))?;
            if count > args.len() - at - 2 {
                return Err(Error::Static("ERR The `numids` parameter must match the number of arguments"));
            }
            found = Some(ids(args.first(at + 2 + count), at + 2)?);
            at += 2 + count;
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok((wanted.unwrap_or_default(), found.ok_or(Error::Syntax)?))
}

/// The id that XADD was given.
#[derive(Clone, Copy, Debug)]
pub(super) enum NewId {
    /// `*`
    Now,
    /// `ms-*`
    Open(u64),
    /// All of it.
    Given(StreamId),
}

/// How a message is told apart from others: `IDMP producer-id idempotent-id`, or `IDMPAUTO producer-id`.
#[derive(Debug)]
pub(super) struct Message {
    /// Where the producer stands.
    pub(super) pid: usize,
    /// Where the idempotent id stands; without one it follows from the content.
    pub(super) iid: Option<usize>,
    /// Where the next option stands.
    pub(super) end: usize,
}

impl Message {
    /// That of the words from argument `at` on, if they say one.
    fn parse(args: Args<'_>, at: usize) -> Option<Result<Self>> {
        let (pid, is_auto) = (at + 1, args.is(at, "IDMPAUTO"));
        let end = if is_auto { at + 2 } else { at + 3 };
        if !(is_auto || args.is(at, "IDMP")) || end > args.len() {
            return None;
        }
        let iid = (!is_auto).then_some(at + 2);
        if args.at(pid).is_empty() {
            let text = if is_auto {
                "ERR IDMPAUTO requires a non-empty producer ID"
            } else {
                "ERR IDMP requires a non-empty producer ID"
            };
            return Some(Err(Error::Static(text)));
        }
        if iid.is_some_and(|iid| args.at(iid).is_empty()) {
            return Some(Err(Error::Static("ERR IDMP requires a non-empty idempotent ID")));
        }
        Some(Ok(Self { pid, iid, end }))
    }

    /// Where its words stand.
    pub(super) fn words(&self) -> std::ops::Range<usize> {
        self.pid - 1..self.end
    }
}

/// The options of XADD and XTRIM.
#[derive(Debug, Default)]
pub(super) struct AddOrTrim {
    pub(super) trim: Option<Trim>,
    pub(super) no_mkstream: bool,
    /// XADD's id, and its position.
    pub(super) id: Option<(NewId, usize)>,
    /// Where the threshold stands.
    pub(super) threshold: usize,
    /// Where LIMIT stands.
    pub(super) limit: Option<usize>,
    /// The option for references of consumer groups to deleted entries, if it is given.
    pub(super) references: Option<References>,
    /// Whether the entry's message is told apart from others, and how.
    pub(super) message: Option<Message>,
}

impl AddOrTrim {
    /// Reads the options, and the id that ends them where one is wanted.
    pub(super) fn parse(cx: &Ctx<'_>, args: Args<'_>, is_add: bool) -> Result<Self> {
        let mut options = Self::default();
        let mut limit = None;
        let mut at = 2;
        while at < args.len() {
            let more = at + 1 < args.len();
            if is_add && args.at(at) == b"*" {
                options.id = Some((NewId::Now, at));
                break;
            } else if more && (args.is(at, "MAXLEN") || args.is(at, "MINID")) {
                if options.trim.is_some() {
                    return Err(Error::Static(
                        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                    ));
                }
                let (trim, next) = strategy(args, at)?;
                options.trim = Some(trim);
                options.threshold = next - 1;
                at = next;
            } else if more && args.is(at, "LIMIT") {
                let value = u64::try_from(args.int(at + 1)?);
                options.limit = Some(at);
                limit = Some(value.map_err(|_| Error::Static("ERR The LIMIT argument must be >= 0."))?);
                at += 2;
            } else if let Some(references) = references(args, at).filter(|_| options.references.is_none()) {
                options.references = Some(references);
                at += 1;
            } else if is_add && args.is(at, "NOMKSTREAM") {
                options.no_mkstream = true;
                at += 1;
            } else if let Some(message) = Message::parse(args, at).filter(|_| is_add) {
                let message = message?;
                if options.message.is_some() {
                    return Err(Error::Static("ERR IDMP/IDMPAUTO specified multiple times"));
                }
                at = message.end;
                options.message = Some(message);
            } else if is_add {
                options.id = Some((new_id(args.at(at))?, at));
                break;
            } else {
                return Err(Error::Syntax);
            }
        }
        options.set_limit(cx, limit, is_add)?;
        // A genuine primary may leave the words there when it says which id it was.
        let is_now = matches!(options.id, None | Some((NewId::Now, _))) || cx.is_told_by_others();
        if options.message.is_some() && !is_now {
            return Err(Error::Static("ERR IDMP/IDMPAUTO can be used only with auto-generated IDs"));
        }
        Ok(options)
    }

    /// How many entries go at most.
    fn set_limit(&mut self, cx: &Ctx<'_>, given: Option<u64>, is_add: bool) -> Result {
        let Some(trim) = &mut self.trim else {
            return match given {
                Some(1..) => {
                    Err(Error::Static("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"))
                }
                _ if !is_add => Err(Error::Static("ERR syntax error, XTRIM must be called with a trimming strategy")),
                // A limit of none is missed by no strategy, but by the `~`, as in the genuine server.
                Some(0) => Err(LIMIT_WITHOUT_TILDE),
                None => Ok(()),
            };
        };
        trim.limit = match given {
            // A genuine primary says what it has done exactly, and leaves the limit there; so does its append-only file.
            Some(_) if !trim.approximate && cx.is_told_by_others() => 0,
            Some(_) if !trim.approximate => return Err(LIMIT_WITHOUT_TILDE),
            Some(limit) => limit,
            None if !trim.approximate => 0,
            None => match cx.stream_limits().node_max_entries.saturating_mul(TRIM_BLOCKS) {
                0 => TRIM_DEFAULT,
                limit => limit.min(TRIM_MAX),
            },
        };
        Ok(())
    }
}

const LIMIT_WITHOUT_TILDE: Error = Error::Static("ERR syntax error, LIMIT cannot be used without the special ~ option");

/// `MAXLEN [~|=] count` or `MINID [~|=] id` at argument `at`, and where it ends.
fn strategy(args: Args<'_>, at: usize) -> Result<(Trim, usize)> {
    let sign = at + 2 < args.len() && matches!(args.at(at + 1), b"~" | b"=");
    let approximate = sign && args.at(at + 1) == b"~";
    let value = at + 1 + usize::from(sign);
    let to = if args.is(at, "MAXLEN") {
        let len = u64::try_from(args.int(value)?);
        TrimTo::Len(len.map_err(|_| Error::Static("ERR The MAXLEN argument must be >= 0."))?)
    } else {
        TrimTo::MinId(id(args.at(value))?)
    };
    Ok((Trim { to, approximate, limit: 0 }, value + 1))
}

fn new_id(text: &[u8]) -> Result<NewId> {
    match StreamId::parse_open(text) {
        Some(ms) => Ok(NewId::Open(ms)),
        None => id(text).map(NewId::Given),
    }
}

impl Ctx<'_> {
    /// How large the blocks of streams get, from the configuration.
    pub(super) fn stream_limits(&self) -> StreamLimits {
        let config = self.config();
        StreamLimits {
            node_max_bytes: config.size(settings::STREAM_NODE_MAX_BYTES),
            node_max_entries: config.uint(settings::STREAM_NODE_MAX_ENTRIES),
        }
    }
}

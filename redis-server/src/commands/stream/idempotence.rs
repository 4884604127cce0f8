//! Idempotent production: XADD's options for messages that a producer may send again, XCFGSET, XIDMPRECORD.

use std::borrow::Cow;

use xxhash_rust::xxh3::Xxh3;

use super::parse::{self, Message};
use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::error::Error;
use crate::protocol::number::IntText;
use crate::types::{IDMP_DURATION, IDMP_MAXSIZE, Idempotence, IdmpLimits, Stream, StreamId};

/// A message's producer, and its idempotent id.
pub(super) struct Identity<'a> {
    pid: &'a [u8],
    iid: Cow<'a, [u8]>,
}

impl<'a> Identity<'a> {
    /// That of the message which XADD is given with these fields.
    pub(super) fn of(message: &Message, args: Args<'a>, fields: Args<'a>) -> Self {
        let iid = match message.iid {
            Some(at) => Cow::Borrowed(args.at(at)),
            None => Cow::Owned(of_content(fields).to_vec()),
        };
        Self { pid: args.at(message.pid), iid }
    }

    /// The entry of the message, if the stream at `key` was given it before.
    pub(super) fn is_known(&self, cx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<StreamId>> {
        let now = cx.now();
        let known = cx.db.stream_mut(key)?.and_then(|stream| stream.idempotence.as_mut());
        Ok(known.and_then(|known| known.find_duplicate(self.pid, &self.iid, now)))
    }

    /// Notes that the message is the entry `id`.
    pub(super) fn note(&self, cx: &mut Ctx<'_>, key: &Key<'_>, id: StreamId) -> Result {
        let (now, limits) = (cx.now(), cx.idmp_limits());
        let stream = cx.db.stream_mut(key)?.ok_or(Error::NoSuchKey)?;
        of_stream(stream, limits).add(self.pid, &self.iid, id, now);
        Ok(())
    }

    /// Has the journal told.
    pub(super) fn say(&self, cx: &Ctx<'_>, key: &Key<'_>, id: StreamId) {
        if cx.is_journaled() {
            cx.instead(&[b"XIDMPRECORD", key.bytes, self.pid, &self.iid, id.to_string().as_bytes()]);
        }
    }
}

/// The idempotent id of a message that has none: the same fields with the same values have the same, in any order.
fn of_content(fields: Args<'_>) -> [u8; 16] {
    let pair = |at: usize| {
        let (name, value) = (fields.at(at * 2), fields.at(at * 2 + 1));
        let mut hash = Xxh3::new();
        hash.update(&(name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(value);
        hash.digest128()
    };
    (0..fields.len() / 2).map(pair).fold(0_u128, u128::wrapping_add).to_be_bytes()
}

/// The idempotent ids of the stream's producers.
fn of_stream(stream: &mut Stream, limits: IdmpLimits) -> &mut Idempotence {
    stream.idempotence.get_or_insert_with(|| Box::new(Idempotence::new(limits)))
}

/// `XCFGSET key [IDMP-DURATION seconds] [IDMP-MAXSIZE count]`
pub(super) fn xcfgset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (mut duration, mut maxsize) = (None, None);
    let mut at = 2;
    while at < args.len() {
        let more = at + 1 < args.len();
        if more && args.is(at, "IDMP-DURATION") {
            let value = u64::try_from(args.int(at + 1)?).ok().filter(|value| IDMP_DURATION.contains(value));
            duration = Some(value.ok_or(Error::Static("ERR IDMP-DURATION must be between 1 and 86400 seconds"))?);
        } else if more && args.is(at, "IDMP-MAXSIZE") {
            let value = u64::try_from(args.int(at + 1)?).ok().filter(|value| IDMP_MAXSIZE.contains(value));
            maxsize = Some(value.ok_or(Error::Static("ERR IDMP-MAXSIZE must be between 1 and 10000 entries"))?);
        } else {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    if duration.is_none() && maxsize.is_none() {
        return Err(Error::Static("ERR At least one parameter must be specified"));
    }
    let (key, limits) = (args.key(0), cx.idmp_limits());
    let stream = cx.db.stream_mut(key)?.ok_or(Error::NoSuchKey)?;
    let known = of_stream(stream, limits);
    let IdmpLimits { duration_s: old_duration, maxsize: old_maxsize } = known.limits();
    let (duration, maxsize) = (duration.unwrap_or(old_duration), maxsize.unwrap_or(old_maxsize));
    known.set_limits(IdmpLimits::new(duration, maxsize).expect("each was looked at, or is in force"));
    cx.reply.ok();
    cx.noticed(key, Event::XCFGSET);
    // Of what was not said, others may have another default.
    let (duration, maxsize) = (IntText::new(duration as i64), IntText::new(maxsize as i64));
    cx.instead(&[b"XCFGSET", key.bytes, b"IDMP-DURATION", &duration, b"IDMP-MAXSIZE", &maxsize]);
    Ok(())
}

/// `XIDMPRECORD key producer-id idempotent-id id`: the record of XADD's idempotent id, for replicas and the AOF.
pub(super) fn xidmprecord(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let id = parse::id(args.at(4))?;
    let (pid, iid) = (args.at(2), args.at(3));
    if pid.is_empty() || iid.is_empty() {
        return Err(Error::Static("ERR producer-id and idempotent-id must not be empty"));
    }
    let (key, now, limits, is_told) = (args.key(0), cx.now(), cx.idmp_limits(), cx.is_told_by_others());
    let stream = cx.db.stream_mut(key)?.ok_or(Error::NoSuchKey)?;
    // From the primary or the AOF, the id of an entry deleted since is valid.
    if !is_told && stream.log.get(id).is_none() {
        return Err(Error::Static("ERR The specified stream ID was deleted or doesn't exist"));
    }
    let known = of_stream(stream, limits);
    match known.find(pid, iid, now) {
        Some(other) if other != id => {
            return Err(Error::Static(
                "ERR The specified IDMP producer-id/idempotent-id pair maps to a different stream ID",
            ));
        }
        Some(_) => {}
        None => {
            known.add(pid, iid, id, now);
            cx.changed_silently(key);
        }
    }
    cx.reply.ok();
    Ok(())
}

impl Ctx<'_> {
    /// The limits of streams of which nothing else was said, from the configuration.
    pub(super) fn idmp_limits(&self) -> IdmpLimits {
        let config = self.config();
        let limit = |setting| config.uint(setting);
        IdmpLimits::new(limit(settings::STREAM_IDMP_DURATION), limit(settings::STREAM_IDMP_MAXSIZE))
            .expect("the table of settings has these bounds")
    }
}

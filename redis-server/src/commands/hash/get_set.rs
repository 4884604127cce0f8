//! Values of several fields, read or set together with their time: HGETEX, HGETDEL, HSETEX.

use super::expire::{end_change, end_persist, moment};
use super::{Fields, reply_values};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::protocol::number::IntText;
use crate::types::Hash;

/// The change to the fields' time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Time {
    /// HGETEX leaves it as it is, HSETEX ends it.
    #[default]
    Unsaid,
    /// It stays (`KEEPTTL`).
    Kept,
    /// It ends (`PERSIST`).
    Persist,
    /// It is this argument, in milliseconds times the unit, from now on or from the epoch.
    Is { index: usize, word: &'static str, unit: u64, is_absolute: bool },
}

/// How a time is given: the word, milliseconds of its unit, and whether it is counted from the epoch.
const UNITS: [(&str, u64, bool); 4] = [("EX", 1000, false), ("PX", 1, false), ("EXAT", 1000, true), ("PXAT", 1, true)];

impl Time {
    /// Takes the word at `at`, which is the last of its command if it `is_last`, for what it says of the time. Returns whether
    /// it is followed by one.
    fn add(&mut self, args: Args<'_>, at: usize, is_last: bool) -> Result<bool> {
        let unit = UNITS.iter().find(|(word, ..)| args.is(at, word)).filter(|_| !is_last);
        let &(word, unit, is_absolute) = unit.ok_or(Error::Syntax)?;
        match self {
            Self::Unsaid => {}
            // The same one again: the last counts.
            Self::Is { word: before, .. } if *before == word => {}
            Self::Is { .. } | Self::Kept | Self::Persist => return Err(Error::Syntax),
        }
        *self = Self::Is { index: at + 1, word, unit, is_absolute };
        Ok(true)
    }

    /// The moment, in milliseconds of Unix time.
    fn moment(self, args: Args<'_>, now: u64, name: &'static str) -> Result<Option<u64>> {
        match self {
            Self::Is { index, unit, is_absolute, .. } => {
                let base = if is_absolute { 0 } else { now };
                moment(args, index, (unit, base), name).map(Some)
            }
            Self::Unsaid | Self::Kept | Self::Persist => Ok(None),
        }
    }
}

/// Under which conditions HSETEX sets.
#[derive(Clone, Copy, Debug, Default)]
struct SetOptions {
    /// NX, XX: whether the key must be there.
    key: Option<bool>,
    /// FNX, FXX: whether all fields must be there, or none.
    fields: Option<bool>,
    time: Time,
}

impl SetOptions {
    fn parse(options: Args<'_>) -> Result<Self> {
        let mut parsed = Self::default();
        let mut at = 0;
        while at < options.len() {
            let word = |word: &str| options.is(at, word);
            let side = |present: &Option<bool>, wanted: bool| *present != Some(!wanted);
            if word("NX") && side(&parsed.key, false) {
                parsed.key = Some(false);
            } else if word("XX") && side(&parsed.key, true) {
                parsed.key = Some(true);
            } else if word("FNX") && side(&parsed.fields, false) {
                parsed.fields = Some(false);
            } else if word("FXX") && side(&parsed.fields, true) {
                parsed.fields = Some(true);
            } else if word("KEEPTTL") && matches!(parsed.time, Time::Unsaid | Time::Kept) {
                parsed.time = Time::Kept;
            } else if parsed.time.add(options, at, at + 1 == options.len())? {
                at += 1;
            }
            at += 1;
        }
        Ok(parsed)
    }

    /// Whether the conditions hold for what the key has.
    fn hold(&self, hash: Option<&Hash>, now: u64, pairs: Args<'_>) -> bool {
        let mut there = (0..pairs.len()).step_by(2).map(|at| hash.is_some_and(|h| h.at(now).contains(pairs.at(at))));
        self.key.is_none_or(|wanted| hash.is_some() == wanted)
            && self.fields.is_none_or(|wanted| there.all(|is_there| is_there == wanted))
    }
}

/// `HSETEX key [NX|XX] [FNX|FXX] [EX seconds|PX milliseconds|EXAT seconds|PXAT milliseconds|KEEPTTL] FIELDS numfields field value
/// [field value …]`
pub(super) fn hsetex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Fields { options, fields: pairs } =
        Fields::find_pairs(args, 2, |options| SetOptions::parse(options).map(drop))?;
    let parsed = SetOptions::parse(options)?;
    let (key, now) = (args.key(0), cx.db.over_by());
    let hash = cx.db.hash_mut(key)?;
    // An unmet condition on the key takes precedence over an invalid time.
    if !(SetOptions { fields: None, ..parsed }).hold(hash.as_deref(), now, pairs) {
        cx.reply.int(0);
        return Ok(());
    }
    let at = parsed.time.moment(options, cx.now(), "hsetex")?;
    if !parsed.hold(cx.db.hash_mut(key)?.as_deref(), now, pairs) {
        cx.reply.int(0);
        return Ok(());
    }
    match at {
        Some(at) if cx.db.is_over(at) => set_over(cx, args, pairs)?,
        _ => set(cx, args, pairs, (at, parsed.time == Time::Kept))?,
    }
    cx.reply.int(1);
    Ok(())
}

/// Sets fields that expire at a moment, or keep the one that they have.
fn set(cx: &mut Ctx<'_>, args: Args<'_>, pairs: Args<'_>, (at, keeps): (Option<u64>, bool)) -> Result {
    let (key, now, limits) = (args.key(0), cx.db.over_by(), cx.hash_limits());
    let hash = cx.db.hash_or_new(key)?;
    let over = hash.take_over_of(now, (0..pairs.len()).step_by(2).map(|at| pairs.at(at)));
    for place in (0..pairs.len()).step_by(2) {
        let (field, value) = (pairs.at(place), pairs.at(place + 1));
        if keeps {
            hash.update(field, value, limits)
        } else {
            hash.set(field, value, limits)
        };
        if at.is_some() {
            hash.expire(field, at);
        }
    }
    cx.fields_expired(key, &over);
    cx.changed(key, Event::HSET);
    if at.is_some() {
        cx.db.fields_expire(key);
        cx.notify(key, Event::HEXPIRE);
    }
    if cx.is_journaled() {
        // Where they are taken for alive, their time must not be kept.
        for field in over.iter().filter(|_| keeps) {
            cx.instead(&[b"HSET", key.bytes, field, b""]);
        }
        let (number, count) = (IntText::new(at.unwrap_or(0) as i64), IntText::new((pairs.len() / 2) as i64));
        let head: &[&[u8]] = match at {
            Some(_) => &[b"HSETEX", key.bytes, b"PXAT", &number, b"FIELDS", &count],
            None if keeps => &[b"HSETEX", key.bytes, b"KEEPTTL", b"FIELDS", &count],
            None => &[b"HSET", key.bytes],
        };
        cx.instead(&head.iter().copied().chain(pairs.iter()).collect::<Vec<_>>());
    }
    Ok(())
}

/// Sets fields whose time is over already: they are removed.
fn set_over(cx: &mut Ctx<'_>, args: Args<'_>, pairs: Args<'_>) -> Result {
    let key = args.key(0);
    let names = (0..pairs.len()).step_by(2).map(|at| pairs.at(at));
    let hash = cx.db.hash_mut(key)?;
    let is_missing = hash.is_none();
    let removed: Vec<&[u8]> = hash.map(|hash| names.filter(|field| hash.remove(field)).collect()).unwrap_or_default();
    cx.db.database().count_expired_fields(pairs.len() / 2);
    if !removed.is_empty() {
        cx.count_changes(1);
        cx.touched(key);
        cx.instead_hdel(key, &removed);
    }
    for event in [Event::HSET, Event::HEXPIRE, Event::HEXPIRED] {
        cx.tell(key, event);
    }
    if is_missing {
        cx.tell(key, Event::DEL);
    }
    cx.drop_if_empty(key);
    Ok(())
}

/// `HGETEX key [EX seconds|PX milliseconds|EXAT seconds|PXAT milliseconds|PERSIST] FIELDS numfields field [field …]`
pub(super) fn hgetex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Fields { options, fields } = Fields::find(args, 2, |options| parse_get(options).map(drop))?;
    let time = parse_get(options)?;
    let (key, now) = (args.key(0), cx.db.over_by());
    let hash = cx.db.live_hash(key)?;
    let at = time.moment(options, cx.now(), "hgetex")?;
    reply_values(cx.reply, hash, fields);
    if time == Time::Unsaid {
        return Ok(());
    }
    let is_over = at.is_some_and(|at| cx.db.is_over(at));
    let Some(hash) = cx.db.hash_mut(key)? else { return Ok(()) };
    let mut changed: Vec<&[u8]> = Vec::new();
    for field in fields.iter() {
        let is_changed = match (hash.at(now).deadline(field), at) {
            (None, _) | (Some(None), None) => false,
            (Some(_), Some(_)) if is_over => hash.remove(field),
            (Some(_), at) => hash.expire(field, at),
        };
        changed.extend(is_changed.then_some(field));
    }
    match at {
        _ if changed.is_empty() => {}
        None => end_persist(cx, args, &changed),
        Some(at) => end_change(cx, args, (!is_over).then_some(at), &changed),
    }
    Ok(())
}

fn parse_get(options: Args<'_>) -> Result<Time> {
    let (mut time, mut at) = (Time::default(), 0);
    while at < options.len() {
        if options.is(at, "PERSIST") && matches!(time, Time::Unsaid | Time::Persist) {
            time = Time::Persist;
        } else if time.add(options, at, at + 1 == options.len())? {
            at += 1;
        }
        at += 1;
    }
    Ok(time)
}

/// `HGETDEL key FIELDS numfields field [field …]`
pub(super) fn hgetdel(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let fields = Fields::at_once(args, Fields::MISMATCH)?;
    let (key, now) = (args.key(0), cx.db.over_by());
    let mut hash = cx.db.hash_mut(key)?;
    let mut removed: Vec<&[u8]> = Vec::new();
    cx.reply.array(fields.len());
    for field in fields.iter() {
        let value = hash.as_ref().and_then(|hash| hash.at(now).get(field));
        match value {
            Some(value) => cx.reply.bulk(&value),
            None => {
                cx.reply.null();
                continue;
            }
        }
        if hash.as_mut().is_some_and(|hash| hash.remove(field)) {
            removed.push(field);
        }
    }
    if !removed.is_empty() {
        cx.changed(key, Event::HDEL);
        cx.instead_hdel(key, &removed);
        cx.drop_if_empty(key);
    }
    Ok(())
}

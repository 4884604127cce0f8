//! Places (<https://redis.io/docs/latest/commands/?group=geo>): members of sorted sets whose scores say where they are.

mod search;

use super::sorted_set::{self, AddRule};
use crate::command::{Args, Categories, Flags, KeySpec, Result, Weight, optional, read, update, weight, write};
use crate::commands::definition::{Family, cmd};
use crate::exec::core::Ctx;
use crate::keyspace::Access;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::geohash::Place;

/// `GEOADD key [NX|XX] [CH] longitude latitude member [longitude latitude member …]`
fn geoadd(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let mut rule = AddRule::default();
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "NX") {
            rule.nx = true;
        } else if args.is(at, "XX") {
            rule.xx = true;
        } else if args.is(at, "CH") {
            rule.ch = true;
        } else {
            break;
        }
        at += 1;
    }
    let places = args.from(at);
    if !places.len().is_multiple_of(3) || rule.nx && rule.xx || places.is_empty() {
        return Err(Error::Syntax);
    }
    let scores: Result<Vec<f64>> =
        (0..places.len()).step_by(3).map(|at| Ok(place(places, at)?.score() as f64)).collect();
    sorted_set::add_scored(cx, args.key(0), rule, &scores?, places.from(2), 3)
}

/// The place that arguments `at` and `at + 1` name: longitude and latitude.
fn place(args: Args<'_>, at: usize) -> Result<Place> {
    let place = Place { longitude: args.float(at)?, latitude: args.float(at + 1)? };
    if !place.is_valid() {
        let Place { longitude, latitude } = place;
        return Err(Error::Message(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")));
    }
    Ok(place)
}

/// Meters of the unit that a word names.
fn unit(word: &[u8]) -> Result<f64> {
    match word.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(Error::Static("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

/// Appends a distance with four decimals.
fn reply_distance(reply: &mut Reply, distance: f64) {
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    let sign = if scaled < 0 { "-" } else { "" };
    let scaled = scaled.unsigned_abs();
    reply.bulk(format!("{sign}{}.{:04}", scaled / 10_000, scaled % 10_000).as_bytes());
}

/// Appends a place: longitude and latitude.
fn reply_place(reply: &mut Reply, place: Place) {
    reply.array(2);
    for value in [place.longitude, place.latitude] {
        let text = format!("{value:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        reply.decimal(if text == "-0" { "0" } else { text });
    }
}

/// `GEODIST key member1 member2 [M|KM|FT|MI]`
fn geodist(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let unit = match args.len() {
        4 => 1.0,
        5 => unit(args.at(4))?,
        _ => return Err(Error::Syntax),
    };
    let set = cx.db.sorted_set(args.key(0))?;
    let score = |at| set.and_then(|set| set.score(args.at(at)));
    match score(2).zip(score(3)) {
        Some((one, other)) => {
            reply_distance(cx.reply, Place::of_score(one).distance(Place::of_score(other)) / unit);
        }
        None => cx.reply.null(),
    }
    Ok(())
}

/// `GEOHASH key [member …]`
fn geohash(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.sorted_set(args.key(0))?;
    cx.reply.array(args.len() - 2);
    for member in args.from(2).iter() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => cx.reply.bulk(&Place::of_score(score).geohash()),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// `GEOPOS key [member …]`
fn geopos(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.sorted_set(args.key(0))?;
    cx.reply.array(args.len() - 2);
    for member in args.from(2).iter() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => reply_place(cx.reply, Place::of_score(score)),
            None => cx.reply.null_array(),
        }
    }
    Ok(())
}

const READ: Flags = Flags::READONLY;
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);
const SOURCE: KeySpec = read(1);

/// Where a radius query may store its result.
const fn stored(word: &'static str, from: i8) -> KeySpec {
    optional(word, from, Access::Write, "OW update")
}

const RADIUS: &[KeySpec] = &[SOURCE, stored("STORE", 6), stored("STOREDIST", 6)];
const BY_MEMBER: &[KeySpec] = &[SOURCE, stored("STORE", 5), stored("STOREDIST", 5)];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "geo", category: Categories::GEO, commands: &[
    cmd("geoadd",               -5, geoadd,                       GROW, &[update(1).flags("RW update")]),
    cmd("geodist",              -4, geodist,                      READ, &[SOURCE]),
    cmd("geohash",              -2, geohash,                      READ, &[SOURCE]),
    cmd("geopos",               -2, geopos,                       READ, &[SOURCE]),
    cmd("georadius",            -6, search::georadius,            GROW, RADIUS).finder(search::radius_keys).weighs(Weight::Of(weight::values)),
    cmd("georadius_ro",         -6, search::georadius_ro,         READ, &[SOURCE]).weighs(Weight::Of(weight::values)),
    cmd("georadiusbymember",    -5, search::georadiusbymember,    GROW, BY_MEMBER).finder(search::radius_keys).weighs(Weight::Of(weight::values)),
    cmd("georadiusbymember_ro", -5, search::georadiusbymember_ro, READ, &[SOURCE]).weighs(Weight::Of(weight::values)),
    cmd("geosearch",            -7, search::geosearch,            READ, &[SOURCE]).weighs(Weight::Of(weight::values)),
    cmd("geosearchstore",       -8, search::geosearchstore,       GROW, &[write(1), read(2)]).weighs(Weight::Of(weight::values)),
] };

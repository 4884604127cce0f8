//! Which members are near a place.

use std::ops::Bound;

use super::{place, reply_distance, reply_place, unit};
use crate::command::{Args, KeyPositions, Result};
use crate::commands::store::store;
use crate::config::Level;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Access, Key, Object, ValueRef, View};
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo, shown};
use crate::types::geohash::{Place, Shape, signed};
use crate::types::{ScoreRange, SortedSet, SortedSetBuilder, Text};

/// Longest command name that an error repeats, in bytes.
const MAX_NAME: usize = 128;

/// `GEORADIUS key longitude latitude radius M|KM|FT|MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC|DESC]
/// [STORE key|STOREDIST key]`
pub(super) fn georadius(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    radius(cx, args, From::LonLat, true)
}

/// GEORADIUS_RO, which stores nothing
pub(super) fn georadius_ro(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    radius(cx, args, From::LonLat, false)
}

/// `GEORADIUSBYMEMBER key member radius M|KM|FT|MI …`, with the options of GEORADIUS
pub(super) fn georadiusbymember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    radius(cx, args, From::Member, true)
}

/// GEORADIUSBYMEMBER_RO, which stores nothing
pub(super) fn georadiusbymember_ro(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    radius(cx, args, From::Member, false)
}

/// `GEOSEARCH key FROMMEMBER member|FROMLONLAT longitude latitude BYRADIUS radius M|KM|FT|MI|BYBOX width height
/// M|KM|FT|MI [ASC|DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`, or in place of both: `BYPOLYGON count longitude
/// latitude [longitude latitude …]`
pub(super) fn geosearch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.sorted_set(args.key(0))?;
    let query = Query { kind: Kind::Search, level: cx.config().level(), ..Query::default() }.read(args, 2, set)?;
    answer(cx, args.key(0), &query)
}

/// `GEOSEARCHSTORE destination source …`, with the options of GEOSEARCH, and STOREDIST
pub(super) fn geosearchstore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.sorted_set(args.key(1))?;
    let query = Query { kind: Kind::SearchStore, level: cx.config().level(), ..Query::default() }.read(args, 3, set)?;
    keep(cx, args.key(1), args.key(0), &query)
}

/// Where a radius query begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum From {
    LonLat,
    Member,
}

/// The keys of GEORADIUS and GEORADIUSBYMEMBER: behind the source, the last one that a result is to be stored at.
pub(super) fn radius_keys(args: Args<'_>) -> KeyPositions {
    const FIRST_OPTION: usize = 5;
    let mut keys = KeyPositions::new();
    keys.push((1, Access::Read));
    let mut target = None;
    let mut at = FIRST_OPTION;
    while at + 1 < args.len() {
        if args.is(at, "STORE") || args.is(at, "STOREDIST") {
            target = Some((at + 1, Access::Write));
            at += 1;
        }
        at += 1;
    }
    keys.extend(target);
    keys
}

/// GEORADIUS and its kin.
fn radius(cx: &mut Ctx<'_>, args: Args<'_>, from: From, may_store: bool) -> Result {
    let set = cx.db.sorted_set(args.key(0))?;
    let level = cx.config().level();
    let kind = if may_store { Kind::RadiusStore } else { Kind::Radius };
    let mut query = Query { kind, level, ..Query::default() };
    let options = if from == From::LonLat {
        query.centre = Some(place(args, 2)?);
        6
    } else {
        query.centre = set.map(|set| member_place(set, args.at(2), level)).transpose()?;
        5
    };
    // Without a set the genuine server does not look at a member's radius.
    if from == From::LonLat || set.is_some() {
        query.shape = Some(circle(args, options - 2, &mut query.unit)?);
    }
    let query = query.read(args, options, set)?;
    match (query.target, args.keys()) {
        (Some(_), [source, target]) => keep(cx, source, target, &query),
        _ => answer(cx, args.key(0), &query),
    }
}

/// The place of a member. The error for a missing member depends on the level.
fn member_place(set: &SortedSet, member: &[u8], level: Level) -> Result<Place> {
    let missing = || {
        if level.is_valkey() {
            return Error::Message(format!("ERR member {} does not exist", shown(member)));
        }
        Error::Static("ERR could not decode requested zset member")
    };
    let score = set.score(member).ok_or_else(missing)?;
    Ok(Place::of_score(score))
}

/// A length of argument `at`.
fn length(args: Args<'_>, at: usize, error: &'static str) -> Result<f64> {
    args.float(at).map_err(|_| Error::Static(error))
}

/// The circle whose radius and unit stand at argument `at`.
fn circle(args: Args<'_>, at: usize, meters: &mut f64) -> Result<Shape> {
    let radius = length(args, at, "ERR need numeric radius")?;
    if radius < 0.0 {
        return Err(Error::Static("ERR radius cannot be negative"));
    }
    *meters = unit(args.at(at + 1))?;
    Ok(Shape::Circle(radius * *meters))
}

/// The rectangle whose sides and unit stand at argument `at`.
fn rect(args: Args<'_>, at: usize, meters: &mut f64) -> Result<Shape> {
    let width = length(args, at, "ERR need numeric width")?;
    let height = length(args, at + 1, "ERR need numeric height")?;
    if width < 0.0 || height < 0.0 {
        return Err(Error::Static("ERR height or width cannot be negative"));
    }
    *meters = unit(args.at(at + 2))?;
    Ok(Shape::Rect { width: width * *meters, height: height * *meters })
}

/// The polygon whose number of corners stands at argument `at`, with the corners behind it; and where it ends.
fn polygon(args: Args<'_>, at: usize) -> Result<(Vec<Place>, usize)> {
    const LEAST: usize = 3;
    let count = args.int(at).map_err(|_| Error::Static("ERR invalid number of vertices"))?;
    let fits = |count: &usize| *count >= LEAST && *count <= (args.len() - at - 1) / 2;
    let count = usize::try_from(count).ok().filter(fits);
    let count = count.ok_or(Error::Static("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"))?;
    let corners: Result<Vec<_>> = (0..count).map(|corner| place(args, at + 1 + 2 * corner)).collect();
    Ok((corners?, at + 1 + 2 * count))
}

/// Which command it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
    #[default]
    Radius,
    RadiusStore,
    Search,
    SearchStore,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Ascending,
    Descending,
}

/// The query that the options describe.
#[derive(Clone, Debug, Default)]
struct Query<'a> {
    kind: Kind,
    level: Level,
    centre: Option<Place>,
    /// Whether the centre was given as that of a member that cannot be looked up, or any other.
    from_member: bool,
    from_place: bool,
    shape: Option<Shape>,
    /// Meters of the unit that distances are told in.
    unit: f64,
    with_distance: bool,
    with_hash: bool,
    with_place: bool,
    order: Option<Order>,
    /// 0 is all.
    count: usize,
    any: bool,
    /// The key to store at, by STORE or STOREDIST.
    target: Option<&'a [u8]>,
    store_distance: bool,
}

impl<'a> Query<'a> {
    fn is_search(&self) -> bool {
        matches!(self.kind, Kind::Search | Kind::SearchStore)
    }

    /// Reads the options from argument `at` on.
    fn read(mut self, args: Args<'a>, mut at: usize, set: Option<&SortedSet>) -> Result<Self> {
        while at < args.len() {
            at = match self.flag(args, at) {
                Some(()) => at + 1,
                None => self.option(args, at, set)?,
            };
        }
        self.check(args)
    }

    /// An option of one word.
    fn flag(&mut self, args: Args<'_>, at: usize) -> Option<()> {
        let is = |word| args.is(at, word);
        if is("WITHDIST") {
            self.with_distance = true;
        } else if is("WITHHASH") {
            self.with_hash = true;
        } else if is("WITHCOORD") {
            self.with_place = true;
        } else if is("ANY") {
            self.any = true;
        } else if is("ASC") {
            self.order = Some(Order::Ascending);
        } else if is("DESC") {
            self.order = Some(Order::Descending);
        } else if is("STOREDIST") && self.kind == Kind::SearchStore {
            self.store_distance = true;
        } else {
            return None;
        }
        Some(())
    }

    /// An option with arguments; returns the position behind them.
    fn option(&mut self, args: Args<'a>, at: usize, set: Option<&SortedSet>) -> Result<usize> {
        let more = args.len() - at - 1;
        let search = |word| self.is_search() && args.is(at, word);
        let by_box = matches!(self.shape, Some(Shape::Rect { .. } | Shape::Polygon(_)));
        let by_radius = matches!(self.shape, Some(Shape::Circle(_) | Shape::Polygon(_)));
        let by_polygon = matches!(self.shape, Some(Shape::Polygon(_)));
        let has_centre = self.from_place || self.from_member;
        if args.is(at, "COUNT") && more > 0 {
            let count = usize::try_from(args.int(at + 1)?).ok().filter(|&count| count > 0);
            self.count = count.ok_or(Error::Static("ERR COUNT must be > 0"))?;
            Ok(at + 2)
        } else if self.kind == Kind::RadiusStore && more > 0 && (args.is(at, "STORE") || args.is(at, "STOREDIST")) {
            self.target = Some(args.at(at + 1));
            self.store_distance = args.is(at, "STOREDIST");
            Ok(at + 2)
        } else if search("FROMMEMBER") && more > 0 && !self.from_place && !by_polygon {
            self.centre = set.map(|set| member_place(set, args.at(at + 1), self.level)).transpose()?;
            self.from_member = true;
            Ok(at + 2)
        } else if search("FROMLONLAT") && more > 1 && !self.from_member && !by_polygon {
            self.centre = Some(place(args, at + 1)?);
            self.from_place = true;
            Ok(at + 3)
        } else if search("BYRADIUS") && more > 1 && !by_box {
            self.shape = Some(circle(args, at + 1, &mut self.unit)?);
            Ok(at + 3)
        } else if search("BYBOX") && more > 2 && !by_radius {
            self.shape = Some(rect(args, at + 1, &mut self.unit)?);
            Ok(at + 4)
        } else if search("BYPOLYGON") && more > 0 && !has_centre && (self.shape.is_none() || by_polygon) {
            let (corners, end) = polygon(args, at + 1)?;
            (self.centre, self.unit) = (Some(Place::middle(&corners)), 1.0);
            self.shape = Some(Shape::Polygon(corners.into()));
            Ok(end)
        } else {
            Err(Error::Syntax)
        }
    }

    /// Refuses options that do not go together.
    fn check(self, args: Args<'_>) -> Result<Self> {
        let stores = self.target.is_some() || self.kind == Kind::SearchStore;
        if stores && (self.with_distance || self.with_hash || self.with_place) {
            let what = if self.is_search() { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(Error::Message(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let name = || echo(args.at(0), MAX_NAME);
        let by_polygon = matches!(self.shape, Some(Shape::Polygon(_)));
        if self.is_search() && !(self.from_member || self.from_place || by_polygon) {
            let text = format!("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {}", name());
            return Err(Error::Message(text));
        }
        if self.is_search() && self.shape.is_none() {
            let shapes = if self.level.is_valkey() { "BYRADIUS, BYBOX and BYPOLYGON" } else { "BYRADIUS and BYBOX" };
            let text = format!("ERR exactly one of {shapes} can be specified for {}", name());
            return Err(Error::Message(text));
        }
        if self.any && self.count == 0 {
            return Err(Error::Static("ERR the ANY argument requires COUNT argument"));
        }
        Ok(self)
    }

    /// The members that are found, in order.
    fn run<'s>(&self, set: &'s SortedSet) -> Vec<Found<'s>> {
        let (Some(centre), Some(shape)) = (self.centre, &self.shape) else { return Vec::new() };
        let most = if self.any { self.count } else { usize::MAX };
        let mut found = Vec::new();
        for cell in shape.cells(centre) {
            let (min, max) = cell.scores();
            let range = ScoreRange { min: Bound::Included(min as f64), max: Bound::Excluded(max as f64) };
            for (member, score) in set.range(set.ranks_by_score(&range)) {
                let place = Place::of_score(score);
                if let Some(distance) = shape.reach(centre, place) {
                    found.push(Found { member, score, place, distance });
                }
                if found.len() >= most {
                    return self.sorted(found);
                }
            }
        }
        self.sorted(found)
    }

    /// A count without order means the nearest ones, unless any will do.
    fn sorted<'s>(&self, mut found: Vec<Found<'s>>) -> Vec<Found<'s>> {
        let nearest = self.count > 0 && !self.any;
        match self.order.or_else(|| nearest.then_some(Order::Ascending)) {
            Some(Order::Ascending) => found.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
            Some(Order::Descending) => found.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
            None => {}
        }
        if self.count > 0 {
            found.truncate(self.count);
        }
        found
    }
}

/// A member in the shape.
struct Found<'s> {
    member: Text<'s>,
    score: f64,
    place: Place,
    /// From the centre, in meters.
    distance: f64,
}

/// The set at a key that was looked up, and counted, before.
fn counted<'v>(view: &'v View<'_>, key: &Key<'_>) -> Option<&'v SortedSet> {
    let ValueRef::SortedSet(set) = view.peek(key)?.value() else { return None };
    Some(set)
}

/// Answers with what is found.
fn answer(cx: &mut Ctx<'_>, key: &Key<'_>, query: &Query<'_>) -> Result {
    let Some(set) = counted(&cx.db, key) else {
        cx.reply.array(0);
        return Ok(());
    };
    let found = query.run(set);
    let reply: &mut Reply = cx.reply;
    let extras = [query.with_distance, query.with_hash, query.with_place].into_iter().filter(|with| *with).count();
    reply.array(found.len());
    for Found { member, score, place, distance } in found {
        if extras > 0 {
            reply.array(extras + 1);
        }
        reply.bulk(&member);
        if query.with_distance {
            reply_distance(reply, distance / query.unit);
        }
        if query.with_hash {
            reply.int(signed(score));
        }
        if query.with_place {
            reply_place(reply, place);
        }
    }
    Ok(())
}

/// Stores what is found, and answers how much that is.
fn keep(cx: &mut Ctx<'_>, source: &Key<'_>, target: &Key<'_>, query: &Query<'_>) -> Result {
    let mut result = SortedSetBuilder::default();
    if let Some(set) = counted(&cx.db, source) {
        for Found { member, score, distance, .. } in query.run(set) {
            let score = if query.store_distance { distance / query.unit } else { score };
            // Neighbouring cells can be the same one: then a member is found twice.
            result.merge(&member, score, |_, score| score);
        }
    }
    let result = result.finish(cx.sorted_set_limits());
    let event = if query.is_search() { Event::GEOSEARCHSTORE } else { Event::GEORADIUSSTORE };
    store(cx, target, result.len(), Object::SortedSet(Box::new(result)), event);
    Ok(())
}

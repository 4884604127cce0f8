//! VADD, VREM and VSETATTR.

use super::{Given, INVALID_VECTOR, behind_vector, option, positive, stored};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::keyspace::View;
use crate::protocol::error::Error;
use crate::types::vector_set::{
    FACTORS_UNIT, MAX_DIMENSIONS, MAX_M, Projection, Quantization, VectorSet, VectorSetError, VectorSetOptions,
};

/// Candidates for the links of a new element.
const EF: usize = 200;
/// The most that may be asked for.
const MAX_EF: usize = 1_000_000;
/// The fewest links per element that may be asked for.
const MIN_M: usize = 4;

/// The arguments of VADD.
struct Addition<'a> {
    /// Dimensions that are kept (REDUCE).
    reduce: Option<usize>,
    vector: Vec<f32>,
    element: &'a [u8],
    attributes: Option<&'a [u8]>,
    quantization: Quantization,
    ef: Option<usize>,
    m: usize,
}

impl<'a> Addition<'a> {
    fn parse(args: Args<'a>) -> Result<Self> {
        let has_reduce = args.len() > 4 && args.is(2, "REDUCE");
        let dimensions = || positive(args, 3).filter(|dimensions| *dimensions <= MAX_DIMENSIONS);
        let reduce = if has_reduce { Some(dimensions().ok_or(INVALID_VECTOR)?) } else { None };
        let Given { vector, end } = Given::parse(args, if has_reduce { 4 } else { 2 }).ok_or(INVALID_VECTOR)?;
        let element = args.get(end).ok_or_else(|| Error::WrongArity("vadd".into()))?;
        let (quantization, m) = (Quantization::default(), VectorSetOptions::default().m);
        let mut addition = Self { reduce, vector, element, attributes: None, quantization, ef: None, m };
        let mut at = end + 1;
        while at < args.len() {
            at += addition.option(args, at)?;
        }
        Ok(addition)
    }

    /// Reads the option at argument `at`. Returns how many arguments it has.
    fn option(&mut self, args: Args<'a>, at: usize) -> Result<usize> {
        let value = args.get(at + 1);
        match () {
            // A search for neighbours holds up only calls for the same key, if it takes long.
            () if args.is(at, "CAS") => {}
            () if args.is(at, "NOQUANT") => self.quantization = Quantization::None,
            () if args.is(at, "BIN") => self.quantization = Quantization::Binary,
            () if args.is(at, "Q8") => self.quantization = Quantization::Q8,
            () if args.is(at, "EF") && value.is_some() => {
                let ef = positive(args, at + 1).filter(|ef| *ef <= MAX_EF);
                self.ef = Some(ef.ok_or(Error::Static("ERR invalid EF"))?);
                return Ok(2);
            }
            () if args.is(at, "M") && value.is_some() => {
                let m = positive(args, at + 1).filter(|m| (MIN_M..=MAX_M).contains(m));
                self.m = m.ok_or(Error::Static("ERR invalid M"))?;
                return Ok(2);
            }
            () if args.is(at, "SETATTR") && value.is_some() => {
                self.attributes = value;
                return Ok(2);
            }
            () => return Err(Error::Static("ERR invalid option after element")),
        }
        Ok(1)
    }

    /// The set that a call without one makes.
    fn make(&self) -> Result<VectorSet> {
        let project = |output| Projection::hadamard(self.vector.len(), output);
        let projection = self.reduce.map(project).transpose().map_err(refused)?;
        let options = VectorSetOptions { quantization: self.quantization, projection, m: self.m };
        VectorSet::new(self.vector.len(), options).map_err(refused)
    }

    /// A set takes such elements.
    fn check(&self, set: &VectorSet) -> Result {
        let VectorSetOptions { quantization, projection, m } = set.options();
        if *quantization != self.quantization {
            return Err(Error::Static("ERR asked quantization mismatch with existing vector set"));
        }
        if *m != self.m {
            return Err(Error::Static("ERR asked M value mismatch with existing vector set"));
        }
        let (given, expected) = (self.vector.len(), set.dimensions());
        let asked = if projection.is_some() { self.reduce.unwrap_or(0) } else { given };
        if asked != expected {
            return Err(refused(VectorSetError::Dimensions { given, expected, is_projected: false }));
        }
        if self.reduce.is_some() && projection.is_none() {
            return Err(Error::Static("ERR cannot add projection to existing set without projection"));
        }
        Ok(())
    }
}

pub(super) fn refused(why: VectorSetError) -> Error {
    Error::Message(format!("ERR {why}"))
}

/// `VADD key [REDUCE dim] (FP32|VALUES num) vector element [CAS] [NOQUANT|Q8|BIN] [EF build-exploration-factor] [SETATTR attributes]
/// [M numlinks]`
pub(super) fn vadd(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (key, addition) = (args.key(0), Addition::parse(args)?);
    let is_new = match cx.db.vector_set(key)? {
        Some(set) => addition.check(set).map(|()| false)?,
        None => {
            let set = addition.make()?;
            *cx.db.vector_set_or_new(key)? = set;
            true
        }
    };
    let set = cx.db.vector_set_or_new(key)?;
    let added = set.add(addition.element, &addition.vector, addition.ef).map_err(refused);
    if let (Ok(_), Some(attributes)) = (&added, addition.attributes) {
        set.set_attributes(addition.element, attributes);
    }
    if is_new && added.is_err() {
        cx.db.remove(key);
    }
    cx.reply.boolean(added?);
    // As in Redis, vector sets have no events of their own.
    cx.changed_silently(key);
    Ok(())
}

/// A search for neighbours, and the projection.
pub(super) fn weight(view: &View<'_>, args: Args<'_>) -> usize {
    let (at, reduce) =
        if args.is(2, "REDUCE") { (4, positive(args, 3).unwrap_or(0).min(MAX_DIMENSIONS)) } else { (2, 0) };
    let end = if at < args.len() { behind_vector(args, at) } else { return 0 };
    let given = (end - at).max(args.get(at + 1).map_or(0, <[u8]>::len) / size_of::<f32>());
    let ef = option(args, end, "EF").unwrap_or(EF);
    let search = stored(view, args).map_or(0, |set| set.work_of_search(ef));
    search.saturating_add(given.saturating_mul(reduce) / FACTORS_UNIT)
}

/// VREM key element
pub(super) fn vrem(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let Some(set) = cx.db.vector_set_mut(key)? else {
        cx.reply.boolean(false);
        return Ok(());
    };
    let (was_there, is_empty) = (set.remove(args.at(2)), set.is_empty());
    cx.reply.boolean(was_there);
    if was_there {
        cx.changed_silently(key);
    }
    if is_empty && let Some(entry) = cx.db.remove(key) {
        cx.discard(entry, false);
    }
    Ok(())
}

/// The former neighbours are linked to each other.
pub(super) fn weight_of_removal(view: &View<'_>, args: Args<'_>) -> usize {
    let Some(set) = stored(view, args) else { return 0 };
    set.work_of_search(2 * set.options().m)
}

/// VSETATTR key element attributes
pub(super) fn vsetattr(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let set = cx.db.vector_set_mut(key)?;
    let is_set = set.is_some_and(|set| set.set_attributes(args.at(2), args.at(3)));
    if is_set {
        cx.changed_silently(key);
    }
    cx.reply.boolean(is_set);
    Ok(())
}

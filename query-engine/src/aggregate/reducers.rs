//! Reducers of GROUPBY.

use std::collections::HashSet;

use crate::expr::Datum;

/// The function of a reducer.
#[derive(Clone, Debug, PartialEq)]
pub enum ReducerKind {
    /// Rows.
    Count,
    /// Distinct values. COUNT_DISTINCTISH, which estimates, is the same here.
    CountDistinct(String),
    /// The sum of numbers.
    Sum(String),
    /// The least number; 0 if there are none.
    Min(String),
    /// The greatest number; 0 if there are none.
    Max(String),
    /// The sum of numbers over all rows, also those without a number.
    Average(String),
    /// The standard deviation of a sample.
    Deviation(String),
    /// The number below which this part, 0 to 1, of all numbers lies.
    Quantile(String, f64),
    /// Distinct values as a list.
    ToList(String),
    /// A value of the first row, or of the first by the order of another property.
    FirstValue {
        /// The value's property.
        name: String,
        /// The property of the order, and whether it rises.
        by: Option<(String, bool)>,
    },
    /// Some values, each as likely as any other. The same rows give the same sample.
    RandomSample(String, usize),
}

/// A reducer and the name of its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Reducer {
    /// Its function.
    pub kind: ReducerKind,
    /// The property with its result (AS).
    pub name: String,
}

impl Reducer {
    /// The property that it reduces.
    fn property(&self) -> Option<&str> {
        match &self.kind {
            ReducerKind::Count => None,
            ReducerKind::CountDistinct(name)
            | ReducerKind::Sum(name)
            | ReducerKind::Min(name)
            | ReducerKind::Max(name)
            | ReducerKind::Average(name)
            | ReducerKind::Deviation(name)
            | ReducerKind::Quantile(name, _)
            | ReducerKind::ToList(name)
            | ReducerKind::FirstValue { name, .. }
            | ReducerKind::RandomSample(name, _) => Some(name),
        }
    }

    /// The names of all properties that it reads.
    pub fn reads(&self) -> impl Iterator<Item = &str> {
        let by = if let ReducerKind::FirstValue { by: Some((name, _)), .. } = &self.kind {
            Some(name.as_str())
        } else {
            None
        };
        self.property().into_iter().chain(by)
    }
}

/// The state of a reducer for one group.
#[derive(Clone, Debug)]
pub(super) enum State {
    Count(u64),
    Distinct(HashSet<Vec<u8>>),
    /// Rows, and the sum of numbers.
    Sum(u64, f64),
    Extreme(f64),
    /// Welford's: numbers, mean, and the sum of squared distances from it.
    Deviation(u64, f64, f64),
    Numbers(Vec<f64>),
    List(HashSet<Vec<u8>>, Vec<Datum>),
    /// The value, and what it is first by.
    First(Option<(Datum, Datum)>),
    /// Values seen, those kept, and the state of the generator.
    Sample(u64, Vec<Datum>, u64),
}

impl State {
    pub(super) fn new(reducer: &Reducer) -> Self {
        match &reducer.kind {
            ReducerKind::Count => Self::Count(0),
            ReducerKind::CountDistinct(_) => Self::Distinct(HashSet::new()),
            ReducerKind::Sum(_) | ReducerKind::Average(_) => Self::Sum(0, 0.0),
            ReducerKind::Min(_) => Self::Extreme(f64::INFINITY),
            ReducerKind::Max(_) => Self::Extreme(f64::NEG_INFINITY),
            ReducerKind::Deviation(_) => Self::Deviation(0, 0.0, 0.0),
            ReducerKind::Quantile(..) => Self::Numbers(Vec::new()),
            ReducerKind::ToList(_) => Self::List(HashSet::new(), Vec::new()),
            ReducerKind::FirstValue { .. } => Self::First(None),
            ReducerKind::RandomSample(..) => Self::Sample(0, Vec::new(), 0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Adds a row's value of the reducer's property, and of the one that it is ordered by.
    pub(super) fn add(&mut self, reducer: &Reducer, value: Option<&Datum>, by: Option<&Datum>) {
        match self {
            Self::Count(count) => *count += 1,
            Self::Distinct(seen) => {
                if let Some(value) = value.filter(|value| **value != Datum::Null) {
                    seen.insert(key(value));
                }
            }
            Self::Sum(count, sum) => {
                *count += 1;
                *sum += value.and_then(Datum::number).unwrap_or_default();
            }
            Self::Extreme(extreme) => {
                let is_min = matches!(reducer.kind, ReducerKind::Min(_));
                if let Some(number) = value.and_then(Datum::number) {
                    *extreme = if is_min { extreme.min(number) } else { extreme.max(number) };
                }
            }
            Self::Deviation(count, mean, squares) => {
                for number in numbers(value) {
                    *count += 1;
                    let before = number - *mean;
                    *mean += before / *count as f64;
                    *squares += before * (number - *mean);
                }
            }
            Self::Numbers(all) => all.extend(numbers(value)),
            Self::List(seen, list) => {
                let new = items(value).iter().filter(|item| seen.insert(key(item)));
                list.extend(new.cloned());
            }
            Self::First(first) => add_first(first, reducer, value, by),
            Self::Sample(seen, kept, random) => {
                let ReducerKind::RandomSample(_, size) = &reducer.kind else { return };
                *seen += 1;
                let value = value.cloned().unwrap_or(Datum::Null);
                if kept.len() < *size {
                    kept.push(value);
                    return;
                }
                // Reservoir sampling: the nth value replaces one with the chance size ÷ n.
                *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if let Some(place) = kept.get_mut(((*random >> 33) % *seen) as usize) {
                    *place = value;
                }
            }
        }
    }

    pub(super) fn finish(self, reducer: &Reducer) -> Datum {
        match self {
            Self::Count(count) => Datum::Number(count as f64),
            Self::Distinct(seen) => Datum::Number(seen.len() as f64),
            Self::Sum(count, sum) => {
                let is_mean = matches!(reducer.kind, ReducerKind::Average(_));
                Datum::Number(if is_mean { sum / count.max(1) as f64 } else { sum })
            }
            Self::Extreme(extreme) => Datum::Number(if extreme.is_finite() { extreme } else { 0.0 }),
            Self::Deviation(count, _, squares) => {
                Datum::Number(if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 })
            }
            Self::Numbers(mut all) => {
                let ReducerKind::Quantile(_, part) = reducer.kind else { return Datum::Null };
                all.sort_unstable_by(f64::total_cmp);
                let at = ((all.len() as f64 * part).ceil() as usize).clamp(1, all.len().max(1)) - 1;
                Datum::Number(all.get(at).copied().unwrap_or_default())
            }
            Self::List(_, list) | Self::Sample(_, list, _) => Datum::List(list.into()),
            Self::First(first) => first.map_or(Datum::Null, |(value, _)| value),
        }
    }
}

fn add_first(first: &mut Option<(Datum, Datum)>, reducer: &Reducer, value: Option<&Datum>, by: Option<&Datum>) {
    let ReducerKind::FirstValue { by: order, .. } = &reducer.kind else { return };
    let order = order.as_ref().map(|(_, rises)| (by.unwrap_or(&Datum::Null), *rises));
    let is_first = match (&*first, &order) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(_), Some((Datum::Null, _))) => false,
        (Some((_, Datum::Null)), Some(_)) => true,
        (Some((_, known)), Some((new, rises))) => {
            let order = new.order(known);
            if *rises { order.is_lt() } else { order.is_gt() }
        }
    };
    if is_first {
        let order = order.map_or(Datum::Null, |(order, _)| order.clone());
        *first = Some((value.cloned().unwrap_or(Datum::Null), order));
    }
}

fn key(value: &Datum) -> Vec<u8> {
    let mut key = Vec::new();
    value.key(&mut key);
    key
}

/// The items of a list, or the value itself.
fn items(value: Option<&Datum>) -> &[Datum] {
    match value {
        None => &[],
        Some(Datum::List(list)) => list,
        Some(value) => std::slice::from_ref(value),
    }
}

fn numbers(value: Option<&Datum>) -> impl Iterator<Item = f64> {
    items(value).iter().filter_map(Datum::number)
}

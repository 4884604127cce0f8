//! The effect of each step on a table.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::reducers::{Reducer, State};
use super::rows::{Named, Table};
use super::{AggregateError, Step, order};
use crate::expr::{Datum, Expression};

/// The table behind a step. A step that needs all rows fails with the rows before it.
pub(super) fn run(step: &Step, mut table: Table) -> Result<Table, AggregateError> {
    match step {
        Step::Apply { expression, name } => Ok(apply(expression, name, table)),
        Step::Filter(expression) => Ok(filter(expression, table)),
        // The source has loaded it.
        Step::Load(_) => Ok(table),
        Step::Group { by, reducers } => match table.failure {
            Some(why) => Err(why),
            None => Ok(group(by, reducers, &table)),
        },
        Step::Sort { by, max } => match table.failure.take() {
            Some(why) => Err(why),
            None => Ok(sort(by, *max, table)),
        },
        Step::Limit { offset, count } => {
            // Rows behind the limit are never asked for.
            table.failure = table.failure.filter(|_| table.rows.len() < offset.saturating_add(*count));
            table.rows.drain(..(*offset).min(table.rows.len()));
            table.rows.truncate(*count);
            table.taken.drain(..(*offset).min(table.taken.len()));
            table.taken.truncate(*count);
            Ok(table)
        }
    }
}

fn apply(expression: &Expression, name: &str, mut table: Table) -> Table {
    let known = table.column(name);
    for at in 0..table.rows.len() {
        let value = match expression.value(&Named { columns: &table.columns, values: &table.rows[at] }) {
            Ok(value) => Some(value),
            Err(error) => {
                table.fail(at, error.into());
                break;
            }
        };
        match known {
            Some(column) => table.rows[at][column] = value,
            None => table.rows[at].push(value),
        }
    }
    if known.is_none() {
        table.columns.push(name.to_owned());
    }
    table
}

fn filter(expression: &Expression, mut table: Table) -> Table {
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    let mut counts = table.taken.into_iter();
    for values in table.rows {
        let count = counts.next();
        match expression.value(&Named { columns: &table.columns, values: &values }) {
            Ok(value) if value.is_true() => {
                kept.push(values);
                taken.extend(count);
            }
            Ok(_) => {}
            Err(error) => {
                table.failure = Some(error.into());
                break;
            }
        }
    }
    (table.rows, table.taken) = (kept, taken);
    table
}

/// Sorts by properties; rows that are equal stay as they stood, rows without a value come last.
pub(super) fn sort(by: &[(String, bool)], max: Option<usize>, mut table: Table) -> Table {
    let keys: Vec<(Option<usize>, bool)> = by.iter().map(|(name, rises)| (table.column(name), *rises)).collect();
    table.rows.sort_by(|one, other| {
        let orders =
            keys.iter().filter_map(|(column, rises)| Some(order(&one[(*column)?], &other[(*column)?], *rises)));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    table.rows.truncate(max.unwrap_or(usize::MAX));
    table.taken.clear();
    table
}

fn order(one: &Option<Datum>, other: &Option<Datum>, rises: bool) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) if rises => one.order(other),
        (Some(one), Some(other)) => other.order(one),
        (one, other) => one.is_none().cmp(&other.is_none()),
    }
}

/// Groups stand in the order of a hash table.
fn group(by: &[String], reducers: &[Reducer], table: &Table) -> Table {
    let columns: Vec<Option<usize>> = by.iter().map(|name| table.column(name)).collect();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut groups: Vec<(Vec<Option<Datum>>, Vec<State>)> = Vec::new();
    let mut hashes = Vec::new();
    for row in &table.rows {
        let given = columns.iter().map(|column| column.and_then(|column| row[column].clone()).unwrap_or(Datum::Null));
        for values in combinations(&given.collect::<Vec<_>>()) {
            let mut key = Vec::new();
            values.iter().for_each(|value| value.key(&mut key));
            let at = *places.entry(key).or_insert_with(|| {
                hashes.push(order::hash(&values));
                groups.push((values.into_iter().map(Some).collect(), reducers.iter().map(State::new).collect()));
                groups.len() - 1
            });
            for (reducer, state) in reducers.iter().zip(&mut groups[at].1) {
                state.add(reducer, &Named { columns: &table.columns, values: row });
            }
        }
    }
    let names = by.iter().cloned().chain(reducers.iter().map(|reducer| reducer.name.clone()));
    let mut groups: Vec<_> = groups.into_iter().map(Some).collect();
    let mut table = Table::new(names.collect());
    table.total = groups.len() as u64;
    for (mut values, states) in order::order(&hashes).into_iter().filter_map(|at| groups[at].take()) {
        values.extend(states.into_iter().zip(reducers).map(|(state, reducer)| Some(state.finish(reducer))));
        table.rows.push(values);
    }
    table
}

/// The most groups that one row may belong to.
const MAX_COMBINATIONS: usize = 65_536;

/// A list among the values puts the row into a group per item; an empty one counts as no value.
fn combinations(values: &[Datum]) -> Vec<Vec<Datum>> {
    let mut all = vec![Vec::new()];
    for value in values {
        let items: &[Datum] = match value {
            Datum::List(list) if list.is_empty() => &[Datum::Null],
            Datum::List(list) => list,
            other => std::slice::from_ref(other),
        };
        let longer = all.iter().flat_map(|begun: &Vec<Datum>| {
            items.iter().map(move |item| [begun.as_slice(), std::slice::from_ref(item)].concat())
        });
        all = longer.take(MAX_COMBINATIONS).collect();
    }
    all
}

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

fn group(by: &[String], reducers: &[Reducer], table: &Table) -> Table {
    let mut groups = Groups::new(by, reducers, &table.columns);
    table.rows.iter().for_each(|row| groups.add(row));
    groups.finish()
}

/// Rows of a GROUPBY, which come one after the other.
pub(super) struct Groups<'s> {
    names: Vec<String>,
    reducers: &'s [Reducer],
    /// The columns of the properties that make a group; `None` for one that no row has.
    by: Vec<Option<usize>>,
    /// The columns that each reducer reads: its property, and what it is ordered by.
    reads: Vec<[Option<usize>; 2]>,
    /// The number of each group, by the key of its values.
    numbers: HashMap<Vec<u8>, usize>,
    groups: Vec<(Vec<Option<Datum>>, Vec<State>)>,
    hashes: Vec<u64>,
    key: Vec<u8>,
}

impl<'s> Groups<'s> {
    pub(super) fn new(by: &[String], reducers: &'s [Reducer], columns: &[String]) -> Self {
        let column = |name: &str| columns.iter().position(|known| known == name);
        let read = |reducer: &Reducer| {
            let mut reads = reducer.reads().map(column);
            [reads.next().flatten(), reads.next().flatten()]
        };
        Self {
            names: by.iter().cloned().chain(reducers.iter().map(|reducer| reducer.name.clone())).collect(),
            reducers,
            by: by.iter().map(|name| column(name)).collect(),
            reads: reducers.iter().map(read).collect(),
            numbers: HashMap::new(),
            groups: Vec::new(),
            hashes: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Adds a row to its group; if a value is a list, to one for each item.
    pub(super) fn add(&mut self, row: &[Option<Datum>]) {
        let value = |column: &Option<usize>| column.and_then(|column| row[column].as_ref()).unwrap_or(&Datum::Null);
        if self.by.iter().any(|column| matches!(value(column), Datum::List(_))) {
            let given: Vec<Datum> = self.by.iter().map(|column| value(column).clone()).collect();
            combinations(&given).iter().for_each(|values| self.add_to(&values.iter().collect::<Vec<_>>(), row));
            return;
        }
        match *self.by.as_slice() {
            // Most groups have one property.
            [column] => self.add_to(&[value(&column)], row),
            _ => self.add_to(&self.by.iter().map(value).collect::<Vec<_>>(), row),
        }
    }

    fn add_to(&mut self, values: &[&Datum], row: &[Option<Datum>]) {
        self.key.clear();
        values.iter().for_each(|value| value.key(&mut self.key));
        let number = self.numbers.get(&self.key).copied().unwrap_or_else(|| {
            let values: Vec<Datum> = values.iter().map(|value| (*value).clone()).collect();
            self.hashes.push(order::hash(&values));
            let states = self.reducers.iter().map(State::new).collect();
            self.groups.push((values.into_iter().map(Some).collect(), states));
            self.numbers.insert(self.key.clone(), self.groups.len() - 1);
            self.groups.len() - 1
        });
        let value = |column: Option<usize>| column.and_then(|column| row[column].as_ref());
        for ((reducer, [property, by]), state) in self.reducers.iter().zip(&self.reads).zip(&mut self.groups[number].1)
        {
            state.add(reducer, value(*property), value(*by));
        }
    }

    /// The groups, in the order of RediSearch's hash table.
    pub(super) fn finish(self) -> Table {
        let mut groups: Vec<_> = self.groups.into_iter().map(Some).collect();
        let mut table = Table::new(self.names);
        table.total = groups.len() as u64;
        for (mut values, states) in order::order(&self.hashes).into_iter().filter_map(|at| groups[at].take()) {
            values.extend(states.into_iter().zip(self.reducers).map(|(state, reducer)| Some(state.finish(reducer))));
            table.rows.push(values);
        }
        table
    }
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

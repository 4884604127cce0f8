//! Commands that change values in their places: numbers, booleans, strings, and what is cleared.

use super::args::{NO_DOCUMENT, answer, change, path, refused, value};
use super::look::wrong_type;
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::json::{Json, Kind, Number, Path};

/// JSON.NUMINCRBY key path value
pub(super) fn numincrby(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    calculate(cx, args, Event::JSON_NUMINCRBY, i128::checked_add, |number, by| number + by)
}

/// JSON.NUMMULTBY key path value
pub(super) fn nummultby(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    calculate(cx, args, Event::JSON_NUMMULTBY, i128::checked_mul, |number, by| number * by)
}

/// Integers stay integers as long as they fit. An operation with a double gives a double.
fn calculate(
    cx: &mut Ctx<'_>,
    args: Args<'_>,
    event: Event,
    ints: fn(i128, i128) -> Option<i128>,
    doubles: fn(f64, f64) -> f64,
) -> Result {
    let path = path(args, 2)?;
    let operand = value(args, 3)?;
    let Kind::Number(by) = operand.root().kind() else {
        return Err(Error::Message(format!("ERR value must be a number, not {}", operand.root().type_name())));
    };
    let results = change(cx, args, &path, event, |edits, index| {
        let Kind::Number(number) = edits.value(index).kind() else { return Ok(None) };
        let exact = int(number).zip(int(by)).and_then(|(number, by)| ints(number, by)).and_then(of_int);
        let result = exact.unwrap_or_else(|| Number::Double(doubles(number.to_f64(), by.to_f64())));
        if !result.to_f64().is_finite() {
            return Err(Error::Static("ERR result is not a number"));
        }
        edits.replace(index, Json::of_number(result).root()).map_err(refused)?;
        Ok(Some(result))
    })?;
    answer_numbers(cx.reply, &path, results)
}

fn int(number: Number) -> Option<i128> {
    match number {
        Number::Int(int) => Some(int.into()),
        Number::Uint(int) => Some(int.into()),
        Number::Double(_) => None,
    }
}

fn of_int(int: i128) -> Option<Number> {
    i64::try_from(int).map(Number::Int).or_else(|_| u64::try_from(int).map(Number::Uint)).ok()
}

/// Numbers are text in RESP2, a list of them too; in RESP3 there is always a list.
fn answer_numbers(reply: &mut Reply, path: &Path, results: Vec<Option<Number>>) -> Result {
    if reply.is_resp3() {
        reply.array(results.len());
        for result in results {
            match result {
                Some(Number::Int(int)) => reply.int(int),
                Some(number) => reply.double(number.to_f64()),
                None => reply.null(),
            }
        }
        return Ok(());
    }
    let text = |number| Json::of_number(number).root().to_text();
    if path.is_legacy() {
        let text = |reply: &mut Reply, number| reply.bulk(text(number).as_bytes());
        return answer(reply, path, "a number", results, text);
    }
    let texts: Vec<String> = results.into_iter().map(|number| number.map_or_else(|| "null".to_owned(), text)).collect();
    reply.bulk(format!("[{}]", texts.join(",")).as_bytes());
    Ok(())
}

/// JSON.TOGGLE key path
pub(super) fn toggle(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 2)?;
    let results = change(cx, args, &path, Event::JSON_TOGGLE, |edits, index| {
        let Kind::Bool(old) = edits.value(index).kind() else { return Ok(None) };
        edits.replace(index, Json::of_bool(!old).root()).map_err(refused)?;
        Ok(Some(!old))
    })?;
    let is_legacy = path.is_legacy();
    answer(cx.reply, &path, "a bool", results, |reply, value| match (is_legacy, value) {
        (true, true) => reply.bulk(b"true"),
        (true, false) => reply.bulk(b"false"),
        (false, value) => reply.int(value.into()),
    })
}

/// `JSON.STRAPPEND key [path] value`
pub(super) fn strappend(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 4 {
        return Err(Error::WrongArity("json.strappend".into()));
    }
    let path = if args.len() == 4 { path(args, 2)? } else { Path::root(true) };
    let tail = value(args, args.len() - 1)?;
    let Kind::String(tail) = tail.root().kind() else { return Err(wrong_type("string", tail.root())) };
    let results = change(cx, args, &path, Event::JSON_STRAPPEND, |edits, index| {
        let Kind::String(old) = edits.value(index).kind() else { return Ok(None) };
        let new = [old, tail].concat();
        edits.replace(index, Json::of_string(&new).root()).map_err(refused)?;
        Ok(Some(new.len()))
    })?;
    answer(cx.reply, &path, "a string", results, Reply::count)
}

/// `JSON.CLEAR key [path]`
pub(super) fn clear(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, 2)?;
    let key = args.key(0);
    let json = cx.db.json_mut(key)?.ok_or(NO_DOCUMENT)?;
    let mut edits = json.edit(&path).map_err(refused)?;
    let mut cleared = 0;
    for index in edits.outermost() {
        let empty = match edits.value(index).kind() {
            Kind::Array(elements) if elements.len() > 0 => Json::empty_array(),
            Kind::Object(members) if members.len() > 0 => Json::empty_object(),
            Kind::Number(number) if number.to_f64() != 0.0 => Json::of_number(Number::Int(0)),
            _ => continue,
        };
        edits.replace(index, empty.root()).map_err(refused)?;
        cleared += 1;
    }
    edits.apply().map_err(refused)?;
    if cleared > 0 {
        cx.changed(key, Event::JSON_CLEAR);
    }
    cx.reply.count(cleared);
    Ok(())
}

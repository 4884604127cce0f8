//! JSON.SET, JSON.MSET, JSON.MERGE and JSON.DEL: values as a whole.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::args::{path, path_of, refused, value};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::error::Error;
use crate::types::json::{self, Budget, Json, Kind, Path, Step};

const NEW_AT_ROOT: Error = Error::Static("ERR new objects must be created at the root");

/// A condition on what a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    None,
    /// It leads nowhere yet.
    New,
    /// It leads somewhere.
    There,
}

/// `JSON.SET key path value [NX|XX]`
pub(super) fn set(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let condition = match args.len() {
        4 => Condition::None,
        5 if args.is(4, "NX") => Condition::New,
        5 if args.is(4, "XX") => Condition::There,
        _ => return Err(Error::Syntax),
    };
    let (key, path, value) = (args.key(0), path(args, 2)?, value(args, 3)?);
    let is_set = match cx.db.json_mut(key)? {
        Some(json) => {
            let mut budget = json.budget();
            put(json, path, value, condition, &mut budget)?
        }
        None if condition == Condition::There => false,
        None => create(cx, key, &path, value)?,
    };
    answer(cx, key, is_set, Event::JSON_SET);
    Ok(())
}

fn answer(cx: &mut Ctx<'_>, key: &Key<'_>, is_set: bool, event: Event) {
    if is_set {
        cx.changed(key, event);
        cx.reply.ok();
    } else {
        cx.reply.null();
    }
}

/// Makes a document where there is none.
fn create(cx: &mut Ctx<'_>, key: &Key<'_>, path: &Path, value: Json) -> Result<bool> {
    if !path.is_root() {
        return Err(NEW_AT_ROOT);
    }
    *cx.db.json_or_new(key)? = value;
    Ok(true)
}

/// Puts a value where a path leads to, or adds the member that is its last step; whether there is such a place.
fn put(json: &mut Json, path: Path, value: Json, condition: Condition, budget: &mut Budget) -> Result<bool> {
    if path.is_root() {
        let is_wanted = condition != Condition::New;
        if is_wanted {
            *json = value;
        }
        return Ok(is_wanted);
    }
    let mut edits = json.edit_within(&path, budget).map_err(refused)?;
    if edits.is_empty() {
        drop(edits);
        return if condition == Condition::There { Ok(false) } else { add(json, path, &value) };
    }
    if condition == Condition::New {
        return Ok(false);
    }
    edits.replace_all(&|_| Ok(value.clone())).map_err(refused)?;
    edits.apply().map_err(refused)?;
    Ok(true)
}

/// Adds the member that is a path's last step.
fn add(json: &mut Json, path: Path, value: &Json) -> Result<bool> {
    if !path.is_static() {
        return Err(Error::Static(
            "ERR wrong static path: nothing can be added where a path may lead to several places",
        ));
    }
    let Some((parent, step)) = path.split_last() else { return Ok(false) };
    let name = match step {
        Step::Name(name) => name,
        // As RedisJSON says it, whatever stands in front of the index.
        Step::Index(_) => return Err(Error::Static("ERR array index out of range")),
    };
    let mut edits = json.edit(&parent).map_err(refused)?;
    if edits.is_empty() {
        return Ok(false);
    }
    let is_object = matches!(edits.value(0).kind(), Kind::Object(_));
    if is_object {
        edits.add_member(0, &name, value.root()).map_err(refused)?;
        edits.apply().map_err(refused)?;
    }
    Ok(is_object)
}

/// `JSON.MSET key path value [key path value …]`: all, or nothing after an error.
pub(super) fn mset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() % 3 != 1 {
        return Err(Error::WrongArity("json.mset".into()));
    }
    let triples = (1..args.len()).step_by(3).zip(args.keys());
    // The new document of each key; a key may occur several times.
    let mut documents: Vec<(&Key<'_>, Json, bool)> = Vec::new();
    let mut places: HashMap<&[u8], usize, RandomState> = HashMap::default();
    let mut budget = Budget::default();
    for (at, key) in triples {
        let (path, value) = (path_of(args.at(at + 1))?, value(args, at + 2)?);
        budget.add(&value);
        if let Some(place) = places.get(key.bytes) {
            let (_, json, is_set) = &mut documents[*place];
            *is_set |= put(json, path, value, Condition::None, &mut budget)?;
            continue;
        }
        let (json, is_set) = match cx.db.json(key)? {
            Some(_) if path.is_root() => (value, true),
            Some(json) => {
                budget.add(json);
                let mut json = json.clone();
                let is_set = put(&mut json, path, value, Condition::None, &mut budget)?;
                (json, is_set)
            }
            None if path.is_root() => (value, true),
            None => return Err(NEW_AT_ROOT),
        };
        places.insert(key.bytes, documents.len());
        documents.push((key, json, is_set));
    }
    for (key, json, is_set) in documents {
        if is_set {
            *cx.db.json_or_new(key)? = json;
            cx.changed(key, Event::JSON_MSET);
        }
    }
    cx.reply.ok();
    Ok(())
}

/// JSON.MERGE key path value
pub(super) fn merge(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (key, path, value) = (args.key(0), path(args, 2)?, value(args, 3)?);
    let is_set = match cx.db.json_mut(key)? {
        Some(json) => merge_into(json, path, &value)?,
        None => create(cx, key, &path, value)?,
    };
    answer(cx, key, is_set, Event::JSON_MERGE);
    Ok(())
}

fn merge_into(json: &mut Json, path: Path, patch: &Json) -> Result<bool> {
    let mut edits = json.edit(&path).map_err(refused)?;
    if edits.is_empty() {
        drop(edits);
        return add(json, path, patch);
    }
    edits.replace_all(&|value| json::merge(value, patch.root())).map_err(refused)?;
    edits.apply().map_err(refused)?;
    Ok(true)
}

/// `JSON.DEL key [path]`, `JSON.FORGET key [path]`
pub(super) fn del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (key, path) = (args.key(0), path(args, 2)?);
    let Some(json) = cx.db.json_mut(key)? else {
        cx.reply.int(0);
        return Ok(());
    };
    let removed = if path.is_root() {
        if let Some(entry) = cx.db.remove(key) {
            cx.discard(entry, false);
        }
        1
    } else {
        let mut edits = json.edit(&path).map_err(refused)?;
        let outermost = edits.outermost();
        outermost.iter().for_each(|index| edits.remove(*index));
        edits.apply().map_err(refused)?;
        outermost.len()
    };
    if removed > 0 {
        cx.changed(key, Event::JSON_DEL);
    }
    cx.reply.count(removed);
    Ok(())
}

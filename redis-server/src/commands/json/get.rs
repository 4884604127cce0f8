//! JSON.GET and JSON.MGET.

use bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::args::{MAX_TEXT, TOO_LONG, no_path, path, path_of, refused};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::json::{Budget, Json, Kind, Node, Number, Path, Style};

/// How JSON.GET answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A text.
    Text,
    /// The values of the paths, in types of RESP3.
    Expanded,
    /// The same, but for strings and containers, which are texts.
    ExpandedOnce,
}

/// `JSON.GET key [INDENT indent] [NEWLINE newline] [SPACE space] [FORMAT STRING|EXPAND1|EXPAND] [path …]`
pub(super) fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Options { style, format, first } = options(args, cx.reply.is_resp3())?;
    let Some(json) = cx.db.json(args.key(0))? else {
        cx.reply.null();
        return Ok(());
    };
    if format != Format::Text {
        return expanded(cx.reply, json, args.from(first), format);
    }
    let text = if args.len() - first > 1 {
        several(json, args.from(first), style)?
    } else {
        let path = path(args, first)?;
        one(json, &path, style, &mut json.budget())?.ok_or_else(|| no_path(path.text()))?
    };
    cx.reply.blob(&Bytes::from(text));
    Ok(())
}

/// The options in front of the paths, and the index of the first path.
struct Options<'a> {
    style: Style<'a>,
    format: Format,
    first: usize,
}

/// Reads the options. NOESCAPE, of old versions, says nothing any more.
fn options(args: Args<'_>, resp3: bool) -> Result<Options<'_>> {
    let (mut style, mut format, mut at) = (Style::PLAIN, Format::Text, 2);
    while at < args.len() {
        if args.is(at, "FORMAT") {
            format = Format::parse(args, at + 1, resp3)?;
            at += 2;
            continue;
        }
        let place = match () {
            () if args.is(at, "NOESCAPE") => {
                at += 1;
                continue;
            }
            () if args.is(at, "INDENT") => &mut style.indent,
            () if args.is(at, "NEWLINE") => &mut style.newline,
            () if args.is(at, "SPACE") => &mut style.space,
            () => break,
        };
        *place = args.get(at + 1).ok_or(Error::Syntax)?;
        at += 2;
    }
    Ok(Options { style, format, first: at })
}

impl Format {
    fn parse(args: Args<'_>, at: usize, resp3: bool) -> Result<Self> {
        let name = args.get(at).ok_or_else(|| Error::WrongArity("json.get".into()))?;
        match name {
            _ if !resp3 => Err(Error::Static("ERR FORMAT argument is not supported on RESP2")),
            b"STRING" => Ok(Self::Text),
            b"EXPAND1" => Ok(Self::ExpandedOnce),
            b"EXPAND" => Ok(Self::Expanded),
            _ => Err(Error::Static("ERR wrong reply format")),
        }
    }
}

/// A list for each path, of what it leads to.
fn expanded(reply: &mut Reply, json: &Json, paths: Args<'_>, format: Format) -> Result {
    let paths = match paths.len() {
        0 => vec![Path::root(true)],
        _ => paths.iter().map(path_of).collect::<Result<_>>()?,
    };
    let (before, mut budget) = (reply.len(), json.budget());
    reply.array(paths.len());
    for path in paths {
        let found = json.find_within(&path, &mut budget).map_err(refused)?;
        reply.array(found.len());
        for value in found {
            expand(reply, value, format);
            if reply.len() - before > MAX_TEXT {
                return Err(TOO_LONG);
            }
        }
    }
    Ok(())
}

/// A value in RESP3. Recurses as deep as documents are.
fn expand(reply: &mut Reply, value: Node<'_>, format: Format) {
    match value.kind() {
        Kind::Null => reply.null(),
        Kind::Bool(value) => reply.boolean(value),
        Kind::Number(Number::Int(int)) => reply.int(int),
        Kind::Number(number) => reply.double(number.to_f64()),
        _ if format == Format::ExpandedOnce => reply.bulk(value.to_text().as_bytes()),
        Kind::String(text) => reply.bulk(text),
        Kind::Array(elements) => {
            reply.array(elements.len());
            elements.for_each(|element| expand(reply, element, format));
        }
        Kind::Object(members) => {
            reply.map(members.len());
            for (name, value) in members {
                reply.bulk(name);
                expand(reply, value, format);
            }
        }
    }
}

/// A function that appends parts of a text, up to the size limit.
type Put<'t> = dyn FnMut(&[u8]) -> Result + 't;

/// The text that `write` puts together, whose length is bounded.
fn text(write: impl FnOnce(&mut Put<'_>) -> Result) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut put = |part: &[u8]| {
        if text.len() + part.len() > MAX_TEXT {
            return Err(TOO_LONG);
        }
        text.extend_from_slice(part);
        Ok(())
    };
    write(&mut put)?;
    Ok(text)
}

/// The values of one path: a list, or for a legacy path the first value, if there is one.
fn one(json: &Json, path: &Path, style: Style<'_>, budget: &mut Budget) -> Result<Option<Vec<u8>>> {
    let mut found = json.find_within(path, budget).map_err(refused)?;
    if path.is_legacy() {
        return found.next().map(|value| text(|put| value.print(style, 0, put))).transpose();
    }
    text(|put| list(found, style, 0, put)).map(Some)
}

fn list<'j>(
    mut found: impl ExactSizeIterator<Item = Node<'j>>,
    style: Style<'_>,
    level: usize,
    put: &mut Put<'_>,
) -> Result {
    style.container(*b"[]", level, put, found.len(), |put| {
        found.by_ref().take(1).try_for_each(|value| value.print(style, level + 1, put))
    })
}

/// The values of several paths, by their texts: lists, unless all are legacy paths.
fn several(json: &Json, paths: Args<'_>, style: Style<'_>) -> Result<Vec<u8>> {
    let mut all: IndexMap<&[u8], Path, RandomState> = IndexMap::default();
    for text in paths.iter() {
        if !all.contains_key(text) {
            all.insert(text, path_of(text)?);
        }
    }
    let is_legacy = all.values().all(Path::is_legacy);
    let mut budget = json.budget();
    let count = all.len();
    let mut all = all.into_iter();
    text(|put| {
        style.container(*b"{}", 0, put, count, |put| {
            // One at a time, so that never more is held than one path finds.
            all.by_ref().take(1).try_for_each(|(name, path)| {
                let mut found = json.find_within(&path, &mut budget).map_err(refused)?;
                style.name(name, put)?;
                if !is_legacy {
                    return list(found, style, 1, put);
                }
                found.next().ok_or_else(|| no_path(path.text()))?.print(style, 1, put)
            })
        })
    })
}

/// `JSON.MGET key [key …] path`
pub(super) fn mget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let path = path(args, args.len() - 1)?;
    let mut texts = Vec::with_capacity(args.keys().len());
    let mut total = 0;
    let mut budget = Budget::default();
    for key in args.keys() {
        // The reply is null for a key of another type and for a path without a value.
        let text = match cx.db.json(key) {
            Ok(Some(json)) => {
                budget.add(json);
                one(json, &path, Style::PLAIN, &mut budget)?
            }
            _ => None,
        };
        total += text.as_ref().map_or(0, Vec::len);
        if total > MAX_TEXT {
            return Err(TOO_LONG);
        }
        texts.push(text);
    }
    cx.reply.array(texts.len());
    for text in texts {
        match text {
            Some(text) => cx.reply.blob(&Bytes::from(text)),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

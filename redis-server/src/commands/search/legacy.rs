//! The commands of RediSearch 1.x that write and read documents by name, and those that do nothing where there is nothing to do.

use query_engine::{Expression, ExpressionError, Language};

use super::load::Shown;
use super::lookup::{NO_INDEX, UNKNOWN_INDEX, default_deadline, index_for, refresh};
use super::wire::{Reader, Writer};
use super::words::Words;
use super::{catalog, create, gathered};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::exec::search::read_document;
use crate::keyspace::{Entry, Key, ValueRef};
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::search::{Definition, SearchIndex};

/// The fields of a hash that hold what FT.ADD says of a document besides its fields.
const SCORE_FIELD: &str = "__score";
const LANGUAGE_FIELD: &str = "__language";
const PAYLOAD_FIELD: &str = "__payload";

/// The arguments of FT.ADD behind the document's name.
#[derive(Default)]
struct Addition<'a> {
    score: &'a [u8],
    replaces: bool,
    is_partial: bool,
    needs_document: bool,
    language: Option<&'a [u8]>,
    payload: Option<&'a [u8]>,
    condition: Option<&'a [u8]>,
    /// Names and values by turns.
    fields: Vec<&'a [u8]>,
}

impl<'a> Addition<'a> {
    fn parse(args: Args<'a>) -> Result<Self> {
        let mut words = Words::new(args, 3);
        let mut addition = Self { score: words.need("FT.ADD")?, ..Self::default() };
        let score = std::str::from_utf8(addition.score).ok().and_then(|text| text.parse::<f64>().ok());
        let score = score.ok_or(Error::Static("Could not parse document score"))?;
        if !(0.0..=1.0).contains(&score) {
            return Err(Error::Static("Score must be between 0 and 1"));
        }
        while !words.take("FIELDS") {
            match () {
                () if words.is_empty() => return Err(Error::Static("No field list found")),
                () if words.take("REPLACE") => addition.replaces = true,
                () if words.take("PARTIAL") => addition.is_partial = true,
                () if words.take("NOCREATE") => addition.needs_document = true,
                () if words.take("LANGUAGE") => {
                    let name = words.text("LANGUAGE")?;
                    name.parse::<Language>().map_err(|_| Error::Static("Unsupported language"))?;
                    addition.language = Some(name.as_bytes());
                }
                () if words.take("PAYLOAD") => addition.payload = Some(words.need("PAYLOAD")?),
                () if words.take("IF") => addition.condition = Some(words.need("IF")?),
                () => return Err(Error::Message(format!("Unknown keyword `{}` provided", words.shown()))),
            }
        }
        addition.fields = words.rest().collect();
        if !addition.fields.len().is_multiple_of(2) {
            return Err(Error::Static("Fields must be specified in FIELD VALUE pairs"));
        }
        Ok(addition)
    }

    /// The fields with which the document describes itself, by the names of the index' definition.
    fn said<'s>(&'s self, definition: &'s Definition) -> Vec<&'s [u8]> {
        let name = |given: &'s Option<Box<[u8]>>, default: &'static str| given.as_deref().unwrap_or(default.as_bytes());
        let says_score = self.is_partial || self.score != b"1" && self.score != b"1.0";
        let score = says_score.then_some([name(&definition.score_field, SCORE_FIELD), self.score]);
        let language = self.language.map(|language| [name(&definition.language_field, LANGUAGE_FIELD), language]);
        let payload = self.payload.map(|payload| [name(&definition.payload_field, PAYLOAD_FIELD), payload]);
        [score, language, payload].into_iter().flatten().flatten().collect()
    }
}

/// `FT.ADD index document score [REPLACE] [PARTIAL] [NOCREATE] [LANGUAGE language] [PAYLOAD payload] [IF expression] FIELDS field value …`
pub(super) fn add(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, NO_INDEX)?;
    let addition = Addition::parse(args)?;
    // Without fields a partial addition says something of the document as a whole.
    if addition.fields.is_empty() && !addition.is_partial {
        cx.reply.ok();
        return Ok(());
    }
    let (key, now) = (args.key(0), cx.db.over_by());
    match cx.db.peek(key) {
        None if addition.needs_document => return Err(Error::Static("Document does not exist")),
        None => {}
        Some(entry) => {
            if !matches!(entry.value(), ValueRef::Hash(_)) {
                return Err(Error::Static("Invalid Redis key"));
            }
            if !addition.replaces {
                return Err(Error::Static("Document already exists"));
            }
            let holds = match addition.condition {
                Some(condition) => holds(&index.definition(), condition, (entry, now))?,
                None => true,
            };
            if !holds {
                cx.reply.simple("NOADD");
                return Ok(());
            }
        }
    }
    follow(&index, &addition);
    write(cx, key, &addition, &index.definition());
    cx.reply.ok();
    Ok(())
}

/// A condition is true for a document. A property that the document lacks makes it false.
fn holds(definition: &Definition, condition: &[u8], (entry, now): (&Entry, u64)) -> Result<bool> {
    let expression = Expression::parse(condition).map_err(|error| Error::Message(error.to_string()))?;
    for name in expression.properties() {
        if definition.field(name).is_none() {
            return Err(Error::Message(format!("Property `{name}` not loaded nor in pipeline")));
        }
    }
    match definition.holds(&expression, entry, now) {
        Err(ExpressionError::Missing(_)) => Ok(false),
        other => other.map_err(|error| Error::Message(error.to_string())),
    }
}

/// The index reads from now on what documents say of themselves.
fn follow(index: &SearchIndex, addition: &Addition<'_>) {
    let definition = index.definition();
    let unknown = |known: &Option<Box<[u8]>>, is_said: bool| is_said && known.is_none();
    let said = addition.said(&definition);
    let is_said = |name: &str| said.chunks_exact(2).any(|pair| pair[0] == name.as_bytes());
    let score = unknown(&definition.score_field, is_said(SCORE_FIELD));
    let language = unknown(&definition.language_field, is_said(LANGUAGE_FIELD));
    let payload = unknown(&definition.payload_field, is_said(PAYLOAD_FIELD));
    if !(score || language || payload) {
        return;
    }
    index.redefine(|definition| {
        let mut option =
            |is_new: bool, word: &str, name: &str, field: fn(&mut Definition) -> &mut Option<Box<[u8]>>| {
                if is_new {
                    *field(definition) = Some(name.as_bytes().into());
                    // The command that makes the index says so, too.
                    if let Some(create) = definition.commands.first_mut() {
                        create.splice(2..2, [word.as_bytes().into(), name.as_bytes().into()]);
                    }
                }
            };
        option(score, "SCORE_FIELD", SCORE_FIELD, |definition| &mut definition.score_field);
        option(language, "LANGUAGE_FIELD", LANGUAGE_FIELD, |definition| &mut definition.language_field);
        option(payload, "PAYLOAD_FIELD", PAYLOAD_FIELD, |definition| &mut definition.payload_field);
    });
}

/// Writes the hash: a new one unless the addition is partial.
fn write(cx: &mut Ctx<'_>, key: &Key<'_>, addition: &Addition<'_>, definition: &Definition) {
    if !addition.is_partial
        && let Some(entry) = cx.db.remove(key)
    {
        cx.discard(entry, false);
    }
    let limits = cx.hash_limits();
    let now = cx.db.over_by();
    let pairs = [addition.fields.clone(), addition.said(definition)].concat();
    // A key of another type was refused before.
    let Ok(hash) = cx.db.hash_or_new(key) else { return };
    let over = hash.take_over_of(now, pairs.iter().copied().step_by(2));
    for pair in pairs.chunks_exact(2) {
        hash.set(pair[0], pair[1], limits);
    }
    cx.fields_expired(key, &over);
    cx.changed(key, Event::HSET);
}

/// `FT.DEL index document [DD]`
pub(super) fn del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, UNKNOWN_INDEX)?;
    let key = args.key(0);
    let is_document = cx.db.peek(key).is_some_and(|entry| index.definition().takes(entry));
    let removed = if is_document { cx.db.remove(key) } else { None };
    cx.reply.int(removed.is_some().into());
    if let Some(entry) = removed {
        cx.discard(entry, false);
        cx.changed(key, Event::DEL);
        cx.instead(&[b"DEL", key.bytes]);
    }
    Ok(())
}

/// `FT.GET index document`
pub(super) fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let documents = documents(cx, args)?;
    show(cx.reply, documents.into_iter().next().flatten());
    Ok(())
}

/// `FT.MGET index document [document …]`
pub(super) fn mget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let documents = documents(cx, args)?;
    cx.reply.array(documents.len());
    documents.into_iter().for_each(|document| show(cx.reply, document));
    Ok(())
}

/// This node's part of FT.GET and FT.MGET.
pub(super) fn part(cx: &Ctx<'_>, args: Args<'_>, writer: &mut Writer) -> Result {
    writer.list(&own_documents(cx, args)?, |writer, document| {
        writer.option(document.as_ref(), |writer, fields| {
            writer.list(fields, |writer, (name, value)| {
                writer.text(name);
                writer.text(value);
            });
        });
    });
    Ok(())
}

/// The documents that a call names, by their places; `None` for one that the index does not have.
fn documents(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<Vec<Option<Shown>>> {
    let Some(parts) = gathered::all_parts(cx, args)? else { return own_documents(cx, args) };
    let mut documents: Vec<Option<Shown>> = vec![None; args.len() - 2];
    let field = |reader: &mut Reader<'_>| Ok((reader.text()?.to_vec(), reader.text()?.to_vec()));
    for part in &parts {
        let own = Reader::new(part).list(|reader| reader.option(|reader| reader.list(field)))?;
        for (document, own) in documents.iter_mut().zip(own) {
            *document = document.take().or(own);
        }
    }
    Ok(documents)
}

fn own_documents(cx: &Ctx<'_>, args: Args<'_>) -> Result<Vec<Option<Shown>>> {
    let index = index_for(cx, args, UNKNOWN_INDEX)?;
    refresh(cx, default_deadline(cx));
    Ok(args.from(2).iter().map(|id| document(cx, &index, id)).collect())
}

/// The fields of a document, if the index has it.
fn document(cx: &Ctx<'_>, index: &SearchIndex, id: &[u8]) -> Option<Shown> {
    let now = cx.now();
    let (is_there, definition) = (index.engine().contains(id), index.definition());
    let fields = |entry: &Entry| match entry.value() {
        ValueRef::Hash(hash) => {
            let pairs = hash.at(now).iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
            pairs.filter(|(name, _)| !definition.is_about(name)).collect::<Vec<_>>()
        }
        ValueRef::Json(json) => vec![(b"$".to_vec(), json.root().to_text().into_bytes())],
        _ => Vec::new(),
    };
    if is_there { read_document(cx.instance(), (id, now), &|| false, fields) } else { None }
}

/// Writes the fields of a document.
fn show(reply: &mut Reply, document: Option<Shown>) {
    match document {
        // A list in both protocols.
        Some(fields) => {
            reply.array(fields.len() * 2);
            fields.iter().flat_map(|(name, value)| [name, value]).for_each(|text| reply.bulk(text));
        }
        None => reply.null(),
    }
}

/// `FT.DROP index [KEEPDOCS]`
pub(super) fn drop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 3 {
        return Err(Error::WrongArity("FT.DROP".into()));
    }
    create::drop(cx, args, !keeps_documents(args))
}

fn keeps_documents(args: Args<'_>) -> bool {
    args.len() > 2 && args.is(2, "KEEPDOCS")
}

/// `FT._DROPIFX index [KEEPDOCS]`
pub(super) fn drop_if_there(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if is_absent(cx, args) { Ok(()) } else { create::drop(cx, args, !keeps_documents(args)) }
}

/// `FT._DROPINDEXIFX index [DD]`
pub(super) fn drop_index_if_there(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if is_absent(cx, args) { Ok(()) } else { create::drop_index(cx, args) }
}

/// Replies OK if there is no such index.
fn is_absent(cx: &mut Ctx<'_>, args: Args<'_>) -> bool {
    let is_absent = cx.instance().search.index(args.at(1)).is_none();
    if is_absent {
        cx.reply.ok();
    }
    is_absent
}

/// `FT._CREATEIFNX index …`
pub(super) fn create_if_new(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance().search.index(args.at(1)).is_none() {
        return create::create(cx, args);
    }
    cx.reply.ok();
    Ok(())
}

/// `FT._ALIASADDIFNX alias index`
pub(super) fn alias_if_new(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance().search.is_alias(args.at(1)) {
        cx.reply.ok();
        return Ok(());
    }
    catalog::alias_add(cx, args)
}

/// `FT._ALIASDELIFX alias`
pub(super) fn alias_del_if_there(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance().search.is_alias(args.at(1)) {
        return catalog::alias_del(cx, args);
    }
    cx.reply.ok();
    Ok(())
}

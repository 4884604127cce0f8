//! FT.CREATE, FT.ALTER and FT.DROPINDEX.

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use query_engine::{Expression, FieldKind, Keeps, Language, NO_STEMS, Punctuation, Schema, StopWords};

use super::fields;
use super::lookup::{NO_INDEX, UNKNOWN_INDEX, absent, index_for, settle};
use super::words::{Words, bad};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::steady_ms;
use crate::exec::{Event, search};
use crate::keyspace::Dropped;
use crate::protocol::error::{Error, echo};
use crate::search::{CatalogError, Definition, SearchIndex, Source, Words as Command};

/// How long FT.DROPINDEX DD sleeps until a slow call gives a key back.
const NAP: Duration = Duration::from_millis(1);

/// The word of replicated calls: documents go by commands of their own.
const FORCE_KEEP: &str = "_FORCEKEEPDOCS";

/// The most prefixes of an index, as RediSearch has it.
const MAX_PREFIXES: usize = 1024;

/// `FT.CREATE index [option …] SCHEMA field [AS name] type [option …] …`
pub(super) fn create(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.client.db != 0 {
        return Err(Error::Static("Cannot create index on db != 0"));
    }
    let settings = &cx.instance().search.options;
    let min_stem = usize::try_from(settings.min_stem.load(Relaxed)).unwrap_or(usize::MAX);
    let is_valkey = cx.config().level().is_valkey();
    // A file and a primary also have the definitions of another level.
    let takes_valkeys = is_valkey || cx.is_told_by_others() || cx.instance().search.is_restoring();
    let Some(mut plan) = Plan::parse(args, min_stem, takes_valkeys)? else { return Err(no_fields(args)) };
    plan.schema.text_gap = settings.text_gap.load(Relaxed) as u32;
    plan.schema.min_phonetic_length = usize::try_from(settings.min_phonetic.load(Relaxed)).unwrap_or(usize::MAX);
    let (scans, made) = (!plan.skips_scan, (plan.schema, plan.definition));
    let database = cx.instance().database(0);
    let created = cx.instance().search.create(database, args.at(1), made, scans);
    created.map_err(|error| refused(&error, args, is_valkey))?;
    cx.instance().search.index(args.at(1)).iter().for_each(|index| index.touch(steady_ms()));
    search::start(cx.instance());
    cx.count_changes(1);
    cx.reply.ok();
    Ok(())
}

/// The error for an index that cannot be made, in the words of valkey-search if it `is_valkey`.
fn refused(error: &CatalogError, args: Args<'_>, is_valkey: bool) -> Error {
    match error {
        CatalogError::Exists if is_valkey => {
            Error::Message(format!("Index {} in database 0 already exists.", echo(args.at(1), super::words::MAX_ECHO)))
        }
        error => Error::Message(error.to_string()),
    }
}

fn no_fields(args: Args<'_>) -> Error {
    if args.len() > 4 { Error::Static("Fields arguments are missing") } else { Error::WrongArity("FT.CREATE".into()) }
}

/// The arguments of FT.CREATE.
struct Plan {
    schema: Schema,
    definition: Definition,
    skips_scan: bool,
}

/// Options in the order of FT.INFO.
const OPTIONS: &[&str] = &["NOFREQS", "NOFIELDS", "NOOFFSETS", "NOHL", "MAXTEXTFIELDS"];

/// TEXT fields above which an index has MAXTEXTFIELDS, as in RediSearch.
const NARROW: usize = 32;

impl Plan {
    /// `None` if there are no fields. `takes_valkeys` adds the options of valkey-search.
    fn parse(args: Args<'_>, min_stem: usize, takes_valkeys: bool) -> Result<Option<Self>> {
        let mut words = Words::new(args, 2);
        let mut definition = Definition {
            source: Source::Hash,
            prefixes: vec![Box::default()],
            filter: None,
            language: None,
            language_name: String::new(),
            language_field: None,
            score: 1.0,
            score_field: None,
            payload_field: None,
            idle_ms: None,
            fields: Vec::new(),
            options: Vec::new(),
            has_stop_words: false,
            punctuation: None,
            commands: vec![args.iter().map(Into::into).collect()],
        };
        let (mut schema, mut skips_scan) = (Schema::default(), false);
        schema.min_stem_length = min_stem;
        while !words.take("SCHEMA") {
            if words.is_empty() {
                return Ok(None);
            }
            match () {
                () if words.take("NOOFFSETS") => {
                    schema.keeps.positions = false;
                    definition.options.push("NOOFFSETS");
                }
                // Highlighting reads the document's text.
                () if words.take("NOHL") => definition.options.push("NOHL"),
                () if words.take("NOFREQS") => {
                    schema.keeps.frequencies = false;
                    definition.options.push("NOFREQS");
                }
                () if words.take("NOFIELDS") => {
                    schema.keeps.fields = false;
                    definition.options.push("NOFIELDS");
                }
                () if words.take("STOPWORDS") => {
                    schema.stop_words = StopWords::new(words.list("STOPWORDS")?.rest());
                    definition.has_stop_words = true;
                }
                () if words.take("SKIPINITIALSCAN") => skips_scan = true,
                // Options of RediSearch 1.x that have lost their meaning.
                () if words.take("ASYNC") || words.take("NOSCOREIDX") => {}
                () if words.take("MAXTEXTFIELDS") => definition.options.push("MAXTEXTFIELDS"),
                () if words.take("INDEXALL") => {
                    if !words.take("ENABLE") && !words.take("DISABLE") {
                        return Err(bad("INDEXALL", "expected ENABLE or DISABLE"));
                    }
                }
                () if words.take("TEMPORARY") => definition.idle_ms = idle_ms(&mut words)?,
                () if takes_valkeys && valkeys_option(&mut schema, &mut definition, &mut words)? => {}
                () => rule(&mut definition, &mut words)?,
            }
        }
        if words.is_empty() {
            return Ok(None);
        }
        schema.language = definition.language.unwrap_or(Language::English);
        for (field, source) in fields::parse(&mut words, definition.source)? {
            schema.add(field).map_err(|error| Error::Message(error.to_string()))?;
            definition.fields.push(source);
        }
        complete_options(&mut definition, schema.keeps);
        Ok(Some(Self { schema, definition, skips_scan }))
    }
}

/// Reads an option of valkey-search, if one stands there.
fn valkeys_option(schema: &mut Schema, definition: &mut Definition, words: &mut Words<'_>) -> Result<bool> {
    match () {
        // Positions are kept unless NOOFFSETS says otherwise.
        () if words.take("WITHOFFSETS") => {}
        () if words.take("NOSTEM") => schema.min_stem_length = NO_STEMS,
        () if words.take("MINSTEMSIZE") => schema.min_stem_length = words.number("MINSTEMSIZE")?,
        () if words.take("NOSTOPWORDS") => {
            schema.stop_words = StopWords::new::<&str>([]);
            definition.has_stop_words = true;
        }
        () if words.take("PUNCTUATION") => {
            let characters = words.need("PUNCTUATION")?;
            schema.punctuation = Punctuation::new(characters).map_err(|error| Error::Message(error.to_string()))?;
            definition.punctuation = Some(characters.into());
        }
        () => return Ok(false),
    }
    Ok(true)
}

/// The time of TEMPORARY; −1 stands for an index that stays, as in RediSearch.
fn idle_ms(words: &mut Words<'_>) -> Result<Option<u64>> {
    let word = words.need("TEMPORARY")?;
    let seconds = std::str::from_utf8(word).ok().and_then(|word| word.parse::<i64>().ok());
    let seconds = seconds.ok_or_else(|| bad("TEMPORARY", "Could not convert argument to expected type"))?;
    Ok((seconds != -1).then(|| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000)))
}

/// Adds the options that others imply, in the order of FT.INFO.
fn complete_options(definition: &mut Definition, keeps: Keeps) {
    if !keeps.positions {
        definition.options.push("NOHL");
    }
    let texts = definition.fields.iter().filter(|field| matches!(field.kind, FieldKind::Text { .. })).count();
    if texts > NARROW {
        definition.options.push("MAXTEXTFIELDS");
    }
    definition.options.sort_by_key(|option| OPTIONS.iter().position(|known| known == option));
    definition.options.dedup();
}

/// Reads an option that says which keys are documents, and what they are besides their fields.
fn rule(definition: &mut Definition, words: &mut Words<'_>) -> Result {
    match () {
        () if words.take("ON") => {
            definition.source = match words.need("ON")? {
                name if name.eq_ignore_ascii_case(b"HASH") => Source::Hash,
                name if name.eq_ignore_ascii_case(b"JSON") => Source::Json,
                name => {
                    return Err(Error::Message(format!("Invalid rule type: {}", echo(name, super::words::MAX_ECHO))));
                }
            };
        }
        () if words.take("PREFIX") => {
            let prefixes: Vec<Box<[u8]>> = words.list("PREFIX")?.rest().map(Into::into).collect();
            if prefixes.len() > MAX_PREFIXES {
                return Err(bad("PREFIX", &format!("expected at most {MAX_PREFIXES} prefixes")));
            }
            definition.prefixes = prefixes;
        }
        () if words.take("FILTER") => {
            let text = words.need("FILTER")?;
            let filter = Expression::parse(text).map_err(|error| Error::Message(error.to_string()))?;
            definition.filter = Some((text.into(), filter));
        }
        () if words.take("LANGUAGE_FIELD") => definition.language_field = Some(words.need("LANGUAGE_FIELD")?.into()),
        () if words.take("LANGUAGE") => {
            words.text("LANGUAGE")?.clone_into(&mut definition.language_name);
            let language = definition.language_name.parse();
            definition.language = Some(language.map_err(|_| Error::Static("Invalid language"))?);
        }
        () if words.take("SCORE_FIELD") => definition.score_field = Some(words.need("SCORE_FIELD")?.into()),
        () if words.take("SCORE") => {
            let score: f64 = words.number("SCORE").map_err(|_| Error::Static("Invalid score"))?;
            if !(0.0..=1.0).contains(&score) {
                return Err(Error::Static("Invalid score"));
            }
            definition.score = score;
        }
        () if words.take("PAYLOAD_FIELD") => definition.payload_field = Some(words.need("PAYLOAD_FIELD")?.into()),
        () => return Err(Error::Message(format!("Unknown argument `{}`", words.shown()))),
    }
    Ok(())
}

/// A call that changes an index, for files: aliases come behind the indexes there, so it has the index' own name.
pub(super) fn named(args: Args<'_>, index: &SearchIndex) -> Command {
    args.iter().enumerate().map(|(at, word)| if at == 1 { index.name() } else { word }.into()).collect()
}

/// `FT.ALTER index [SKIPINITIALSCAN] SCHEMA ADD field type [option …]`
pub(super) fn alter(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, NO_INDEX)?;
    let mut words = Words::new(args, 2);
    let skips_scan = words.take("SKIPINITIALSCAN");
    if !words.take("SCHEMA") {
        return Err(Error::Static("ALTER must be followed by SCHEMA"));
    }
    if !words.take("ADD") {
        return Err(Error::Static("Unknown action passed to ALTER SCHEMA"));
    }
    if words.is_empty() {
        return Err(Error::Static("No fields provided"));
    }
    let fields = fields::parse(&mut words, index.definition().source)?;
    settle(cx);
    index.alter(|definition, engine| {
        // All or none: the schema is tried on a copy.
        let mut schema = engine.schema().clone();
        for (field, _) in &fields {
            schema.add(field.clone()).map_err(|error| Error::Message(error.to_string()))?;
        }
        for (field, source) in fields {
            engine.add_field(field).map_err(|error| Error::Message(error.to_string()))?;
            definition.fields.push(source);
        }
        definition.commands.push(named(args, &index));
        Ok::<_, Error>(())
    })?;
    if !skips_scan {
        cx.instance().search.scan(&index, true);
    }
    cx.count_changes(1);
    cx.reply.ok();
    Ok(())
}

/// `FT._ALTERIFNX index [SKIPINITIALSCAN] SCHEMA ADD field type [option …]`: nothing if the first field is there.
pub(super) fn alter_if_new(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, NO_INDEX)?;
    let mut words = Words::new(args, 2);
    words.take("SKIPINITIALSCAN");
    let first = if words.take("SCHEMA") && words.take("ADD") { words.peek() } else { None };
    if first.is_some_and(|name| index.engine().schema().find(name).is_some()) {
        cx.reply.ok();
        return Ok(());
    }
    alter(cx, args)
}

/// `FT.DROPINDEX index [DD]`
pub(super) fn drop_index(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 3 {
        return Err(Error::WrongArity("FT.DROPINDEX".into()));
    }
    drop(cx, args, args.len() > 2 && args.is(2, "DD"))
}

/// Removes an index, and its documents if it `deletes` them. Those of a TEMPORARY index go unless the call keeps them explicitly.
pub(super) fn drop(cx: &mut Ctx<'_>, args: Args<'_>, deletes: bool) -> Result {
    let unknown = absent(cx, args, UNKNOWN_INDEX);
    let name = args.at(1);
    let Some(index) = cx.instance().search.index(name) else { return Err(unknown) };
    let keeps = args.len() > 2 && args.is(2, FORCE_KEEP);
    let deletes = (deletes || index.is_temporary()) && !keeps;
    if deletes {
        // All of its documents go, also those that no query has seen.
        search::catch_up(cx.instance(), cx.now(), &|| false);
    }
    let index = cx.instance().search.drop_index(cx.instance().database(0), name).ok_or(unknown)?;
    if deletes {
        let ids: Vec<Box<[u8]>> = index.engine().ids().map(Into::into).collect();
        ids.iter().for_each(|id| delete(cx, id));
    }
    // Its documents are deleted in the stream, whatever a replica's index knows by then.
    cx.instead(&[b"FT._DROPINDEXIFX", index.name(), FORCE_KEEP.as_bytes()]);
    cx.count_changes(1);
    cx.reply.ok();
    Ok(())
}

/// Deletes a document, in the journal too.
fn delete(cx: &Ctx<'_>, id: &[u8]) {
    let database = cx.instance().database(0);
    loop {
        match database.drop_key(id) {
            Dropped::Lent => thread::sleep(NAP),
            Dropped::Absent => return,
            Dropped::Gone => break,
        }
    }
    cx.count_changes(1);
    if cx.client.db == 0 {
        cx.tell(&database.key(id), Event::DEL);
    }
}

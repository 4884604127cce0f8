//! The documents of an answer, read from the keys.

use query_engine::{Datum, FieldKind, FoundWord, Hit, Hits, Language, Marks, SortKey, Summary, highlight, summarize};

use super::find::Request;
use super::lookup::Deadline;
use super::words::{MAX_ECHO, Words};
use crate::command::Result;
use crate::exec::core::{Ctx, Instance};
use crate::exec::search::{ask_for_documents, read_document};
use crate::keyspace::{Entry, ValueRef};
use crate::protocol::error::{Error, echo};
use crate::search::{Definition, SearchIndex, Source, SourceField, listed, path, property, shown};

/// A field that RETURN names.
#[derive(Clone, Copy)]
pub(super) struct Returned<'a> {
    pub(super) identifier: &'a [u8],
    pub(super) name: &'a [u8],
}

/// Reads `identifier [AS name] …`
pub(super) fn returned<'a>(mut words: Words<'a>) -> Result<Vec<Returned<'a>>> {
    let mut fields = Vec::new();
    while let Some(word) = words.next() {
        let identifier = word;
        let name = if words.take("AS") {
            let name = words.next().ok_or(Error::Static("RETURN path AS name - must be accompanied with NAME"))?;
            if name.eq_ignore_ascii_case(b"AS") {
                return Err(Error::Static("Alias for RETURN cannot be `AS`"));
            }
            name
        } else {
            word
        };
        fields.push(Returned { identifier, name });
    }
    Ok(fields)
}

/// HIGHLIGHT and SUMMARIZE.
#[derive(Default)]
pub(super) struct Marking<'a> {
    highlight: Option<Highlight<'a>>,
    summarize: Option<Summarize<'a>>,
}

/// The fields that an option names; `None` are all.
type Names<'a> = Option<Vec<&'a [u8]>>;

struct Highlight<'a> {
    fields: Names<'a>,
    open: &'a [u8],
    close: &'a [u8],
}

struct Summarize<'a> {
    fields: Names<'a>,
    fragments: usize,
    words: usize,
    separator: &'a [u8],
}

impl<'a> Marking<'a> {
    pub(super) fn is_on(&self) -> bool {
        self.highlight.is_some() || self.summarize.is_some()
    }

    /// Takes an option; false if the next argument is none of these.
    pub(super) fn take(&mut self, words: &mut Words<'a>) -> Result<bool> {
        if words.take("HIGHLIGHT") {
            let fields = names(words)?;
            let (mut open, mut close): (&[u8], &[u8]) = (b"<b>", b"</b>");
            if words.take("TAGS") {
                (open, close) = (words.need("HIGHLIGHT")?, words.need("HIGHLIGHT")?);
            }
            self.highlight = Some(Highlight { fields, open, close });
            return Ok(true);
        }
        if !words.take("SUMMARIZE") {
            return Ok(false);
        }
        let (fields, mut fragments, mut len, mut separator) = (names(words)?, 3, 20, b"... ".as_slice());
        loop {
            match () {
                () if words.take("FRAGS") => fragments = words.number("FRAGS")?,
                () if words.take("LEN") => len = words.number("LEN")?,
                () if words.take("SEPARATOR") => separator = words.need("SEPARATOR")?,
                () => break,
            }
        }
        self.summarize = Some(Summarize { fields, fragments, words: len, separator });
        Ok(true)
    }

    /// Refuses fields that are not there to be marked.
    pub(super) fn check(&self, definition: &Definition, request: &Request<'_>) -> Result {
        if !self.is_on() || request.wants_no_documents() {
            return Ok(());
        }
        let field = |name: &[u8]| definition.fields.iter().find(|field| field.name.as_bytes() == name);
        if let Some(returned) = &request.returned {
            let absent = returned.iter().map(|field| field.identifier).chain(self.named());
            return absent.filter(|name| field(name).is_none()).try_for_each(|name| {
                let name = echo(name, MAX_ECHO);
                Err(Error::Message(format!("Property `{name}` is not in schema")))
            });
        }
        // JSON is shown as a whole, beside the sortable fields that are named.
        let is_there = |name: &[u8]| match definition.source {
            Source::Hash => field(name).is_some(),
            Source::Json => field(name).is_some_and(|field| field.is_sortable || request.sorts_by(name)),
        };
        let absent = self.named().find(|name| !is_there(name));
        absent.map_or(Ok(()), |name| Err(Error::Message(format!("No such property `{}`", echo(name, MAX_ECHO)))))
    }

    /// The fields that are named by HIGHLIGHT or SUMMARIZE.
    fn named(&self) -> impl Iterator<Item = &'a [u8]> {
        let named = [self.highlight.as_ref().map(|it| &it.fields), self.summarize.as_ref().map(|it| &it.fields)];
        named.into_iter().flatten().flatten().flatten().copied()
    }

    /// A field's value as it is shown. Only words in TEXT fields are found, by the query's language.
    fn mark(
        &self,
        (name, kind): (&[u8], Option<&FieldKind>),
        text: Vec<u8>,
        (words, language): (&[FoundWord], Option<Language>),
        index: &SearchIndex,
    ) -> Vec<u8> {
        let own: Vec<_>;
        let words = match kind {
            Some(FieldKind::Text { stem: true, phonetic: true, .. }) => words,
            Some(FieldKind::Text { stem, phonetic, .. }) => {
                let is_own = |word: &&FoundWord| (*stem || !word.is_stem()) && (*phonetic || !word.is_phonetic());
                own = words.iter().filter(is_own).cloned().collect();
                &own
            }
            _ => &[],
        };
        let concerns = |fields: &Names<'_>| fields.as_ref().is_none_or(|fields| fields.contains(&name));
        let (language, punctuation) = {
            let engine = index.engine();
            (language.unwrap_or_else(|| engine.schema().language), engine.schema().punctuation)
        };
        let marks = |open, close| Marks { words, language, punctuation, open, close };
        let highlights = self.highlight.as_ref().filter(|highlight| concerns(&highlight.fields));
        let (open, close): (&[u8], &[u8]) = highlights.map_or((b"", b""), |it| (it.open, it.close));
        match self.summarize.as_ref().filter(|summarize| concerns(&summarize.fields)) {
            Some(Summarize { fragments, words, separator, .. }) => {
                let engine = index.engine();
                let stop_words = &engine.schema().stop_words;
                // As in RediSearch, words that are to be marked and are not there leave the text as it is.
                let keeps_unfound = highlights.is_some();
                let summary = Summary { fragments: *fragments, words: *words, separator, stop_words, keeps_unfound };
                summarize(&text, &marks(open, close), &summary)
            }
            None if highlights.is_some() => highlight(&text, &marks(open, close)),
            None => text,
        }
    }
}

/// `[FIELDS count field …]`
fn names<'a>(words: &mut Words<'a>) -> Result<Names<'a>> {
    if words.take("FIELDS") { Ok(Some(words.list("FIELDS")?.rest().collect())) } else { Ok(None) }
}

/// Fields of a document as they are shown.
pub(super) type Shown = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads documents.
pub(super) struct Loader<'l> {
    instance: &'l Instance,
    now: u64,
    definition: &'l Definition,
    dialect: u64,
    deadline: Deadline,
}

/// The hits of an answer with their documents.
pub(super) struct Loaded {
    pub(super) hits: Hits,
    /// By hit; `None` if it is gone.
    pub(super) documents: Vec<Option<Shown>>,
    /// By hit, if they are wanted.
    pub(super) payloads: Vec<Option<Vec<u8>>>,
}

impl<'l> Loader<'l> {
    pub(super) fn new(
        cx: &Ctx<'_>,
        instance: &'l Instance,
        definition: &'l Definition,
        dialect: u64,
        deadline: Deadline,
    ) -> Self {
        Self { instance, now: cx.now(), definition, dialect, deadline }
    }

    pub(super) fn read<R>(&self, id: &[u8], read: impl FnOnce(&Entry) -> R) -> Option<R> {
        read_document(self.instance, (id, self.now), &|| self.deadline.is_over(), read)
    }

    /// Asks for the memory of documents that are read next.
    pub(super) fn ask_for(&self, ids: &[&[u8]]) {
        ask_for_documents(self.instance, ids, self.now);
    }

    /// The value that a field sorts a document by.
    pub(super) fn sort_key(&self, id: &[u8], field: &SourceField) -> SortKey {
        if self.definition.source == Source::Json {
            let value = self.read(id, |entry| self.value(entry, field.name.as_bytes())).flatten();
            return match value.as_ref().map(Datum::plain) {
                Some(Datum::Number(number)) => SortKey::Number(*number),
                Some(Datum::Text(text)) => SortKey::Text(text.as_ref().into()),
                _ => SortKey::Missing,
            };
        }
        let text = self.read(id, |entry| self.field(entry, field.name.as_bytes())).flatten();
        match (text, &field.kind) {
            (None, _) => SortKey::Missing,
            (Some(text), FieldKind::Numeric) => SortKey::parse(&text),
            // The index keeps no key of a shape, not even of a sortable one.
            (Some(_), FieldKind::Shape(_)) if field.is_sortable => SortKey::Missing,
            (Some(text), FieldKind::Shape(_)) => SortKey::Text(text.into()),
            (Some(text), _) => SortKey::Text(String::from_utf8_lossy(&text).to_lowercase().into_bytes().into()),
        }
    }

    /// Reads the documents of hits, unless they are not wanted.
    pub(super) fn load(&self, index: &SearchIndex, request: &Request<'_>, hits: Hits) -> Loaded {
        let payload = |hit: &Hit| index.engine().payload(&hit.id).map(<[u8]>::to_vec);
        let payloads = if request.with_payloads { hits.hits.iter().map(payload).collect() } else { Vec::new() };
        if request.wants_no_documents() {
            return Loaded { hits, documents: Vec::new(), payloads };
        }
        let document = |hit: &Hit| {
            let fields = self.read(&hit.id, |entry| self.fields(entry, hit, request))?;
            let mark = |(name, text): (Vec<u8>, Vec<u8>)| {
                let field = self.definition.fields.iter().find(|field| field.name.as_bytes() == name);
                let is_marked = match field {
                    // A number that is asked for by name is no text.
                    Some(field) => {
                        !self.shows_list(field) && (field.kind != FieldKind::Numeric || request.returned.is_none())
                    }
                    None => self.definition.source == Source::Hash && request.returned.is_none(),
                };
                let kind = field.map(|field| &field.kind);
                let found = (&*hit.words, request.common.language);
                let text = if is_marked { request.marking.mark((&name, kind), text, found, index) } else { text };
                (name, text)
            };
            Some(if request.marking.is_on() { fields.into_iter().map(mark).collect() } else { fields })
        };
        let documents = hits.hits.iter().map(document).collect();
        Loaded { hits, documents, payloads }
    }

    /// The fields of a document that a request wants, and the distances of vectors.
    fn fields(&self, entry: &Entry, hit: &Hit, request: &Request<'_>) -> Shown {
        let mut fields = Shown::new();
        let distance = |name: &[u8]| {
            let (_, distance) = hit.distances.iter().find(|(known, _)| known.as_bytes() == name)?;
            Some(Datum::Number(*distance).bytes().to_vec())
        };
        // The value that documents are sorted by stands first.
        let sorted = request.sort_by.map(|(name, _)| name.as_bytes());
        if let Some(returned) = &request.returned {
            let first = returned.iter().filter(|field| sorted == Some(field.name));
            for field in first.chain(returned.iter().filter(|field| sorted != Some(field.name))) {
                let is_known = fields.iter().any(|(known, _)| known == field.name);
                let text = distance(field.identifier).or_else(|| self.returned(entry, field.identifier));
                if let Some(text) = text.filter(|_| !is_known) {
                    fields.push((field.name.to_vec(), text));
                }
            }
            return fields;
        }
        // The index keeps a sortable text in lower case, and shows it so under a name that the document does not have.
        let kept = |name: &[u8]| match &hit.sort_key {
            Some(SortKey::Text(text)) if self.is_kept(name) => Some(text.to_vec()),
            _ => None,
        };
        let all = self.all(entry);
        let own = |name: &[u8]| all.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
        if let Some(name) = sorted
            && let Some(text) =
                distance(name).or_else(|| own(name)).or_else(|| kept(name)).or_else(|| self.returned(entry, name))
        {
            fields.push((name.to_vec(), text));
        }
        if self.definition.source == Source::Json {
            for name in request.marking.named() {
                if fields.iter().all(|(known, _)| *known != name)
                    && let Some(text) = self.returned(entry, name)
                {
                    fields.push((name.to_vec(), text));
                }
            }
        }
        let distances = hit.distances.iter().map(|(name, _)| (name.as_bytes().to_vec(), distance(name.as_bytes())));
        let distances: Shown = distances.filter_map(|(name, text)| Some((name, text?))).collect();
        for (name, text) in distances.into_iter().chain(all) {
            if fields.iter().all(|(known, _)| *known != name) {
                fields.push((name, text));
            }
        }
        fields
    }

    /// Answers show all values of the field's path, as a list.
    fn shows_list(&self, field: &SourceField) -> bool {
        self.lists_values() && !field.is_sortable
    }

    /// All fields of a document: those of a hash, or the JSON document as a whole.
    pub(super) fn all(&self, entry: &Entry) -> Shown {
        match entry.value() {
            ValueRef::Hash(hash) => {
                let pairs = hash.at(self.now).iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
                pairs.filter(|(name, _)| !self.definition.is_about(name)).collect()
            }
            ValueRef::Json(json) => {
                let text = json.root().to_text();
                let text = if self.dialect >= 3 { format!("[{text}]") } else { text };
                vec![(b"$".to_vec(), text.into_bytes())]
            }
            _ => Shown::new(),
        }
    }

    /// The index keeps the values of a field of hashes.
    fn is_kept(&self, name: &[u8]) -> bool {
        let mut fields = self.definition.fields.iter();
        self.definition.source == Source::Hash && fields.any(|field| field.is_sortable && field.name.as_bytes() == name)
    }

    /// A field that an answer names: a number as the index keeps it, and the key by its own property.
    fn returned(&self, entry: &Entry, name: &[u8]) -> Option<Vec<u8>> {
        if name == query_engine::KEY.as_bytes() {
            return Some(entry.key().to_vec());
        }
        let text = self.field(entry, name)?;
        let field = self.definition.fields.iter().find(|field| field.name.as_bytes() == name);
        let is_number = field.is_some_and(|field| field.kind == FieldKind::Numeric);
        if is_number
            && self.definition.source == Source::Hash
            && let SortKey::Number(number) = SortKey::parse(&text)
        {
            return Some(Datum::Number(number).bytes().to_vec());
        }
        Some(text)
    }

    /// A field by its name in the schema, its name in the hash, or its path.
    pub(super) fn field(&self, entry: &Entry, name: &[u8]) -> Option<Vec<u8>> {
        let known = self.definition.fields.iter().find(|field| field.name.as_bytes() == name);
        match entry.value() {
            ValueRef::Hash(hash) => {
                let identifier = known.map_or(name, |field| &field.identifier);
                hash.at(self.now).get(identifier).map(|text| text.to_vec())
            }
            // A name is a path only if it begins like one.
            ValueRef::Json(_) if known.is_none() && !name.starts_with(b"$") => None,
            ValueRef::Json(json) if self.dialect < 3 => {
                let path = path(known.map_or(name, |field| &field.identifier)).ok()?;
                json.find(&path).ok()?.next().map(shown)
            }
            ValueRef::Json(_) => self.value(entry, name).map(|value| value.bytes().to_vec()),
            _ => None,
        }
    }

    /// A field to compute with: in JSON, from dialect 3 on, the values of its path as a list.
    pub(super) fn value(&self, entry: &Entry, name: &[u8]) -> Option<Datum> {
        match entry.value() {
            ValueRef::Json(json) if self.lists_values() => {
                let known = self.definition.fields.iter().find(|field| field.name.as_bytes() == name);
                let path = path(known.map_or(name, |field| &field.identifier)).ok()?;
                listed(json, &path, known.is_some_and(|field| field.is_sortable))
            }
            _ => property(self.definition, entry, &String::from_utf8_lossy(name), self.now),
        }
    }

    /// Returns true if answers show all values of a path.
    pub(super) fn lists_values(&self) -> bool {
        self.definition.source == Source::Json && self.dialect >= 3
    }
}

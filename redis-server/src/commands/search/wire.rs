//! The parts of an answer between the nodes of a cluster, as bytes: numbers in eight bytes, little-endian, and lengths in front of texts and lists.
//!
//! Both ends are nodes of one cluster. Bytes that do not fit are an error of the call.

use query_engine::{Answers, Datum, Explanation, Hit, Hits, Part, PartRow, SortKey};

use super::load::{Loaded, Shown};
use crate::command::Result;
use crate::protocol::error::Error;

/// The deepest nesting of lists and explanations.
const MAX_DEPTH: usize = 1024;

const DAMAGED: Error =
    Error::Static("ERR The part of another node is not understood: all nodes must have the same version");

/// Appends values.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub(super) fn double(&mut self, number: f64) {
        self.number(number.to_bits());
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.0.push(flag.into());
    }

    pub(super) fn text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.0.extend_from_slice(text);
    }

    /// A list with its length.
    pub(super) fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.count(items.len());
        items.iter().for_each(|item| write(self, item));
    }

    /// A value that may be absent.
    pub(super) fn option<T>(&mut self, item: Option<&T>, write: impl FnOnce(&mut Self, &T)) {
        self.flag(item.is_some());
        if let Some(item) = item {
            write(self, item);
        }
    }

    fn key(&mut self, key: &SortKey) {
        match key {
            SortKey::Missing => self.0.push(0),
            SortKey::Number(number) => {
                self.0.push(1);
                self.double(*number);
            }
            SortKey::Text(text) => {
                self.0.push(2);
                self.text(text);
            }
        }
    }

    fn datum(&mut self, datum: &Datum) {
        match datum {
            Datum::Null => self.0.push(0),
            Datum::Number(number) => {
                self.0.push(1);
                self.double(*number);
            }
            Datum::Text(text) => {
                self.0.push(2);
                self.text(text);
            }
            Datum::List(items) => {
                self.0.push(3);
                self.list(items, Self::datum);
            }
            Datum::Shown(value, text) => {
                self.0.push(4);
                self.datum(value);
                self.text(text);
            }
        }
    }

    fn explanation(&mut self, explanation: &Explanation) {
        self.text(explanation.text.as_bytes());
        self.list(&explanation.parts, Self::explanation);
    }

    /// The hits of a search with their documents.
    pub(super) fn loaded(&mut self, loaded: &Loaded) {
        let Loaded { hits, documents, payloads } = loaded;
        self.number(hits.total);
        self.flag(hits.is_partial);
        self.list(&hits.hits, |writer, hit| {
            writer.text(&hit.id);
            writer.double(hit.score);
            writer.option(hit.sort_key.as_ref(), Self::key);
            writer.option(hit.explanation.as_ref(), Self::explanation);
            writer.list(&hit.distances, |writer, (name, distance)| {
                writer.text(name.as_bytes());
                writer.double(*distance);
            });
        });
        self.list(payloads, |writer, payload| writer.option(payload.as_ref(), |writer, text| writer.text(text)));
        self.list(documents, |writer, document| {
            writer.option(document.as_ref(), |writer, fields: &Shown| {
                writer.list(fields, |writer, (name, text)| {
                    writer.text(name);
                    writer.text(text);
                });
            });
        });
    }

    /// Names of properties, and rows of documents.
    pub(super) fn rows(&mut self, columns: &[String], rows: &[PartRow]) {
        self.list(columns, |writer, name| writer.text(name.as_bytes()));
        self.list(rows, |writer, (id, values)| {
            writer.text(id);
            writer.list(values, |writer, value| writer.option(value.as_ref(), Self::datum));
        });
    }

    /// The part of an aggregation.
    pub(super) fn part(&mut self, part: &Part) {
        self.flag(part.is_partial);
        self.number(part.left_out);
        self.rows(&part.columns, &part.rows);
    }

    /// The answers to both queries of FT.HYBRID.
    pub(super) fn answers(&mut self, answers: &Answers) {
        self.flag(answers.is_partial);
        self.list(&answers.text, |writer, (id, score)| {
            writer.text(id);
            writer.double(*score);
        });
        self.list(&answers.near, |writer, (id, distance, similarity)| {
            writer.text(id);
            writer.double(*distance);
            writer.double(*similarity);
        });
    }
}

/// Reads values in the order in which they were written.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or(DAMAGED)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let bytes = self.take(size_of::<u64>())?.try_into().map_err(|_| DAMAGED)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn double(&mut self) -> Result<f64> {
        Ok(f64::from_bits(self.number()?))
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        Ok(self.byte()? != 0)
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8]> {
        let len = usize::try_from(self.number()?).map_err(|_| DAMAGED)?;
        self.take(len)
    }

    pub(super) fn name(&mut self) -> Result<String> {
        String::from_utf8(self.text()?.to_vec()).map_err(|_| DAMAGED)
    }

    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        // The length may be wrong: nothing is allocated for it.
        let (count, mut items) = (self.number()?, Vec::new());
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    /// Reads something that may contain its like.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(DAMAGED);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn key(&mut self) -> Result<SortKey> {
        Ok(match self.byte()? {
            0 => SortKey::Missing,
            1 => SortKey::Number(self.double()?),
            2 => SortKey::Text(self.text()?.into()),
            _ => return Err(DAMAGED),
        })
    }

    fn datum(&mut self) -> Result<Datum> {
        self.nested(|reader| {
            Ok(match reader.byte()? {
                0 => Datum::Null,
                1 => Datum::Number(reader.double()?),
                2 => Datum::text(reader.text()?),
                3 => Datum::List(reader.list(Self::datum)?.into()),
                4 => Datum::Shown(Box::new(reader.datum()?), reader.text()?.into()),
                _ => return Err(DAMAGED),
            })
        })
    }

    fn explanation(&mut self) -> Result<Explanation> {
        self.nested(|reader| Ok(Explanation { text: reader.name()?, parts: reader.list(Self::explanation)? }))
    }

    fn hit(&mut self) -> Result<Hit> {
        Ok(Hit {
            id: self.text()?.into(),
            score: self.double()?,
            sort_key: self.option(Self::key)?,
            explanation: self.option(Self::explanation)?,
            words: Vec::new(),
            distances: self.list(|reader| Ok((reader.name()?, reader.double()?)))?,
        })
    }

    pub(super) fn loaded(&mut self) -> Result<Loaded> {
        let (total, is_partial) = (self.number()?, self.flag()?);
        let hits = Hits { total, is_partial, hits: self.list(Self::hit)? };
        let payloads = self.list(|reader| reader.option(|reader| Ok(reader.text()?.to_vec())))?;
        let field = |reader: &mut Self| Ok((reader.text()?.to_vec(), reader.text()?.to_vec()));
        let documents = self.list(|reader| reader.option(|reader| reader.list(field)))?;
        let fits = |len: usize| len == 0 || len == hits.hits.len();
        if fits(payloads.len()) && fits(documents.len()) {
            Ok(Loaded { hits, documents, payloads })
        } else {
            Err(DAMAGED)
        }
    }

    pub(super) fn rows(&mut self) -> Result<(Vec<String>, Vec<PartRow>)> {
        let columns = self.list(Self::name)?;
        let rows =
            self.list(|reader| Ok((reader.text()?.into(), reader.list(|reader| reader.option(Self::datum))?)))?;
        Ok((columns, rows))
    }

    pub(super) fn part(&mut self) -> Result<Part> {
        let (is_partial, left_out) = (self.flag()?, self.number()?);
        let (columns, rows) = self.rows()?;
        Ok(Part { columns, rows, left_out, is_partial })
    }

    pub(super) fn answers(&mut self) -> Result<Answers> {
        let is_partial = self.flag()?;
        let text = self.list(|reader| Ok((reader.text()?.into(), reader.double()?)))?;
        let near = self.list(|reader| Ok((reader.text()?.into(), reader.double()?, reader.double()?)))?;
        Ok(Answers { text, near, is_partial })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn parts_are_read_as_they_were_written() {
        let nested = Datum::List([Datum::Null, Datum::Number(1.5), Datum::text("a")].into());
        let shown = Datum::Shown(Box::new(nested.clone()), b"x"[..].into());
        let rows = vec![(Arc::from(&b"d:1"[..]), vec![Some(nested), None, Some(shown)])];
        let part = Part { columns: ["a", "b", "c"].map(str::to_owned).to_vec(), rows, left_out: 7, is_partial: true };
        let explanation = Explanation {
            text: "sum".to_owned(),
            parts: vec![Explanation { text: "1".to_owned(), parts: Vec::new() }],
        };
        let hit = Hit {
            id: b"d:1"[..].into(),
            score: f64::INFINITY,
            sort_key: Some(SortKey::Text(b"k"[..].into())),
            explanation: Some(explanation),
            words: Vec::new(),
            distances: vec![("d".to_owned(), 0.5)],
        };
        let hits = Hits { total: 3, hits: vec![hit], is_partial: false };
        let documents = vec![Some(vec![(b"t".to_vec(), b"hello".to_vec())])];
        let loaded = Loaded { hits: hits.clone(), documents: documents.clone(), payloads: vec![None] };
        let answers =
            Answers { text: vec![(b"a"[..].into(), 2.0)], near: vec![(b"b"[..].into(), 0.1, 0.9)], is_partial: true };
        let mut writer = Writer::default();
        writer.part(&part);
        writer.loaded(&loaded);
        writer.answers(&answers);
        let mut reader = Reader::new(&writer.0);
        assert_eq!(reader.part().unwrap(), part);
        let read = reader.loaded().unwrap();
        assert_eq!((read.hits, read.documents, read.payloads), (hits, documents, vec![None]));
        assert_eq!(reader.answers().unwrap(), answers);
        // No cut and no change of a byte is a panic.
        for at in 0..writer.0.len() {
            let cut = |bytes: &[u8]| {
                let mut reader = Reader::new(bytes);
                reader.part().and_then(|_| reader.loaded()).and_then(|_| reader.answers())
            };
            assert!(cut(&writer.0[..at]).is_err());
            let mut changed = writer.0.clone();
            changed[at] ^= 0xff;
            // It may be a part all the same.
            drop(cut(&changed));
        }
        let deep = [3u8, 1, 0, 0, 0, 0, 0, 0, 0].repeat(100_000);
        assert!(Reader::new(&deep).datum().is_err());
    }
}

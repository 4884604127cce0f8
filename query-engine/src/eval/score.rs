//! RediSearch's scorers, with the explanations of EXPLAINSCORE.

use super::phrase;
use super::record::{Data, Record};
use super::search::SearchOptions;
use crate::index::docs::{Brief, Found};

/// How well a document matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scorer {
    /// Frequency × rarity, divided by the document's most frequent word and by how far words stand apart.
    #[default]
    Tfidf,
    /// The same, divided by the document's length.
    TfidfDocNorm,
    /// RediSearch's older BM25.
    Bm25,
    /// BM25 as it is commonly defined; Redis 8's default.
    Bm25Std,
    /// The same, stretched by a factor and mapped by the hyperbolic tangent to numbers from 0 to 1.
    Bm25StdTanh(u32),
    /// The same, divided by the greatest score of all documents that match.
    Bm25StdNorm,
    /// Sums of frequencies over intersections, the greatest of unions.
    DisMax,
    /// The document's own score.
    DocScore,
    /// Equal bits of the document's payload and the query's.
    Hamming,
}

/// The version whose constants BM25STD uses, and whose rules say which words are expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// RediSearch 2.10: b = 0.5, and weights count for groups alone.
    #[default]
    Search210,
    /// Redis 8: b = 0.75, and weights of words count.
    Redis8,
}

/// The explanation of a score (EXPLAINSCORE).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// One line.
    pub text: String,
    /// The parts.
    pub parts: Vec<Self>,
}

/// TFIDF's rarity of a word: the exponent of 1 + (documents + 1) ÷ (documents with it).
pub(super) fn idf(all: u64, with_word: u64) -> f64 {
    let ratio = 1.0 + (all + 1) as f64 / with_word.max(1) as f64;
    f64::from((ratio.to_bits() >> 52 & 0x7ff) as i32 - 1023)
}

/// BM25's rarity of a word, in single precision as RediSearch has it.
pub(super) fn bm25_idf(all: u64, with_word: u64) -> f64 {
    let (all, with_word) = (all.max(with_word), with_word);
    f64::from(1.0 + ((all - with_word) as f32 + 0.5) / (with_word as f32 + 0.5)).ln()
}

/// Scores the matches of one query.
pub(super) struct Scoring<'s> {
    pub(super) scorer: Scorer,
    pub(super) level: Level,
    /// Words in a document, on average.
    pub(super) average_length: f64,
    /// The query's bytes for [`Scorer::Hamming`].
    pub(super) payload: &'s [u8],
    pub(super) explain: bool,
    /// BM25STD's divisor of a document by its length, without the word's frequency; of the lengths that most documents have.
    divisors: Vec<f64>,
}

/// Lengths whose divisors are made before the first document.
const USUAL_LENGTHS: u32 = 128;
/// BM25's k1.
const K1: f32 = 1.2;

/// A score with its explanation, which is empty unless it is asked for.
type Scored = (f64, Explanation);

impl<'s> Scoring<'s> {
    /// For documents that have so many words on average.
    pub(super) fn new(options: &SearchOptions<'s>, average_length: f64) -> Self {
        let SearchOptions { scorer, level, payload, explain, .. } = *options;
        let mut scoring = Self { scorer, level, average_length, payload, explain, divisors: Vec::new() };
        if scoring.is_plain_sum() {
            scoring.divisors = (0..USUAL_LENGTHS).map(|length| scoring.divisor(length)).collect();
        }
        scoring
    }
    pub(super) fn needs_record(&self) -> bool {
        !matches!(self.scorer, Scorer::DocScore | Scorer::Hamming)
    }

    /// True if [`Matches::bm25std`](super::matches::Matches::bm25std) gives the score, times the document's own.
    pub(super) fn is_plain_sum(&self) -> bool {
        matches!(self.scorer, Scorer::Bm25Std | Scorer::Bm25StdNorm) && !self.explain
    }

    pub(super) fn score(&self, record: &Record<'_>, found: &Found<'_>) -> Scored {
        let brief = found.brief;
        match self.scorer {
            Scorer::Tfidf => self.tfidf(record, brief, brief.max_frequency),
            Scorer::TfidfDocNorm => self.tfidf(record, brief, brief.length),
            Scorer::Bm25 => self.bm25(record, brief),
            // The greatest score is known at the end.
            Scorer::Bm25Std | Scorer::Bm25StdNorm => self.bm25std_document(record, brief),
            Scorer::Bm25StdTanh(factor) => {
                let (score, part) = self.bm25std_document(record, brief);
                let text =
                    || format!("Final Normalized BM25 : tanh(stretch factor 1/{factor} * Final BM25 {score:.2})");
                ((score / f64::from(factor)).tanh(), self.explain(vec![part], text))
            }
            Scorer::DisMax => self.dismax(record),
            Scorer::DocScore => {
                let score = f64::from(brief.score);
                (score, self.explain(vec![], || format!("Document's score is {score:.2}")))
            }
            Scorer::Hamming => self.hamming(found),
        }
    }

    fn explain(&self, parts: Vec<Explanation>, text: impl FnOnce() -> String) -> Explanation {
        if self.explain { Explanation { text: text(), parts } } else { Explanation::default() }
    }

    /// Adds the children up.
    fn sum(&self, children: &[Record<'_>], each: impl Fn(&Record<'_>) -> Scored) -> (f64, Vec<Explanation>) {
        let (mut sum, mut parts) = (0.0, Vec::new());
        for child in children {
            let (score, part) = each(child);
            sum += score;
            if self.explain {
                parts.push(part);
            }
        }
        (sum, parts)
    }

    fn tfidf(&self, record: &Record<'_>, brief: Brief, norm: u32) -> Scored {
        if brief.score == 0.0 {
            return (0.0, self.explain(vec![], || "Document score is 0".to_owned()));
        }
        // A document without words has no norm: its score is infinite, as in RediSearch, or no number.
        let (words, part) = self.tfidf_words(record);
        let slop = phrase::slop(record);
        let score = f64::from(brief.score) * words / f64::from(norm) / f64::from(slop);
        let text = || {
            let doc_score = brief.score;
            format!("Final TFIDF : words TFIDF {words:.2} * document score {doc_score:.2} / norm {norm} / slop {slop}")
        };
        (score, self.explain(vec![part], text))
    }

    fn tfidf_words(&self, record: &Record<'_>) -> Scored {
        let (weight, frequency) = (record.weight, record.frequency);
        match &record.data {
            Data::Word { word, .. } => {
                let (score, idf) = (weight * f64::from(frequency) * word.idf, word.idf);
                let text = || format!("(TFIDF {score:.2} = Weight {weight:.2} * TF {frequency} * IDF {idf:.2})");
                (score, self.explain(vec![], text))
            }
            Data::Intersection(children) | Data::Union(children) => {
                let (sum, parts) = self.sum(children, |child| self.tfidf_words(child));
                let text = || format!("(Weight {weight:.2} * total children TFIDF {sum:.2})");
                (weight * sum, self.explain(parts, text))
            }
            Data::Number | Data::Virtual => {
                let score = weight * f64::from(frequency);
                let text = || format!("(TFIDF {score:.2} = Weight {weight:.2} * Frequency {frequency})");
                (score, self.explain(vec![], text))
            }
        }
    }

    fn bm25(&self, record: &Record<'_>, brief: Brief) -> Scored {
        let (words, part) = self.bm25_words(record);
        let slop = phrase::slop(record);
        let score = f64::from(brief.score) * words / f64::from(slop);
        let text = || format!("Final BM25 : words BM25 {words:.2} * document score {:.2} / slop {slop}", brief.score);
        (score, self.explain(vec![part], text))
    }

    fn bm25_words(&self, record: &Record<'_>) -> Scored {
        let (weight, frequency) = (record.weight, record.frequency);
        let (f, average) = (f64::from(frequency), self.average_length);
        let saturation = f / (f + f64::from(1.2_f32) * (0.5 + 0.5 * average));
        let fraction =
            || format!("F {frequency} / (F {frequency} + k1 1.2 * (1 - b 0.5 + b 0.5 * Average Len {average:.2})))");
        match &record.data {
            Data::Word { word, .. } => {
                let (idf, score) = (word.idf, self.word_weight(weight) * word.idf * saturation);
                (
                    score,
                    self.explain(vec![], || {
                        format!("({score:.2} = {}IDF {idf:.2} * {}", self.shown_weight(weight), fraction())
                    }),
                )
            }
            Data::Intersection(children) | Data::Union(children) => {
                self.bm25_group(weight, children, |child| self.bm25_words(child))
            }
            Data::Number | Data::Virtual if frequency > 0 => {
                let score = weight * saturation;
                (score, self.explain(vec![], || format!("({score:.2} = Weight {weight:.2} * {}", fraction())))
            }
            Data::Number | Data::Virtual => (0.0, self.explain(vec![], || "Frequency 0 -> value 0".to_owned())),
        }
    }

    fn bm25_group(&self, weight: f64, children: &[Record<'_>], each: impl Fn(&Record<'_>) -> Scored) -> Scored {
        let (sum, parts) = self.sum(children, each);
        (weight * sum, self.explain(parts, || format!("(Weight {weight:.2} * children BM25 {sum:.2})")))
    }

    /// RediSearch 2.10 leaves weights of words out of both BM25s.
    fn word_weight(&self, weight: f64) -> f64 {
        if self.level == Level::Redis8 { weight } else { 1.0 }
    }

    fn shown_weight(&self, weight: f64) -> String {
        if self.level == Level::Redis8 { format!("Weight {weight:.2} * ") } else { String::new() }
    }

    fn bm25std_document(&self, record: &Record<'_>, brief: Brief) -> Scored {
        let (words, part) = self.bm25std_words(record, brief);
        let score = f64::from(brief.score) * words;
        let text = || format!("Final BM25 : words BM25 {words:.2} * document score {:.2}", brief.score);
        (score, self.explain(vec![part], text))
    }

    pub(super) fn bm25std_words(&self, record: &Record<'_>, brief: Brief) -> Scored {
        match &record.data {
            Data::Word { word, .. } => {
                self.bm25std_word(record.weight, word.bm25_idf, f64::from(record.frequency), brief, &word.text)
            }
            Data::Intersection(children) | Data::Union(children) => {
                self.bm25_group(record.weight, children, |child| self.bm25std_words(child, brief))
            }
            Data::Virtual if record.frequency > 0 && record.weight > 0.0 => {
                self.bm25std_word(record.weight, 1.0, 1.0, brief, b"*")
            }
            Data::Number | Data::Virtual => (0.0, self.explain(vec![], || "Irrelevant token -> score is 0".to_owned())),
        }
    }

    /// BM25STD of a word that occurs `f` times.
    pub(super) fn bm25std(&self, weight: f64, idf: f64, f: f64, brief: Brief) -> f64 {
        let known = self.divisors.get(brief.length as usize).copied();
        let below = f + known.unwrap_or_else(|| self.divisor(brief.length));
        // In RediSearch's order, for the same last digit.
        self.word_weight(weight) * idf * f * f64::from(K1 + 1.0) / below
    }

    fn divisor(&self, length: u32) -> f64 {
        let b = self.b();
        let relative = f64::from(b * length as f32) / self.average_length;
        f64::from(K1) * (f64::from(1.0 - b) + relative)
    }

    fn b(&self) -> f32 {
        if self.level == Level::Redis8 { 0.75 } else { 0.5 }
    }

    fn bm25std_word(&self, weight: f64, idf: f64, f: f64, brief: Brief, name: &[u8]) -> Scored {
        let score = self.bm25std(weight, idf, f, brief);
        let text = || {
            let (b, length, average) = (self.b(), brief.length, self.average_length);
            let (name, shown) = (String::from_utf8_lossy(name), self.shown_weight(weight));
            let length = format!("b {b} * Doc Len {length} / Average Doc Len {average:.2}");
            format!(
                "{name}: ({score:.2} = {shown}IDF {idf:.2} * (F {f:.2} * (k1 1.2 + 1)) / (F {f:.2} + k1 1.2 * (1 - b {b} + {length})))"
            )
        };
        (score, self.explain(vec![], text))
    }

    fn dismax(&self, record: &Record<'_>) -> Scored {
        let (weight, frequency) = (record.weight, record.frequency);
        let (value, parts) = match &record.data {
            Data::Intersection(children) => self.sum(children, |child| self.dismax(child)),
            Data::Union(children) => {
                let scored: Vec<Scored> = children.iter().map(|child| self.dismax(child)).collect();
                let greatest = scored.iter().map(|(score, _)| *score).fold(0.0, f64::max);
                (greatest, scored.into_iter().map(|(_, part)| part).collect())
            }
            Data::Word { .. } | Data::Number | Data::Virtual => {
                let score = weight * f64::from(frequency);
                let text = || format!("DISMAX {score:.2} = Weight {weight:.2} * Frequency {frequency}");
                return (score, self.explain(vec![], text));
            }
        };
        let score = weight * value;
        (score, self.explain(parts, || format!("{score:.2} = Weight {weight:.2} * children DISMAX {value:.2}")))
    }

    fn hamming(&self, found: &Found<'_>) -> Scored {
        let Some(payload) =
            found.doc().payload.as_ref().filter(|payload| !payload.is_empty() && payload.len() == self.payload.len())
        else {
            return (0.0, self.explain(vec![], || "Payloads provided to scorer vary in length".to_owned()));
        };
        let bits: u32 = payload.iter().zip(self.payload).map(|(one, other)| (one ^ other).count_ones()).sum();
        let score = 1.0 / (f64::from(bits) + 1.0);
        let text = || {
            let length = payload.len();
            format!("String length is {length}. Bit count is {bits}. Result is (1 / count + 1) = {score:.2}")
        };
        (score, self.explain(vec![], text))
    }
}

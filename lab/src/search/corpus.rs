//! Documents and vectors that are the same in every run, and the questions about them.

use crate::isolation::request;

/// Words of a document.
const WORDS: usize = 20;
/// Different words, whose frequencies are Zipf's.
const VOCABULARY: usize = 50_000;
/// Tags, of which each document has one: a tag is one per cent of the documents.
const TAGS: usize = 100;
/// Prices are whole numbers below it.
const PRICES: u64 = 1_000_000;
/// Different questions of a kind.
pub(super) const VARIANTS: usize = 100;
/// Nearest vectors that a question asks for.
pub(super) const NEAREST: usize = 10;
const SYLLABLES: usize = 70;

/// A small generator of numbers: the same seed, the same numbers.
pub(super) struct Random(u64);

impl Random {
    /// One for each purpose and number.
    pub(super) fn of(purpose: u64, number: usize) -> Self {
        // splitmix64: neighbouring numbers have nothing in common.
        let mut seed = (purpose << 48) ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678);
        seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((seed ^ (seed >> 31)) | 1)
    }

    fn next(&mut self) -> u64 {
        crate::load::xorshift(&mut self.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// From 0 to 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The rank of a word: its frequency is inverse to it.
    fn rank(&mut self) -> usize {
        ((VOCABULARY as f64 + 1.0).powf(self.unit()) as usize).saturating_sub(1).min(VOCABULARY - 1)
    }
}

/// The word of a rank: three syllables.
pub(super) fn word(rank: usize) -> String {
    // Prime to the number of all triples, so that neighbours in rank have different beginnings.
    let triple = (rank * 101_377) % SYLLABLES.pow(3);
    [triple / SYLLABLES.pow(2), triple / SYLLABLES, triple].map(|place| syllable(place % SYLLABLES)).concat()
}

fn syllable(place: usize) -> String {
    let (consonants, vowels) = (b"bdfghjklmnprtz", b"aeiou");
    [consonants[place / vowels.len()], vowels[place % vowels.len()]].map(char::from).iter().collect()
}

/// A document: text, tag, price.
pub(super) struct Document {
    pub(super) body: String,
    pub(super) tag: String,
    pub(super) price: u64,
}

impl Document {
    pub(super) fn of(number: usize) -> Self {
        let mut random = Random::of(1, number);
        let words: Vec<String> = (0..WORDS).map(|_| word(random.rank())).collect();
        Self { body: words.join(" "), tag: tag(random.below(TAGS)), price: random.next() % PRICES }
    }
}

fn tag(number: usize) -> String {
    format!("t{number}")
}

/// Tag of a vector's document.
pub(super) fn tag_of(number: usize) -> String {
    tag(number % TAGS)
}

/// Vectors around centres, a hundred around each.
pub(super) struct Vectors {
    pub(super) dimensions: usize,
    centres: usize,
}

impl Vectors {
    pub(super) fn new(count: usize, dimensions: usize) -> Self {
        Self { dimensions, centres: (count / 100).max(1) }
    }

    /// A vector by its number.
    pub(super) fn of(&self, number: usize) -> Vec<f32> {
        self.near(Random::of(2, number))
    }

    /// The vector of a question, which is none of those that are put in.
    pub(super) fn asked(&self, number: usize) -> Vec<f32> {
        self.near(Random::of(3, number))
    }

    fn near(&self, mut random: Random) -> Vec<f32> {
        let mut centre = Random::of(4, random.below(self.centres));
        let spread = |random: &mut Random, by: f64| (random.unit() * 2.0 - 1.0) * by;
        (0..self.dimensions).map(|_| (spread(&mut centre, 1.0) + spread(&mut random, 0.25)) as f32).collect()
    }
}

/// The bytes of a vector, as fields of hashes and parameters of queries have them.
pub(super) fn blob(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A kind of question about documents.
pub(super) struct Kind {
    pub(super) name: &'static str,
    words: fn(&mut Random, usize) -> Vec<String>,
}

pub(super) const KINDS: [Kind; 6] = [
    Kind { name: "a term", words: |_, number| search(&format!("@body:{}", word(50 + 10 * number)), &[]) },
    Kind {
        name: "two frequent terms",
        words: |random, _| {
            let one = random.below(10);
            let other = (one + 1 + random.below(9)) % 10;
            search(&format!("@body:({} {})", word(1 + one), word(1 + other)), &[])
        },
    },
    Kind { name: "a prefix", words: |random, _| search(&format!("@body:{}*", &word(random.rank())[..3]), &[]) },
    Kind {
        name: "a range of numbers, sorted",
        words: |random, _| {
            let from = random.next() % (PRICES * 9 / 10);
            search(&format!("@price:[{from} {}]", from + PRICES / 10), &["SORTBY", "price", "ASC"])
        },
    },
    Kind { name: "a tag", words: |random, _| search(&format!("@tag:{{{}}}", tag(random.below(TAGS))), &[]) },
    Kind {
        name: "groups of a tenth of all",
        words: |random, _| {
            let from = random.next() % (PRICES * 9 / 10);
            let range = format!("@price:[{from} {}]", from + PRICES / 10 - 1);
            let group =
                "GROUPBY 1 @tag REDUCE COUNT 0 AS count REDUCE AVG 1 @price AS mean SORTBY 4 @count DESC @tag ASC";
            let words = ["FT.AGGREGATE", "index", &range].map(str::to_owned).into_iter();
            words.chain(group.split(' ').chain(["LIMIT", "0", "10", "DIALECT", "2"]).map(str::to_owned)).collect()
        },
    },
];

impl Kind {
    /// The questions of this kind.
    pub(super) fn questions(&self) -> Vec<Vec<u8>> {
        (0..VARIANTS).map(|number| encoded(&(self.words)(&mut Random::of(5, number), number))).collect()
    }

    /// The query that a library without our language understands, too.
    pub(super) fn plain(&self, number: usize) -> Option<String> {
        let words = (self.words)(&mut Random::of(5, number), number);
        let query = &words[2];
        match self.name {
            "a term" => Some(query.replace("@body:", "body:")),
            "two frequent terms" => {
                let words = query.trim_start_matches("@body:(").trim_end_matches(')');
                let words: Vec<String> = words.split(' ').map(|word| format!("+body:{word}")).collect();
                Some(words.join(" "))
            }
            "a tag" => Some(query.replace("@tag:{", "tag:").replace('}', "")),
            _ => None,
        }
    }
}

fn search(query: &str, more: &[&str]) -> Vec<String> {
    let words = ["FT.SEARCH", "index", query].into_iter().chain(more.iter().copied());
    let sorted = more.first() == Some(&"SORTBY");
    let scorer: &[&str] = if sorted { &[] } else { &["SCORER", "BM25STD"] };
    words.chain(scorer.iter().copied()).chain(["LIMIT", "0", "10", "DIALECT", "2"]).map(str::to_owned).collect()
}

fn encoded(words: &[String]) -> Vec<u8> {
    request(&words.iter().map(String::as_bytes).collect::<Vec<_>>())
}

/// The nearest of a vector, of all documents or of those with a tag.
pub(super) fn nearest(vector: &[f32], ef: usize, tag: Option<&str>) -> Vec<u8> {
    let filter = tag.map_or_else(|| "*".to_owned(), |tag| format!("(@tag:{{{tag}}})"));
    let query = format!("{filter}=>[KNN {NEAREST} @vector $blob EF_RUNTIME {ef}]");
    let blob = blob(vector);
    let words: [&[u8]; 12] = [
        b"FT.SEARCH",
        b"index",
        query.as_bytes(),
        b"PARAMS",
        b"2",
        b"blob",
        &blob,
        b"NOCONTENT",
        b"LIMIT",
        b"0",
        b"10",
        b"DIALECT",
    ];
    request(&[&words[..], &[b"2"]].concat())
}

/// The tag that a question's filter names.
pub(super) fn asked_tag(number: usize) -> String {
    tag(number % TAGS)
}

/// The numbers of the nearest vectors of each question, by comparing all; `step` is the share of those with a question's tag.
pub(super) fn exact(vectors: &Vectors, count: usize, filtered: bool) -> Vec<Vec<usize>> {
    let asked: Vec<Vec<f32>> = (0..VARIANTS).map(|number| vectors.asked(number)).collect();
    let mut best: Vec<Vec<(f32, usize)>> = vec![Vec::new(); VARIANTS];
    for number in 0..count {
        let vector = vectors.of(number);
        for (question, found) in best.iter_mut().enumerate() {
            if filtered && number % TAGS != question % TAGS {
                continue;
            }
            let distance = distance(&asked[question], &vector);
            if found.len() < NEAREST || distance < found[NEAREST - 1].0 {
                let place = found.partition_point(|(other, _)| *other <= distance);
                found.insert(place, (distance, number));
                found.truncate(NEAREST);
            }
        }
    }
    best.into_iter().map(|found| found.into_iter().map(|(_, number)| number).collect()).collect()
}

/// The square of the Euclidean distance.
fn distance(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_different_and_documents_the_same_each_time() {
        let words: std::collections::HashSet<String> = (0..VOCABULARY).map(word).collect();
        assert_eq!(words.len(), VOCABULARY);
        let (one, again) = (Document::of(7), Document::of(7));
        assert_eq!((&one.body, one.price), (&again.body, again.price));
        assert_eq!(one.body.split(' ').count(), WORDS);
        assert_ne!(one.body, Document::of(8).body);
    }

    #[test]
    fn comparing_all_finds_the_nearest_of_a_tag() {
        let vectors = Vectors::new(1000, 4);
        let exact = exact(&vectors, 1000, true);
        let asked = vectors.asked(3);
        let mut all: Vec<usize> = (0..1000).filter(|number| number % TAGS == 3).collect();
        all.sort_by(|one, other| distance(&asked, &vectors.of(*one)).total_cmp(&distance(&asked, &vectors.of(*other))));
        assert_eq!(exact[3], all[..NEAREST]);
    }

    #[test]
    fn a_library_gets_the_words_of_the_query() {
        let plain = |kind: usize| KINDS[kind].plain(0);
        assert_eq!(plain(0).unwrap(), format!("body:{}", word(50)));
        assert!(plain(1).unwrap().starts_with("+body:"));
        assert!(plain(4).unwrap().starts_with("tag:t"));
        assert_eq!(plain(5), None);
    }
}

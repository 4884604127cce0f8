//! Quirks of makers' devices, as data: `quirks.tsv` and a file of the user's.

use std::path::Path;
use std::time::Duration;

use echonet_lite::controller::PropertyMaps;
use echonet_lite::wire::{ClassCode, PropertySet};

use crate::failure::Failure;

/// The quirks of the devices of one maker and class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quirks {
    /// The least time between two questions to an object.
    pub(crate) poll_least: Duration,
    /// Properties that one request may have.
    pub(crate) ask_at_once: usize,
    /// Properties that are asked for in requests of their own.
    pub(crate) alone: PropertySet,
    /// Properties that change without a notification, whatever the map says.
    pub(crate) unannounced: PropertySet,
    /// Properties that can be read, whatever the map says.
    pub(crate) readable: PropertySet,
    /// Properties that are left out.
    pub(crate) broken: PropertySet,
    /// The least and the greatest value of numbers.
    pub(crate) ranges: Vec<(u8, [i64; 2])>,
}

impl Default for Quirks {
    fn default() -> Self {
        let none = PropertySet::EMPTY;
        let (poll_least, ask_at_once) = (Duration::ZERO, usize::from(u8::MAX));
        Self {
            poll_least,
            ask_at_once,
            alone: none,
            unannounced: none,
            readable: none,
            broken: none,
            ranges: Vec::new(),
        }
    }
}

impl Quirks {
    /// Corrects the property maps that an object tells.
    pub(crate) fn mend(&self, maps: PropertyMaps) -> PropertyMaps {
        PropertyMaps {
            readable: maps.readable.union(self.readable).difference(self.broken),
            announced: maps.announced.difference(self.unannounced),
            writable: maps.writable,
        }
    }

    /// In which requests properties are asked for.
    pub(crate) fn batches(&self, epcs: PropertySet) -> Vec<Vec<u8>> {
        let together: Vec<_> = epcs.difference(self.alone).iter().collect();
        let alone = epcs.intersection(self.alone).iter().map(|epc| vec![epc]);
        together.chunks(self.ask_at_once).map(<[u8]>::to_vec).chain(alone).collect()
    }
}

/// All that is known.
#[derive(Debug)]
pub(crate) struct Table(Vec<Row>);

#[derive(Debug)]
struct Row {
    maker: Option<[u8; 3]>,
    class: Option<ClassCode>,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    PollLeast(Duration),
    AskAtOnce(usize),
    Alone(PropertySet),
    Unannounced(PropertySet),
    Readable(PropertySet),
    Broken(PropertySet),
    Range(u8, [i64; 2]),
}

impl Table {
    /// The quirks that come with the command, behind those of a file of the user's.
    pub(crate) fn with_file(file: Option<&Path>) -> Result<Self, Failure> {
        let wrong = |file: &Path, why: &dyn std::fmt::Display| Failure::Input(format!("{}: {why}", file.display()));
        let Some(file) = file else { return Self::new("").map_err(Failure::Input) };
        let own = std::fs::read_to_string(file).map_err(|error| wrong(file, &error))?;
        Self::new(&own).map_err(|line| wrong(file, &line))
    }

    /// The quirks that come with the command, behind the user's own.
    fn new(own: &str) -> Result<Self, String> {
        let mut rows = Vec::new();
        for text in [own, include_str!("quirks.tsv")] {
            for (at, line) in text.lines().enumerate() {
                if !line.is_empty() && !line.starts_with('#') {
                    rows.push(row(line).ok_or_else(|| format!("line {}: {line}", at + 1))?);
                }
            }
        }
        Ok(Self(rows))
    }

    /// The quirks of the devices of a maker and class. Of two numbers the first one counts; sets of properties add up.
    pub(crate) fn of(&self, maker: Option<[u8; 3]>, class: ClassCode) -> Quirks {
        let mut quirks = Quirks::default();
        let (mut polls, mut asks) = (None, None);
        let is_of = |row: &&Row| row.maker.is_none_or(|of| Some(of) == maker) && row.class.is_none_or(|of| of == class);
        for row in self.0.iter().filter(is_of) {
            match &row.rule {
                Rule::PollLeast(time) => polls = polls.or(Some(*time)),
                Rule::AskAtOnce(count) => asks = asks.or(Some(*count)),
                Rule::Alone(set) => quirks.alone = quirks.alone.union(*set),
                Rule::Unannounced(set) => quirks.unannounced = quirks.unannounced.union(*set),
                Rule::Readable(set) => quirks.readable = quirks.readable.union(*set),
                Rule::Broken(set) => quirks.broken = quirks.broken.union(*set),
                Rule::Range(epc, range) => quirks.ranges.push((*epc, *range)),
            }
        }
        quirks.poll_least = polls.unwrap_or(quirks.poll_least);
        quirks.ask_at_once = asks.unwrap_or(quirks.ask_at_once);
        quirks
    }
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<_> = line.split('\t').collect();
    let [maker, class, rule, value] = fields[..] else { return None };
    let code = |text: &str, digits: usize| {
        let right = text.len() == digits;
        right.then(|| u32::from_str_radix(text, 16).ok()).flatten()
    };
    let maker = match maker {
        "*" => None,
        text => {
            let [_, maker @ ..] = code(text, 6)?.to_be_bytes();
            Some(maker)
        }
    };
    let class = if class == "*" { None } else { Some(ClassCode::from_u16(u16::try_from(code(class, 4)?).ok()?)) };
    let codes = || {
        value.split(' ').try_fold(PropertySet::EMPTY, |set, text| {
            let epc = u8::try_from(code(text, 2)?).ok().filter(|epc| *epc >= 0x80)?;
            Some(set.with(epc))
        })
    };
    let rule = match rule {
        "poll-least" => Rule::PollLeast(Duration::from_secs(value.parse().ok()?)),
        "ask-at-once" => Rule::AskAtOnce(value.parse().ok().filter(|count| *count > 0)?),
        "alone" => Rule::Alone(codes()?),
        "unannounced" => Rule::Unannounced(codes()?),
        "readable" => Rule::Readable(codes()?),
        "broken" => Rule::Broken(codes()?),
        "range" => {
            let words: Vec<_> = value.split(' ').collect();
            let [epc, least, greatest] = words[..] else { return None };
            let epc = u8::try_from(code(epc, 2)?).ok().filter(|epc| *epc >= 0x80)?;
            let range: [i64; 2] = [least.parse().ok()?, greatest.parse().ok()?];
            (range[0] <= range[1]).then_some(Rule::Range(epc, range))?
        }
        _ => return None,
    };
    Some(Row { maker, class, rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_maker_and_class_add_up_and_the_users_go_first() {
        let table = Table::new(
            "*\t0130\trange\tB3 10 31\n000016\t0130\tbroken\tBE\n*\t0288\tpoll-least\t120\n*\t*\task-at-once\t5\n",
        )
        .unwrap();
        let of = |maker, class| table.of(maker, ClassCode::from_u16(class));
        assert_eq!(of(Some([0, 0, 0x16]), 0x0130).broken, PropertySet::of(&[0xBE]));
        assert_eq!(of(None, 0x0130).broken, PropertySet::EMPTY);
        assert_eq!(of(None, 0x0130).ranges, [(0xB3, [10, 31])]);
        assert_eq!(of(None, 0x0288).poll_least, Duration::from_secs(120));
        assert_eq!(of(None, 0x028D).poll_least, Duration::from_secs(30));
        assert_eq!(of(Some([0, 0, 0x0B]), 0x0287).alone, PropertySet::of(&[0xB3, 0xB7]));
        assert_eq!((of(None, 0x0290).ask_at_once, of(None, 0x0290).unannounced.contains(0x84)), (5, true));
    }

    #[test]
    fn properties_are_asked_for_together_or_alone_and_maps_are_mended() {
        let table = Table::new("*\t0290\task-at-once\t2\n*\t0290\talone\tB1\n*\t0290\tbroken\tB0\n").unwrap();
        let quirks = table.of(None, ClassCode::from_u16(0x0290));
        let epcs = PropertySet::of(&[0x80, 0x88, 0xB1, 0xB6]);
        assert_eq!(quirks.batches(epcs), [vec![0x80, 0x88], vec![0xB6], vec![0xB1]]);
        assert_eq!(quirks.batches(PropertySet::EMPTY), Vec::<Vec<u8>>::new());
        let (readable, announced) = (PropertySet::of(&[0x80, 0xB0]), PropertySet::of(&[0x80, 0x84]));
        let maps = PropertyMaps { readable, announced, ..PropertyMaps::default() };
        let mended = quirks.mend(maps);
        assert_eq!((mended.readable, mended.announced), (PropertySet::of(&[0x80]), PropertySet::of(&[0x80])));
    }

    #[test]
    fn quirk_parse_errors_name_the_line() {
        for line in [
            "16\t0130\tbroken\tBE",
            "*\t0130\trange\tB3 31 10",
            "000016\t0130\tbroken\t7E",
            "*\t*\tpoll-least\tsoon",
            "*\t*\tpraised\t1",
            "*",
        ] {
            let error = Table::new(&format!("# a remark\n{line}")).unwrap_err();
            assert_eq!(error, format!("line 2: {line}"));
        }
    }
}

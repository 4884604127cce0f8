//! Every command of the data families as a template, with what its reply leaves open.
//!
//! A template is words: capitals stand for themselves, `kX` is a key of the type X (`*`: of any), other small words are in
//! `word`. `[ … ]` may be left out, `( … | … )` is one of the alternatives, `{ … }` comes once to a few times.

use std::collections::BTreeSet;

use super::draw::Draw;
use super::rules::Open;
use super::table::{self, Template};

/// A command that was drawn.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Its name and arguments.
    pub(super) words: Vec<Vec<u8>>,
    /// The part of its reply that is compared.
    pub(super) open: Open,
}

/// The templates that both servers know, ready to be drawn from.
pub(super) struct Grammar {
    templates: Vec<(Vec<Node>, Open)>,
    /// A template's index as often as its weight says.
    by_weight: Vec<usize>,
    /// Values as the genuine server dumps them, for RESTORE.
    payloads: Vec<Vec<u8>>,
}

enum Node {
    Word(&'static str),
    Optional(Vec<Self>),
    Choice(Vec<Vec<Self>>),
    Repeated(Vec<Self>),
}

impl Grammar {
    /// These without the commands that `is_known` denies.
    pub(super) fn new(
        templates: impl Iterator<Item = &'static Template>,
        is_known: impl Fn(&str) -> bool,
        payloads: Vec<Vec<u8>>,
    ) -> Self {
        let mut grammar = Self { templates: Vec::new(), by_weight: Vec::new(), payloads };
        for template in templates {
            let name = template.text.split(' ').next().unwrap_or_default();
            if is_known(name) {
                let mut words = template.text.split(' ').filter(|word| !word.is_empty());
                let nodes = parse(&mut words, "");
                grammar.by_weight.extend(std::iter::repeat_n(grammar.templates.len(), template.weight));
                grammar.templates.push((nodes.into_iter().next().unwrap_or_default(), template.open));
            }
        }
        grammar
    }

    /// Which of these commands, as COMMAND LIST names them, have no template.
    pub(super) fn lacks<'n>(&self, names: &'n [String]) -> Vec<&'n str> {
        let mut named = BTreeSet::new();
        for (nodes, _) in &self.templates {
            let [Node::Word(name), rest @ ..] = nodes.as_slice() else { continue };
            let name = name.to_ascii_lowercase();
            let subcommands: Vec<&str> = match rest.first() {
                Some(Node::Word(word)) => vec![word],
                Some(Node::Choice(all)) => {
                    let first = |nodes: &Vec<Node>| match nodes.first() {
                        Some(Node::Word(word)) => Some(*word),
                        _ => None,
                    };
                    all.iter().filter_map(first).collect()
                }
                _ => Vec::new(),
            };
            named.extend(subcommands.iter().map(|word| format!("{name}|{}", word.to_ascii_lowercase())));
            named.insert(name);
        }
        let is_left_out = |name: &str| table::LEFT_OUT.iter().any(|(left_out, _)| *left_out == name);
        names.iter().map(String::as_str).filter(|name| !named.contains(*name) && !is_left_out(name)).collect()
    }

    /// How many templates there are.
    pub(super) fn len(&self) -> usize {
        self.templates.len()
    }

    /// A command.
    pub(super) fn draw(&self, draw: &mut Draw) -> Request {
        let (nodes, open) = &self.templates[self.by_weight[draw.below(self.by_weight.len())]];
        let mut words = Vec::new();
        self.expand(nodes, draw, &mut words);
        if draw.chance(6) && open.may_be_spoilt() {
            spoil(&mut words, draw);
            keep_from_expiring(&mut words);
        }
        Request { words, open: *open }
    }

    fn expand(&self, nodes: &[Node], draw: &mut Draw, words: &mut Vec<Vec<u8>>) {
        for node in nodes {
            match node {
                Node::Word(text) => words.push(self.word(text, draw)),
                Node::Optional(inner) => {
                    if draw.chance(40) {
                        self.expand(inner, draw, words);
                    }
                }
                Node::Choice(all) => self.expand(&all[draw.below(all.len())], draw, words),
                Node::Repeated(inner) => {
                    let times = match draw.below(50) {
                        0 => 40 + draw.below(60),
                        1..15 => 2 + draw.below(4),
                        _ => 1,
                    };
                    (0..times).for_each(|_| self.expand(inner, draw, words));
                }
            }
        }
    }

    /// The bytes that a word of a template stands for.
    fn word(&self, text: &str, draw: &mut Draw) -> Vec<u8> {
        let text = match text {
            "val" => return draw.value(),
            "mem" => return draw.member(),
            "int" => return draw.int(),
            "count" => return draw.count(),
            "float" => return draw.float(),
            "junk" => return draw.junk(),
            "dump" => return self.payload(draw),
            // Small, because a value becomes as long as the offset.
            "offset" => match draw.below(12) {
                0 => draw.of(&["-1", "8388608", "4294967295", "4294967296", "x", "#1", "536870911"]).to_owned(),
                1 => draw.below(40_000).to_string(),
                _ => draw.below(70).to_string(),
            },
            // Far enough away for the run not to reach it, or past.
            "seconds" => {
                draw.of(&["100", "1000", "100000", "0", "-1", "9223372036854775807", "9223372036854776", "x"]).into()
            }
            "millis" => draw.of(&["100000", "1000000", "0", "-5", "9223372036854775807", "x", "99999999999"]).into(),
            "at" => draw.of(&["1", "0", "-1", "4102444800", "4102444801", "9223372036854775807", "x"]).into(),
            "atms" => draw.of(&["1", "4102444800000", "4102444800001", "-1", "9223372036854775807", "x"]).into(),
            // A key that SET makes with a past is there until it is found to be.
            "later" => draw.of(&["4102444800", "4102444801", "0", "-1", "9223372036854775807", "x"]).into(),
            "laterms" => draw.of(&["4102444800000", "0", "-1", "9223372036854775807", "x"]).into(),
            "glob" => draw
                .of(&["*", "a*", "?", "[a-c]*", "s*", "*1", "\\a", "[^a]*", "h?llo", "", "[", "**b", "l[0-2]"])
                .into(),
            "by" => draw.of(&["s*", "h*->a", "*", "missing*", "h*->", "s*->b", "x*"]).to_owned(),
            "scorelow" => draw.of(&["-inf", "0", "(1", "1", "(-inf", "2.5", "-3", "(x", "nan", ""]).to_owned(),
            "scorehigh" => draw.of(&["+inf", "5", "(5", "inf", "3", "(inf", "1e300", "x", "-1"]).to_owned(),
            "lexlow" => draw.of(&["-", "[a", "(a", "[", "(", "+", "[b", "a", "[0", "(1"]).to_owned(),
            "lexhigh" => draw.of(&["+", "[z", "(c", "[c", "-", "(", "[", "z", "[5"]).to_owned(),
            "id" => self.id(draw),
            "newid" => match draw.below(12) {
                0 => draw
                    .of(&["0-0", "0", "5", "5-*", "x", "1-1-1", "18446744073709551615-18446744073709551615", "-"])
                    .into(),
                1..4 => format!("{}-*", 1 + draw.below(50)),
                _ => format!("{}-{}", 1 + draw.below(60), draw.below(4)),
            },
            "long" => {
                draw.of(&["0", "2.5", "13.361389", "15.087269", "-122.4", "180", "181", "-180", "x", "nan"]).to_owned()
            }
            "lat" => draw.of(&["0", "1.5", "38.115556", "37.502669", "37.8", "85", "86", "-85", "", "inf"]).to_owned(),
            "unit" => draw.of(&["m", "km", "ft", "mi", "M", "x"]).to_owned(),
            "radius" => draw.of(&["100", "200", "1000", "0", "-1", "50000", "x", "0.5", "1e10", "nan"]).to_owned(),
            "type" => draw
                .of(&["u8", "i8", "u63", "u64", "i64", "i1", "u1", "i5", "u33", "u0", "i65", "x", "i", "8"])
                .to_owned(),
            "bitoffset" => {
                draw.of(&["0", "1", "#0", "#1", "#3", "7", "100", "-1", "#-1", "x", "#x", "4294967295"]).to_owned()
            }
            "db" => draw.of(&["0", "0", "1", "1", "2", "16", "-1", "x", "99999999999"]).to_owned(),
            "group" => draw.of(&["g1", "g1", "g2", ""]).to_owned(),
            "consumer" => draw.of(&["c1", "c2", "c3"]).to_owned(),
            "lua" => return draw.of(table::SCRIPTS).as_bytes().to_vec(),
            "user" => draw.of(&["u1", "u2", "u3"]).to_owned(),
            "rule" => draw.of(table::RULES).to_owned(),
            "library" => draw.of(table::LIBRARIES).to_owned(),
            "function" => draw.of(&["f1", "f2", "f3", "F1"]).to_owned(),
            "limit" => {
                draw.of(&["0", "1", "3", "5", "16", "64", "128", "1000", "-1", "-3", "-6", "x", "", "1kb"]).to_owned()
            }
            "setting" => draw.of(table::SETTINGS).0.to_owned(),
            "numkeys" => draw.of(&["1", "2", "2", "3", "0", "-1", "x", "100"]).to_owned(),
            key if key.starts_with('k') && key.len() == 2 => return draw.key(char::from(key.as_bytes()[1])),
            literal => return cased(literal, draw),
        };
        text.into_bytes()
    }

    fn id(&self, draw: &mut Draw) -> String {
        match draw.below(12) {
            0 => draw
                .of(&["-", "+", "(1", "(2-1", "x", "0", "0-0", "18446744073709551615-18446744073709551615", "(-"])
                .to_owned(),
            1..4 => draw.below(40).to_string(),
            _ => format!("{}-{}", 1 + draw.below(50), draw.below(4)),
        }
    }

    /// A payload, sometimes with a bit turned round.
    fn payload(&self, draw: &mut Draw) -> Vec<u8> {
        let Some(payload) = (!self.payloads.is_empty()).then(|| &self.payloads[draw.below(self.payloads.len())]) else {
            return draw.value();
        };
        let mut payload = payload.clone();
        if draw.chance(10) && !payload.is_empty() {
            let at = draw.below(payload.len());
            payload[at] ^= 1 << draw.below(8);
        }
        payload
    }
}

/// Names and options are read in any case of letters.
fn cased(literal: &str, draw: &mut Draw) -> Vec<u8> {
    if draw.chance(5) { literal.to_ascii_lowercase().into_bytes() } else { literal.as_bytes().to_vec() }
}

/// Makes a command wrong: a word too few or too many, or another one in its place.
fn spoil(words: &mut Vec<Vec<u8>>, draw: &mut Draw) {
    let at = draw.below(words.len());
    match draw.below(6) {
        0 if at > 0 => drop(words.remove(at)),
        1 => words.truncate(at.max(1)),
        2 => words.push(draw.junk()),
        3 => words.insert(at.max(1), draw.junk()),
        4 if at > 0 => {
            let other = 1 + draw.below(words.len() - 1);
            words.swap(at, other);
        }
        _ if at > 0 => words[at] = draw.junk(),
        _ => {
            let copy = words[at].clone();
            words.push(copy);
        }
    }
}

/// Makes numbers of commands that set an expiry so large that a key stays, as whatever they are: what is over soon, or was when
/// a key was made, is gone on one server earlier than on the other.
fn keep_from_expiring(words: &mut [Vec<u8>]) {
    const SETTERS: [&str; 15] = [
        "SET",
        "GETEX",
        "SETEX",
        "PSETEX",
        "EXPIRE",
        "PEXPIRE",
        "RESTORE",
        "RESTORE-ASKING",
        "PEXPIREAT",
        "MSETEX",
        "HEXPIRE",
        "HPEXPIRE",
        "HPEXPIREAT",
        "HSETEX",
        "HGETEX",
    ];
    /// The year 2100 in milliseconds.
    const LATER: i64 = 4_102_444_800_000;
    let Some((name, rest)) = words.split_first_mut() else { return };
    if !SETTERS.iter().any(|setter| name.eq_ignore_ascii_case(setter.as_bytes())) {
        return;
    }
    for word in rest {
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<i64>().ok());
        if number.is_some_and(|number| (1..LATER).contains(&number)) {
            *word = LATER.to_string().into_bytes();
        }
    }
}

/// The alternatives up to `end`; a template's end is the empty one.
fn parse(words: &mut impl Iterator<Item = &'static str>, end: &str) -> Vec<Vec<Node>> {
    let mut all = vec![Vec::new()];
    while let Some(word) = words.next() {
        let node = match word {
            "[" => Node::Optional(parse(words, "]").remove(0)),
            "(" => Node::Choice(parse(words, ")")),
            "{" => Node::Repeated(parse(words, "}").remove(0)),
            "|" => {
                all.push(Vec::new());
                continue;
            }
            word if word == end => return all,
            word => Node::Word(word),
        };
        all.last_mut().expect("there is one from the start").push(node);
    }
    assert!(end.is_empty(), "a template lacks `{end}`");
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_commands() {
        let grammar = Grammar::new(super::super::table::templates(true), |_| true, Vec::new());
        let commands = |seed| -> Vec<Vec<Vec<u8>>> {
            let mut draw = Draw::new(seed, 1);
            (0..2000).map(|_| grammar.draw(&mut draw).words).collect()
        };
        assert_eq!(commands(1), commands(1));
        assert_ne!(commands(1), commands(2));
        assert!(commands(3).iter().all(|words| !words.is_empty()));
    }
}

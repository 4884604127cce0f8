//! Reads `classes.tsv`; its head says how a line is made.

use std::collections::HashMap;

/// A class and its properties, in all their forms.
pub(crate) struct Class {
    pub(crate) code: u16,
    pub(crate) short_name: String,
    pub(crate) releases: String,
    pub(crate) names: [String; 2],
    /// Of each list a device has one property at least.
    pub(crate) either: Vec<Vec<u8>>,
    pub(crate) properties: Vec<Property>,
}

/// A property in one form.
pub(crate) struct Property {
    pub(crate) epc: u8,
    pub(crate) short_name: String,
    /// The letters of Get, Set and announcement.
    pub(crate) access: String,
    pub(crate) releases: String,
    pub(crate) data: Data,
    pub(crate) names: [String; 2],
    pub(crate) atomic: Option<u8>,
}

impl Property {
    /// Whether a later release took this form's place.
    pub(crate) fn is_superseded(&self) -> bool {
        !self.releases.ends_with("..")
    }
}

#[derive(Clone, PartialEq)]
pub(crate) enum Data {
    Number { format: String, range: [i64; 2], exponent: i8, unit: Option<String>, coefficients: Vec<u8>, exact: bool },
    Numeric(Vec<(u8, u8, i8)>),
    State { size: usize, all: Vec<State> },
    Level { size: usize, base: u16, maximum: u16 },
    Bitmap { size: u8, flags: Vec<Flag> },
    Date,
    Time { seconds: bool, span: bool },
    Moment { seconds: bool },
    Raw([u8; 2]),
    List { count: [u8; 2], item: Box<Self> },
    Object(Vec<Field>),
    OneOf(Vec<Self>),
}

#[derive(Clone, PartialEq)]
pub(crate) struct State {
    pub(crate) code: u64,
    pub(crate) last: u64,
    pub(crate) name: String,
    pub(crate) read_only: bool,
}

#[derive(Clone, PartialEq)]
pub(crate) struct Flag {
    pub(crate) index: u8,
    pub(crate) mask: u8,
    pub(crate) name: String,
    pub(crate) data: Data,
}

#[derive(Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) short_name: String,
    pub(crate) name: String,
    pub(crate) data: Data,
}

impl Data {
    pub(crate) fn arms(&self) -> &[Self] {
        match self {
            Self::OneOf(arms) => arms,
            one => std::slice::from_ref(one),
        }
    }

    /// The fewest and the most bytes.
    pub(crate) fn sizes(&self) -> [usize; 2] {
        let fixed = |size: usize| [size, size];
        match self {
            Self::Number { format, .. } => fixed(format[1..].parse::<usize>().expect("a format ends in its bits") / 8),
            Self::Numeric(_) => fixed(1),
            Self::State { size, .. } | Self::Level { size, .. } => fixed(*size),
            Self::Bitmap { size, .. } => fixed((*size).into()),
            Self::Date => fixed(4),
            Self::Time { seconds, .. } => fixed(2 + usize::from(*seconds)),
            Self::Moment { seconds } => fixed(6 + usize::from(*seconds)),
            Self::Raw(range) => range.map(usize::from),
            Self::List { count, item } => count.map(|count| usize::from(count) * item.sizes()[1]),
            Self::Object(fields) => {
                fields.iter().map(|field| field.data.sizes()).fold([0, 0], |[a, b], [c, d]| [a + c, b + d])
            }
            Self::OneOf(arms) => {
                let sizes = || arms.iter().map(Self::sizes);
                [sizes().map(|size| size[0]).min(), sizes().map(|size| size[1]).max()].map(Option::unwrap_or_default)
            }
        }
    }
}

/// All classes of the file.
pub(crate) fn read(text: &str) -> Vec<Class> {
    let types = text.lines().filter_map(|line| line.strip_prefix("type\t")?.split_once('\t')).collect();
    let mut classes: Vec<Class> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let bad = || -> ! { panic!("classes.tsv:{}: {line}", index + 1) };
        match fields[..] {
            [""] | ["type", _, _] => {}
            [first] if first.starts_with('#') => {}
            ["class", code, short_name, releases, english, japanese] => classes.push(Class {
                code: u16::from_str_radix(code, 16).unwrap_or_else(|_| bad()),
                short_name: short_name.to_owned(),
                releases: releases.to_owned(),
                names: [english, japanese].map(str::to_owned),
                either: Vec::new(),
                properties: Vec::new(),
            }),
            ["either", codes] => {
                let codes = codes.split(' ').map(|code| hex(code).unwrap_or_else(|| bad())).collect();
                classes.last_mut().unwrap_or_else(|| bad()).either.push(codes);
            }
            [epc, short_name, access, releases, data, english, japanese, ref more @ ..] => {
                let atomic = match more {
                    [] => None,
                    [after] => Some(after.strip_prefix("after ").and_then(hex).unwrap_or_else(|| bad())),
                    _ => bad(),
                };
                let Some(class) = classes.last_mut() else { bad() };
                class.properties.push(Property {
                    epc: hex(epc).unwrap_or_else(|| bad()),
                    short_name: short_name.to_owned(),
                    access: access.to_owned(),
                    releases: releases.to_owned(),
                    data: Parser { tokens: tokens(data), types: &types }.whole().unwrap_or_else(|| bad()),
                    names: [english, japanese].map(str::to_owned),
                    atomic,
                });
            }
            _ => bad(),
        }
    }
    classes
}

fn hex(text: &str) -> Option<u8> {
    u8::from_str_radix(text, 16).ok()
}

/// The words of a data type, the last one first: `{`, `41`, `auto`, …; a quoted name is one, with its first quote.
fn tokens(mut text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    while let Some(first) = text.chars().next() {
        let end = match first {
            '"' => 1 + text[1..].find('"').unwrap_or_default(),
            '{' | '}' | '(' | ')' | '[' | ']' | ',' | '|' | ':' | '!' => 1,
            _ => text.find([' ', '{', '}', '(', ')', '[', ']', ',', '|', ':', '!']).unwrap_or(text.len()),
        };
        tokens.push(&text[..end]);
        text = text[end..].trim_start_matches(|c| c == ' ' || (c == '"' && first == '"'));
    }
    tokens.reverse();
    tokens
}

/// The unread tokens of a data type. Every method returns `None` for tokens that it cannot read.
struct Parser<'t> {
    tokens: Vec<&'t str>,
    types: &'t HashMap<&'t str, &'t str>,
}

impl<'t> Parser<'t> {
    fn whole(mut self) -> Option<Data> {
        let data = self.data()?;
        self.tokens.is_empty().then_some(data)
    }

    /// `arm | arm`
    fn data(&mut self) -> Option<Data> {
        let mut arms = vec![self.arm()?];
        while self.eat("|") {
            arms.push(self.arm()?);
        }
        // A named type may itself be one of several.
        let mut arms: Vec<Data> = arms.into_iter().flat_map(|arm| arm.arms().to_vec()).collect();
        if arms.len() == 1 { arms.pop() } else { Some(Data::OneOf(arms)) }
    }

    fn arm(&mut self) -> Option<Data> {
        let word = self.tokens.pop()?;
        Some(match word {
            "{" => self.states()?,
            "(" => Data::Object(self.list(")", Self::field)?),
            "u8" | "i8" | "u16" | "i16" | "u24" | "u32" | "i32" => self.number(word)?,
            "numeric" if self.eat("{") => Data::Numeric(self.list("}", Self::numeric)?),
            "level" => {
                let base = self.tokens.pop()?;
                Data::Level {
                    size: base.len() / 2,
                    base: u16::from_str_radix(base, 16).ok()?,
                    maximum: self.tokens.pop()?.parse().ok()?,
                }
            }
            "bits" => {
                let size = self.tokens.pop()?.parse().ok()?;
                Data::Bitmap { size, flags: if self.eat("(") { self.list(")", Self::flag)? } else { return None } }
            }
            "date" => Data::Date,
            "time" | "time-s" => Data::Time { seconds: word == "time-s", span: false },
            "span" => Data::Time { seconds: false, span: true },
            "moment" | "moment-s" => Data::Moment { seconds: word == "moment-s" },
            "raw" => Data::Raw(self.range()?),
            "list" => {
                let count = self.range()?;
                let item = if self.eat("[") { Box::new(self.data()?) } else { return None };
                if self.eat("]") { Data::List { count, item } } else { return None }
            }
            name => Self { tokens: tokens(self.types.get(name)?), types: self.types }.whole()?,
        })
    }

    /// `0..100 e-1 Celsius *D3 exact`
    fn number(&mut self, format: &str) -> Option<Data> {
        let range = self.range()?;
        let (mut exponent, mut unit, mut coefficients, mut exact) = (0, None, Vec::new(), false);
        while let Some(word) =
            self.tokens.last().copied().filter(|word| word.starts_with(|c: char| c.is_alphanumeric() || c == '*'))
        {
            self.tokens.pop();
            if let Some(epc) = word.strip_prefix('*') {
                coefficients.push(hex(epc)?);
            } else if word == "exact" {
                exact = true;
            } else if let Some(power) = word.strip_prefix('e') {
                exponent = power.parse().ok()?;
            } else {
                unit = Some(word.to_owned());
            }
        }
        Some(Data::Number { format: format.to_owned(), range, exponent, unit, coefficients, exact })
    }

    /// `41 auto, 42-44 other, FD undefined!}`
    fn states(&mut self) -> Option<Data> {
        let size = self.tokens.last()?.split('-').next()?.len() / 2;
        let all = self.list("}", |parser| {
            let code = parser.tokens.pop()?;
            let (first, last) = code.split_once('-').unwrap_or((code, code));
            let [code, last] = [first, last].map(|code| u64::from_str_radix(code, 16).ok());
            let name = parser.tokens.pop()?.to_owned();
            Some(State { code: code?, last: last?, name, read_only: parser.eat("!") })
        })?;
        Some(Data::State { size, all })
    }

    /// `0A 1e1`
    fn numeric(&mut self) -> Option<(u8, u8, i8)> {
        let code = hex(self.tokens.pop()?)?;
        let (number, exponent) = self.tokens.pop()?.split_once('e')?;
        Some((code, number.parse().ok()?, exponent.parse().ok()?))
    }

    /// `0:07 name {00 off, 01 on}`: which byte, which of its bits
    fn flag(&mut self) -> Option<Flag> {
        let index = self.tokens.pop()?.parse().ok()?;
        let mask = if self.eat(":") { hex(self.tokens.pop()?)? } else { return None };
        let name = self.tokens.pop()?.to_owned();
        let data = match self.data()? {
            Data::State { all, .. } => Data::State { size: 0, all },
            Data::Level { base, maximum, .. } => Data::Level { size: 0, base, maximum },
            _ => return None,
        };
        Some(Flag { index, mask, name, data })
    }

    /// `shortName "Name" type`
    fn field(&mut self) -> Option<Field> {
        let short_name = self.tokens.pop()?.to_owned();
        let name = self.tokens.pop()?.strip_prefix('"')?.to_owned();
        Some(Field { short_name, name, data: self.data()? })
    }

    /// `1..17`, or `4` for `4..4`
    fn range<T: std::str::FromStr + Copy>(&mut self) -> Option<[T; 2]> {
        let word = self.tokens.pop()?;
        let (first, last) = word.split_once("..").unwrap_or((word, word));
        Some([first.parse().ok()?, last.parse().ok()?])
    }

    /// Reads the items between commas, up to `end`.
    fn list<T>(&mut self, end: &str, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = vec![each(self)?];
        while self.eat(",") {
            items.push(each(self)?);
        }
        self.eat(end).then_some(items)
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.tokens.last().is_some_and(|last| *last == token);
        if found {
            self.tokens.pop();
        }
        found
    }
}

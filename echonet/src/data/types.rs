//! Data types of the properties in the file of `--data`.

use echonet_lite::class::{Bitmap, Data, Flag, Format, Number, State, States, Unit};
use toml::Spanned;

use super::file::{Mistake, Property, Source, Text};

const FORMATS: [(&str, Format); 7] = [
    ("int8", Format::Int8),
    ("uint8", Format::Uint8),
    ("int16", Format::Int16),
    ("uint16", Format::Uint16),
    ("uint24", Format::Uint24),
    ("int32", Format::Int32),
    ("uint32", Format::Uint32),
];

/// The types, and the fields that a property of each may have.
const KINDS: [(&str, &[&str]); 5] = [
    ("number", &["format", "unit", "range", "multiple", "coefficient", "values", "read_only"]),
    ("state", &["values", "read_only"]),
    ("text", &["size", "minimum_size"]),
    ("raw", &["size", "minimum_size"]),
    ("bitmap", &["size", "flags"]),
];

/// The powers of ten that a number may be counted in.
const EXPONENTS: std::ops::RangeInclusive<i8> = -6..=6;

/// The most bytes of a value.
const BYTES: u8 = u8::MAX;
/// The most bytes of a state's code.
const CODE: usize = 8;

/// The values of a bit.
static BIT: Data = Data::State(States { size: 0, all: &[bit(1, "true"), bit(0, "false")] });

const fn bit(code: u64, name: &'static str) -> State {
    State { code, more: 0, read_only: false, name }
}

/// Keeps a value for as long as the command runs.
pub(super) fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Keeps a text for as long as the command runs.
pub(super) fn kept_text(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// The data type of a property.
pub(super) fn data(property: &Spanned<Property>, source: Source<'_>) -> Result<&'static Data, Mistake> {
    let (span, row) = (property.span(), property.get_ref());
    let kind = row.kind.get_ref().as_str();
    let Some((_, fields)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return Err(source.wrong("type", &row.kind, "number, state, text, raw or bitmap"));
    };
    if let Some((field, at)) = given(row).into_iter().find(|(field, _)| !fields.contains(field)) {
        let what = format!("{field}: a {kind} has no such field: expected {}", fields.join(", "));
        return Err(source.at(at, what));
    }
    let reader = Reader { row, source, span };
    match kind {
        "number" => reader.number(),
        "state" => {
            let states = reader.states(None)?;
            Ok(kept(Data::State(states.ok_or_else(|| reader.missing("values", "codes and their names"))?)))
        }
        "text" => reader.sizes().map(|[minimum, maximum]| kept(Data::Text { minimum, maximum })),
        "raw" => reader.sizes().map(|[minimum, maximum]| kept(Data::Raw { minimum, maximum })),
        _ => reader.bitmap(),
    }
}

/// The fields of the type that a row has, and where.
fn given(row: &Property) -> Vec<(&'static str, std::ops::Range<usize>)> {
    let first = |list: &Option<Vec<Text>>| {
        list.as_ref().map(|list| list.first().map_or_else(|| row.kind.span(), Spanned::span))
    };
    let all = [
        ("format", row.format.as_ref().map(Spanned::span)),
        ("unit", row.unit.as_ref().map(Spanned::span)),
        ("range", row.range.as_ref().map(Spanned::span)),
        ("multiple", row.multiple.as_ref().map(Spanned::span)),
        ("coefficient", first(&row.coefficient)),
        ("values", row.values.as_ref().map(Spanned::span)),
        ("read_only", first(&row.read_only)),
        ("size", row.size.as_ref().map(Spanned::span)),
        ("minimum_size", row.minimum_size.as_ref().map(Spanned::span)),
        ("flags", row.flags.as_ref().map(Spanned::span)),
    ];
    all.into_iter().filter_map(|(field, span)| Some((field, span?))).collect()
}

/// A row whose fields are those of its type.
struct Reader<'a> {
    row: &'a Property,
    source: Source<'a>,
    span: std::ops::Range<usize>,
}

impl Reader<'_> {
    fn missing(&self, field: &str, expected: &str) -> Mistake {
        let name = self.row.name.get_ref();
        self.source.at(self.span.clone(), format!("{field}: {name} has none: expected {expected}"))
    }

    fn number(&self) -> Result<&'static Data, Mistake> {
        let names = FORMATS.map(|(name, _)| name).join(", ");
        let format = self.row.format.as_ref().ok_or_else(|| self.missing("format", &names))?;
        let found = FORMATS.iter().find(|(name, _)| name == format.get_ref());
        let (_, format) = *found.ok_or_else(|| self.source.wrong("format", format, &names))?;
        let unit = match &self.row.unit {
            Some(unit) => Unit::parse(unit.get_ref()).ok_or_else(|| {
                self.source.wrong("unit", unit, "a unit of the tables, as C, %, W, kWh, A, V, L, m3 or min")
            })?,
            None => Unit::None,
        };
        let exponent = self.exponent()?;
        let [minimum, maximum] = self.range(format, exponent)?;
        let coefficients = self.coefficients()?;
        let number = Number { format, minimum, maximum, exponent, unit, coefficients, has_codes: true };
        Ok(match self.states(Some(format))? {
            Some(states) => kept(Data::OneOf(Box::leak(Box::new([Data::Number(number), Data::State(states)])))),
            None => kept(Data::Number(number)),
        })
    }

    fn exponent(&self) -> Result<i8, Mistake> {
        let Some(multiple) = &self.row.multiple else { return Ok(0) };
        let is_it = |exponent: &i8| {
            let power = 10_f64.powi((*exponent).into());
            (power - multiple.get_ref()).abs() <= power * 1e-9
        };
        let found = EXPONENTS.into_iter().find(is_it);
        found.ok_or_else(|| self.source.odd("multiple", multiple, "a power of ten from 0.000001 to 1000000"))
    }

    /// The range in the steps of the number; all numbers of the format without a range, but for the codes of overflow and underflow.
    fn range(&self, format: Format, exponent: i8) -> Result<[i64; 2], Mistake> {
        let (least, most) = format.range();
        let Some(range) = &self.row.range else {
            let is_signed = least < 0;
            return Ok(if is_signed { [least + 1, most - 1] } else { [least, most - 2] });
        };
        let step = 10_f64.powi(exponent.into());
        let wanted = range.get_ref().map(|end| end / step);
        if wanted[0] > wanted[1] {
            return Err(self.source.odd("range", range, "the least number before the greatest; this range is empty"));
        }
        let is_step = |end: &f64| (end - end.round()).abs() <= 1e-6;
        if !wanted.iter().all(is_step) {
            return Err(self.source.odd("range", range, format!("multiples of {step}")));
        }
        let ends = wanted.map(|end| end.round() as i64);
        if ends.iter().any(|end| !(least..=most).contains(end)) {
            let expected = format!("numbers from {} to {}", least as f64 * step, most as f64 * step);
            return Err(self.source.odd("range", range, expected));
        }
        Ok(ends)
    }

    fn coefficients(&self) -> Result<&'static [u8], Mistake> {
        let mut codes = Vec::new();
        for text in self.row.coefficient.iter().flatten() {
            let code = hex(text.get_ref(), 2).and_then(|code| u8::try_from(code).ok()).filter(|code| *code >= 0x80);
            codes.push(code.ok_or_else(|| self.source.wrong("coefficient", text, "the code of a property, 80 to FF"))?);
        }
        Ok(codes.leak())
    }

    /// The named codes; beside a number they have its size.
    fn states(&self, beside: Option<Format>) -> Result<Option<States>, Mistake> {
        let Some(values) = &self.row.values else {
            let unnamed = self.row.read_only.iter().flatten().next();
            return unnamed.map_or(Ok(None), |text| Err(self.source.wrong("read_only", text, "a name of values")));
        };
        let digits = match beside {
            Some(format) => Some(2 * format.size()),
            None => values.get_ref().keys().next().map(String::len),
        };
        let is_size = |digits: &usize| digits.is_multiple_of(2) && (1..=CODE).contains(&(digits / 2));
        let Some(digits) = digits.filter(is_size) else {
            return Err(self
                .source
                .at(values.span(), "values: expected codes of 1 to 8 bytes, as 41 or 0041".to_owned()));
        };
        let mut all: Vec<State> = Vec::new();
        for (code, name) in values.get_ref() {
            let expected = format!("a code of {digits} hexadecimal digits before \"{}\"", name.get_ref());
            let number = hex(code, digits)
                .ok_or_else(|| self.source.at(name.span(), format!("values.{code}: expected {expected}")))?;
            if !is_name(name.get_ref()) {
                return Err(self.source.wrong(&format!("values.{code}"), name, NAME));
            }
            if all.iter().any(|other| other.code == number || other.name == name.get_ref()) {
                return Err(self.source.wrong(&format!("values.{code}"), name, "each code and each name once"));
            }
            let read_only = self.row.read_only.iter().flatten().any(|text| text.get_ref() == name.get_ref());
            all.push(State { code: number, more: 0, read_only, name: kept_text(name.get_ref()) });
        }
        let is_unknown = |text: &&Text| all.iter().all(|state| state.name != text.get_ref());
        if let Some(text) = self.row.read_only.iter().flatten().find(is_unknown) {
            return Err(self.source.wrong("read_only", text, "a name of values"));
        }
        all.sort_by_key(|state| state.code);
        Ok(Some(States { size: (digits / 2) as u8, all: all.leak() }))
    }

    /// The fewest and the most bytes.
    fn sizes(&self) -> Result<[u8; 2], Mistake> {
        let size = self.row.size.as_ref().ok_or_else(|| self.missing("size", "a number of bytes, 1 to 255"))?;
        let maximum = self.within("size", size, [1, BYTES.into()])?;
        let minimum = match &self.row.minimum_size {
            Some(minimum) => self.within("minimum_size", minimum, [0, maximum.into()])?,
            None => maximum,
        };
        Ok([minimum, maximum])
    }

    fn bitmap(&self) -> Result<&'static Data, Mistake> {
        let size = self.row.size.as_ref().ok_or_else(|| self.missing("size", "a number of bytes, 1 to 255"))?;
        let size = self.within("size", size, [1, BYTES.into()])?;
        let given = self.row.flags.as_ref().ok_or_else(|| self.missing("flags", "bits with names"))?;
        let mut flags: Vec<Flag> = Vec::new();
        for flag in given.get_ref() {
            let index = match &flag.byte {
                Some(byte) => self.within("byte", byte, [0, i64::from(size) - 1])?,
                None => 0,
            };
            let (mask, name) = (1 << self.within("bit", &flag.bit, [0, 7])?, flag.name.get_ref());
            if !is_name(name) {
                return Err(self.source.wrong("flags.name", &flag.name, NAME));
            }
            if flags.iter().any(|other| other.name == name || (other.index, other.mask) == (index, mask)) {
                return Err(self.source.wrong("flags.name", &flag.name, "each bit and each name once"));
            }
            flags.push(Flag { name: kept_text(name), index, mask, data: &BIT });
        }
        if flags.is_empty() {
            return Err(self.missing("flags", "bits with names"));
        }
        Ok(kept(Data::Bitmap(Bitmap { size, flags: flags.leak() })))
    }

    fn within(&self, field: &str, value: &Spanned<i64>, [least, most]: [i64; 2]) -> Result<u8, Mistake> {
        let number = *value.get_ref();
        let found = u8::try_from(number).ok().filter(|_| (least..=most).contains(&number));
        found.ok_or_else(|| self.source.odd(field, value, format!("a number from {least} to {most}")))
    }
}

/// The names that topics, JSON and the command line can carry.
pub(super) const NAME: &str = "a letter, and letters and digits behind it";

/// A number of so many hexadecimal digits, with or without `0x`.
pub(super) fn hex(text: &str, digits: usize) -> Option<u64> {
    let text = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_hex { u64::from_str_radix(text, 16).ok() } else { None }
}

/// True for a letter with letters and digits behind it.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
}

//! Writes the constant tables that the functions of `class::table` read.

use std::fmt::Write;

use crate::facts::{Class, Data, Field, Flag, Property, State};
use crate::names::{constant, module};

/// Data types that are more than a few words, each once: `D0`, `D1`, …
#[derive(Default)]
pub(crate) struct Statics(Vec<String>);

impl Statics {
    /// An expression for a reference to this type.
    pub(crate) fn reference(&mut self, data: &Data) -> String {
        let expression = self.data(data);
        let place = self.0.iter().position(|known| *known == expression).unwrap_or_else(|| {
            self.0.push(expression);
            self.0.len() - 1
        });
        format!("&D{place}")
    }

    /// The types that were referred to.
    pub(crate) fn write(&self, out: &mut String) {
        for (place, expression) in self.0.iter().enumerate() {
            line(out, &format!("static D{place}: Data = {expression};"));
        }
    }

    fn data(&mut self, data: &Data) -> String {
        match data {
            Data::Number { format, range: [least, greatest], exponent, unit, coefficients, exact } => {
                let (sign, bits) = format.split_at(1);
                let sign = if sign == "u" { "u" } else { "" };
                let unit = unit.as_deref().unwrap_or("None");
                let mut text = format!("{sign}int{bits}({least}, {greatest}, Unit::{unit})");
                if *exponent != 0 {
                    text += &format!(".e({exponent})");
                }
                if !coefficients.is_empty() {
                    text += &format!(".by(&{coefficients:?})");
                }
                if *exact {
                    text += ".no_codes()";
                }
                text
            }
            Data::Numeric(codes) => {
                let codes =
                    codes.iter().map(|(code, number, exponent)| format!("n({code:#04X}, {number}, {exponent})"));
                format!("Data::Numeric(&[{}])", join(codes))
            }
            Data::State { size, all } => format!("states({size}, &[{}])", join(all.iter().map(state))),
            Data::Level { size, base, maximum } => format!("level({size}, {base:#04X}, {maximum})"),
            Data::Bitmap { size, flags } => {
                let flags = flags.iter().map(|Flag { index, mask, name, data }| {
                    format!("flag({index}, {mask:#010b}, {name:?}, {})", self.reference(data))
                });
                format!("bitmap({size}, &[{}])", join(flags))
            }
            Data::Date => "Data::Date".to_owned(),
            Data::Time { seconds: true, .. } => "TIME_HMS".to_owned(),
            Data::Time { span: true, .. } => "RELATIVE_TIME".to_owned(),
            Data::Time { .. } => "TIME".to_owned(),
            Data::Moment { seconds: true } => "DATE_TIME".to_owned(),
            Data::Moment { seconds: false } => "DATE_TIME_MINUTES".to_owned(),
            Data::Raw([least, most]) => format!("raw({least}, {most})"),
            Data::List { count: [least, most], item } => {
                let [size, same] = item.sizes();
                assert_eq!(size, same, "items have one length");
                format!("array({least}, {most}, {size}, {})", self.reference(item))
            }
            Data::Object(fields) => {
                let fields = fields.iter().map(|Field { short_name, name, data }| {
                    format!("field({short_name:?}, {}, {name:?})", self.reference(data))
                });
                format!("Data::Object(&[{}])", join(fields))
            }
            Data::OneOf(arms) => format!("Data::OneOf(&[{}])", join(arms.iter().map(|arm| self.data(arm)))),
        }
    }
}

fn state(State { code, last, name, read_only }: &State) -> String {
    match (code == last, read_only) {
        (true, false) => format!("s({code:#04X}, {name:?})"),
        (true, true) => format!("ro({code:#04X}, {name:?})"),
        (false, _) => format!("span({code:#04X}, {last:#04X}, {name:?})"),
    }
}

/// The table of a class.
pub(crate) fn class(out: &mut String, class: &Class, statics: &mut Statics) {
    let Class { code, short_name, releases, names: [english, japanese], either, properties } = class;
    let rows = |superseded: bool, statics: &mut Statics| {
        let rows = properties.iter().filter(|property| property.is_superseded() == superseded);
        join(rows.map(|property| row(property, statics)))
    };
    let (newest, superseded) = (rows(false, statics), rows(true, statics));
    let inherits = if matches!(code, 0x0000 | 0x0EF0) { "" } else { ".inherits(&SUPER_CLASS)" };
    let either = match &either[..] {
        [] => String::new(),
        lists => format!(".either(&[{}])", join(lists.iter().map(|codes| format!("PropertySet::of(&{codes:?})")))),
    };
    let name = constant(&module(short_name));
    line(out, &format!("/// {english}, class 0x{code:04X}."));
    line(
        out,
        &format!(
            "pub static {name}: Class = Class::new({code:#06X}, {short_name:?}, {releases:?}, [{english:?}, {japanese:?}], \
         [&[{newest}], &[{superseded}]]){inherits}{either};"
        ),
    );
}

fn row(property: &Property, statics: &mut Statics) -> String {
    let Property { epc, short_name, access, releases, data, names: [english, japanese], atomic } = property;
    let rules = access.chars().map(|letter| match letter {
        'R' => "Rule::Required",
        'C' => "Rule::RequiredC",
        'F' => "Rule::RequiredO",
        'P' => "Rule::IfPresent",
        'o' => "Rule::Optional",
        '-' => "Rule::NotApplicable",
        other => panic!("{short_name}: access {other}"),
    });
    let rules = join(rules.map(str::to_owned));
    let data = statics.reference(data);
    let atomic = atomic.map(|epc| format!(".atomic({epc:#04X})")).unwrap_or_default();
    format!("row({epc:#04X}, {short_name:?}, [{rules}], {releases:?}, {data}, {english:?}, {japanese:?}){atomic}")
}

/// All classes, by their codes.
pub(crate) fn all(out: &mut String, classes: &[Class]) {
    let all = join(classes.iter().map(|class| format!("&{}", constant(&module(&class.short_name)))));
    line(out, "/// Every class, in the order of their codes.");
    line(out, &format!("pub(super) static ALL: &[&Class] = &[{all}];"));
}

pub(crate) fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

pub(crate) fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes all");
}

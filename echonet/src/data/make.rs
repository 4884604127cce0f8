//! The tables of a file of `--data`: all of it is checked, and then kept as classes.

use std::collections::BTreeMap;

use echonet_lite::class::{self, Access, Class, Data as Type, PropertySpec, Rule};
use echonet_lite::wire::{ClassCode, PropertySet};
use toml::Spanned;

use super::contents::{Data, Variant};
use super::file::{self, File, Mistake, Property, Source, Text};
use super::types::{self, NAME, hex, is_name, kept, kept_text};
use crate::language::spelled;

/// The codes that each maker uses as it likes.
const OF_MAKERS: std::ops::RangeInclusive<u8> = 0xF0..=0xFF;
/// The codes of properties.
const OF_CLASSES: std::ops::RangeInclusive<u8> = 0x80..=0xFF;
/// The first class group that has no devices.
const PROFILES: u8 = 0x0E;

/// A property of a maker's devices.
struct Row<'a> {
    maker: [u8; 3],
    class: &'static Class,
    product: Option<&'a str>,
    spec: PropertySpec,
    of: &'a Property,
}

/// The data of a text, all of which is right.
pub(super) fn data(text: &str) -> Result<Data, Mistake> {
    let (source, file) = Source::read(text)?;
    let mut data = Data { makers: makers(&file, source)?, ..Data::default() };
    for class in &file.class {
        let made = own_class(class, &data.classes, source)?;
        data.classes.push(made);
    }
    let rows = file.property.iter().map(|row| of_maker(row, &data.classes, source)).collect::<Result<Vec<_>, _>>()?;
    for (at, row) in rows.iter().enumerate() {
        let is_it = |other: &&Row<'_>| key(other) == key(row) && other.spec.epc == row.spec.epc;
        if let Some(other) = rows[..at].iter().find(is_it) {
            let line = source.line(other.of.epc.span().start);
            return Err(source.wrong("epc", &row.of.epc, format!("one definition; line {line} has another")));
        }
    }
    for row in &rows {
        let is_there = |variant: &Variant| {
            (variant.maker, variant.class.code, variant.product.as_deref()) == (row.maker, row.class.code, row.product)
        };
        if !data.variants.iter().any(is_there) {
            let variant = variant(row, &rows, source)?;
            data.variants.push(variant);
        }
    }
    Ok(data)
}

/// The devices that a property belongs to.
fn key<'a>(row: &Row<'a>) -> ([u8; 3], ClassCode, Option<&'a str>) {
    (row.maker, row.class.code, row.product)
}

fn makers(file: &File, source: Source<'_>) -> Result<BTreeMap<[u8; 3], &'static str>, Mistake> {
    let mut makers = BTreeMap::new();
    for maker in &file.maker {
        if maker.name.get_ref().trim().is_empty() {
            return Err(source.wrong("name", &maker.name, "the name of a maker"));
        }
        let code = maker_code("code", &maker.code, source)?;
        if makers.insert(code, kept_text(maker.name.get_ref())).is_some() {
            return Err(source.wrong("code", &maker.code, "each maker once"));
        }
    }
    Ok(makers)
}

/// A class of the file's own.
fn own_class(class: &file::Class, others: &[&'static Class], source: Source<'_>) -> Result<&'static Class, Mistake> {
    let number = hex(class.code.get_ref(), 4).and_then(|code| u16::try_from(code).ok());
    let code = number.map(ClassCode::from_u16).filter(|code| code.group < PROFILES && code.to_u16() != 0);
    let code = code.ok_or_else(|| {
        source.wrong("code", &class.code, "a class of devices, four hexadecimal digits from 0001 to 0DFF")
    })?;
    let known = || class::all().iter().chain(others);
    if known().any(|other| other.code == code) {
        return Err(source.wrong("code", &class.code, "a class that is not defined yet"));
    }
    let name = class.name.get_ref();
    if !is_name(name) || known().any(|other| other.short_name.eq_ignore_ascii_case(name)) {
        return Err(source.wrong("name", &class.name, format!("{NAME}, as no other class has it")));
    }
    let mut specs: Vec<(PropertySpec, &Property)> = Vec::new();
    for property in &class.property {
        let row = property.get_ref();
        for (field, text) in [("maker", &row.maker), ("class", &row.class), ("product", &row.product)] {
            if let Some(text) = text {
                return Err(source.wrong(field, text, "no such field in a property of [[class]]"));
            }
        }
        let spec = spec(property, (OF_CLASSES, "80 to FF"), source)?;
        if specs.iter().any(|(other, _)| other.epc == spec.epc) {
            return Err(source.wrong("epc", &row.epc, "each property once"));
        }
        specs.push((spec, row));
    }
    specs.sort_by_key(|(spec, _)| spec.epc);
    let table: Vec<_> = specs.iter().map(|(spec, _)| *spec).collect();
    let names = [kept_text(name), title(class.title.as_ref(), name)];
    let made = kept(Class::custom(code, names, table.leak()));
    specs.iter().try_for_each(|(spec, row)| fits(made, spec, row, source)).map(|()| made)
}

/// A property of a maker's devices.
fn of_maker<'a>(
    property: &'a Spanned<Property>,
    own: &[&'static Class],
    source: Source<'_>,
) -> Result<Row<'a>, Mistake> {
    let of = property.get_ref();
    let missing = |field: &str, expected: &str| {
        source.at(property.span(), format!("{field}: {} has none: expected {expected}", of.name.get_ref()))
    };
    let maker = of.maker.as_ref().ok_or_else(|| missing("maker", "the code of a maker"))?;
    let maker = maker_code("maker", maker, source)?;
    let name = of.class.as_ref().ok_or_else(|| missing("class", "the name or the code of a class"))?;
    let is_it = |class: &&&'static Class| {
        class.short_name.eq_ignore_ascii_case(name.get_ref()) || name.get_ref().parse().ok() == Some(class.code)
    };
    let class = class::all().iter().chain(own).copied().find(|class| is_it(&class));
    let class = class.ok_or_else(|| source.wrong("class", name, "the name or the code of a class"))?;
    let spec = spec(property, (OF_MAKERS, "F0 to FF"), source)?;
    let product = of.product.as_ref().map(|text| text.get_ref().as_str());
    Ok(Row { maker, class, product, spec, of })
}

/// A class with the properties of a maker: those of all products, and those of one.
fn variant(row: &Row<'_>, rows: &[Row<'_>], source: Source<'_>) -> Result<Variant, Mistake> {
    let is_of = |other: &&Row<'_>| (other.maker, other.class.code) == (row.maker, row.class.code);
    let mut own: BTreeMap<u8, &Row<'_>> = BTreeMap::new();
    for product in [None, row.product] {
        let of_product = rows.iter().filter(is_of).filter(|other| other.product == product);
        own.extend(of_product.map(|row| (row.spec.epc, row)));
    }
    let mut specs: BTreeMap<u8, PropertySpec> = row.class.properties.iter().map(|spec| (spec.epc, *spec)).collect();
    specs.extend(own.iter().map(|(epc, row)| (*epc, row.spec)));
    let specs: Vec<_> = specs.into_values().collect();
    let class = kept(row.class.with_properties(specs.leak()));
    own.values().try_for_each(|row| fits(class, &row.spec, row.of, source))?;
    let own = own.keys().fold(PropertySet::EMPTY, |set, epc| set.with(*epc));
    Ok(Variant { maker: row.maker, product: row.product.map(str::to_owned), class, own })
}

/// Checks a property beside the others of its class.
fn fits(class: &'static Class, spec: &PropertySpec, row: &Property, source: Source<'_>) -> Result<(), Mistake> {
    let is_other =
        |other: &&PropertySpec| other.epc != spec.epc && other.short_name.eq_ignore_ascii_case(spec.short_name);
    if let Some(other) = class.all_properties().find(is_other) {
        let expected = format!("a name that {class} has once; {:#04X} has it", other.epc);
        return Err(source.wrong("name", &row.name, expected));
    }
    for text in row.coefficient.iter().flatten() {
        let epc = hex(text.get_ref(), 2).and_then(|code| u8::try_from(code).ok());
        let is_number = |data: &Type| match data {
            Type::Number(_) | Type::Numeric(_) => true,
            Type::OneOf(arms) => arms.iter().any(|arm| matches!(arm, Type::Number(_) | Type::Numeric(_))),
            _ => false,
        };
        let found = epc.filter(|epc| *epc != spec.epc).and_then(|epc| class.property(epc));
        if !found.is_some_and(|spec| is_number(spec.data)) {
            return Err(source.wrong("coefficient", text, format!("another property of {class} that is a number")));
        }
    }
    Ok(())
}

/// A property with its type.
fn spec(
    property: &Spanned<Property>,
    (codes, expected): (std::ops::RangeInclusive<u8>, &str),
    source: Source<'_>,
) -> Result<PropertySpec, Mistake> {
    let row = property.get_ref();
    let epc = hex(row.epc.get_ref(), 2).and_then(|code| u8::try_from(code).ok()).filter(|code| codes.contains(code));
    let epc = epc.ok_or_else(|| source.wrong("epc", &row.epc, format!("a code from {expected}")))?;
    let name = row.name.get_ref();
    if !is_name(name) || hex(name, 2).is_some() {
        return Err(source.wrong("name", &row.name, format!("{NAME}, and no code")));
    }
    let names = [kept_text(name), title(row.title.as_ref(), name)];
    Ok(PropertySpec::new(epc, names, access(row, source)?, types::data(property, source)?))
}

/// The name for people: that of the file, or the words of the name for programs.
fn title(title: Option<&Text>, name: &str) -> &'static str {
    title.map_or_else(|| kept_text(&spelled(name)), |title| kept_text(title.get_ref()))
}

/// The services of a property; it can be read if the file does not say.
fn access(row: &Property, source: Source<'_>) -> Result<Access, Mistake> {
    const WORDS: [&str; 3] = ["get", "set", "announce"];
    let Some(words) = &row.access else {
        return Ok(Access { get: Rule::Optional, set: Rule::NotApplicable, inf: Rule::Optional });
    };
    let is_unknown = |text: &&Text| !WORDS.contains(&text.get_ref().as_str());
    if let Some(text) = words.iter().find(is_unknown) {
        return Err(source.wrong("access", text, "get, set or announce"));
    }
    let [get, set, announce] = WORDS.map(|word| words.iter().any(|text| text.get_ref() == word));
    if !get && !set {
        return Err(source.wrong("access of", &row.name, "get or set among them"));
    }
    let rule = |is_offered, rule| if is_offered { rule } else { Rule::NotApplicable };
    Ok(Access { get: rule(get, Rule::Optional), set: rule(set, Rule::Optional), inf: rule(announce, Rule::IfPresent) })
}

fn maker_code(field: &str, text: &Text, source: Source<'_>) -> Result<[u8; 3], Mistake> {
    let code = hex(text.get_ref(), 6).map(u64::to_be_bytes);
    let [.., a, b, c] = code.ok_or_else(|| source.wrong(field, text, "the code of a maker, six hexadecimal digits"))?;
    Ok([a, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class::{Unit, Value};

    const FILE: &str = r#"
[[maker]]
code = "0000FE"
name = "Example Works"

[[property]]
maker = "0000FE"
class = "homeAirConditioner"
epc = "F0"
name = "purifierPower"
access = ["get", "set", "announce"]
type = "number"
format = "uint16"
unit = "W"
range = [0, 150.5]
multiple = 0.1
values = { FFFE = "noData" }
read_only = ["noData"]

[[property]]
maker = "0000FE"
class = "0130"
product = "AC-1"
epc = "F1"
name = "nightMode"
title = "Night mode"
type = "state"
values = { 41 = "on", 42 = "off", 43 = "auto" }

[[class]]
code = "05F1"
name = "petFeeder"
[[class.property]]
epc = "E0"
name = "portions"
type = "number"
format = "uint8"
[[class.property]]
epc = "E1"
name = "label"
type = "text"
size = 8
access = ["get", "set"]
[[class.property]]
epc = "E2"
name = "state"
type = "bitmap"
size = 2
flags = [{ name = "lidOpen", bit = 0 }, { name = "empty", byte = 1, bit = 7 }]
"#;

    #[test]
    fn a_file_gives_makers_classes_and_their_properties() {
        let data = data(FILE).unwrap();
        assert_eq!(data.makers.get(&[0, 0, 0xFE]).copied(), Some("Example Works"));
        let table = class::by_name("0130").unwrap();
        let of = |maker: [u8; 3], product: &[u8]| data.variant(table, Some(maker), Some(product));
        assert!(std::ptr::eq(of([0, 0, 1], b"AC-1"), table));
        let (any, one) = (of([0, 0, 0xFE], b"other"), of([0, 0, 0xFE], b"AC-1\0\0\0\0\0\0\0\0"));
        assert_eq!((any.property(0xF1).is_some(), one.property(0xF1).is_some()), (false, true));
        let power = one.property_by_name("purifierPower").unwrap();
        assert_eq!((power.epc, power.name(), power.number().unwrap().unit), (0xF0, "Purifier power", Unit::Watt));
        let mut edt = [0; 16];
        assert_eq!(power.parse("12.5 W", &mut edt).map(|length| edt[..length].to_vec()).unwrap(), [0, 125]);
        assert!(power.parse("151", &mut edt).is_err());
        assert_eq!(power.decode(&[0xFF, 0xFE]).unwrap().state(), Some("noData"));
        assert_eq!(one.property(0xB3).unwrap().short_name, "targetTemperature");
        let feeder = data.classes[0];
        assert_eq!((feeder.name(), feeder.property(0x80).unwrap().short_name), ("Pet feeder", "operationStatus"));
        let label = feeder.property_by_name("label").unwrap();
        assert_eq!(label.parse("Kitty", &mut edt).unwrap(), 8);
        assert_eq!(edt[..8], *b"Kitty\0\0\0");
        assert_eq!(label.decode(b"Kitty\0\0\0").unwrap(), Value::Text("Kitty"));
        assert!(label.parse("nine bytes", &mut edt).unwrap_err().to_string().contains("10 bytes instead of 8"));
        assert_eq!(
            feeder.property(0xE2).unwrap().decode(&[1, 0x80]).unwrap().to_string(),
            "{lidOpen: true, empty: true}"
        );
    }

    /// A property of a maker with these lines in place of, or behind, those that are right.
    fn with(lines: &str) -> String {
        let own: Vec<_> = lines.lines().filter_map(|line| line.split_once(" =")).map(|(field, _)| field).collect();
        let all = [
            ("maker", "\"0000FE\""),
            ("class", "\"homeAirConditioner\""),
            ("epc", "\"F0\""),
            ("name", "\"extra\""),
            ("type", "\"number\""),
            ("format", "\"uint8\""),
        ];
        let usual =
            all.iter().filter(|(field, _)| !own.contains(field)).map(|(field, value)| format!("{field} = {value}\n"));
        format!("[[property]]\n{}{lines}\n", usual.collect::<String>())
    }

    #[test]
    fn mistakes_name_line_field_value_and_what_was_expected() {
        let check = |text: &str, parts: &[&str]| {
            let error = data(text).err().unwrap_or_else(|| panic!("{text} is right")).to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        };
        check("[[maker]]\ncode = \"FE\"\nname = \"a\"", &["line 2", "code = \"FE\"", "six hexadecimal digits"]);
        check("[[maker]]\ncode = \"0000FE\"\nname = \"\"", &["line 3", "name = \"\"", "the name of a maker"]);
        check(&"[[maker]]\ncode = \"0000FE\"\nname = \"a\"\n".repeat(2), &["line 5", "each maker once"]);
        check("[[maker]]\ncolour = \"red\"", &["line 2", "unknown field `colour`", "expected", "colour = \"red\""]);
        check("[[makers]]", &["line 1", "unknown field `makers`"]);
        check("[[maker]]\ncode = 5\nname = \"a\"", &["line 2", "string"]);
        check("[[maker]", &["line 1"]);
        check("[[property]]\nepc = \"F0\"\nname = \"a\"\ntype = \"raw\"", &["line 1", "maker: a has none"]);
        check(&with("class = \"toaster2\""), &["class = \"toaster2\"", "the name or the code of a class"]);
        for epc in ["EF", "100", "F", "G0"] {
            check(&with(&format!("epc = \"{epc}\"")), &["line 7", "epc", epc, "F0 to FF"]);
        }
        check(&with("").repeat(2), &["line 12", "epc = \"F0\"", "line 4 has another"]);
        check(&with("name = \"B0\""), &["name = \"B0\"", "no code"]);
        check(&with("name = \"two words\""), &["two words", "letters and digits"]);
        check(&with("name = \"targetTemperature\""), &["targetTemperature", "0xB3 has it"]);
        check(&with("type = \"colour\""), &["type = \"colour\"", "number, state, text, raw or bitmap"]);
        check(&with("format = \"uint7\""), &["uint7", "int8, uint8"]);
        check(&with("unit = \"furlong\""), &["furlong", "a unit of the tables"]);
        check(&with("range = [30, 10]"), &["range", "30", "empty"]);
        check(&with("range = [0, 256]"), &["range", "256", "from 0 to 255"]);
        check(&with("range = [0.5, 2]"), &["range", "multiples of 1"]);
        check(&with("multiple = 0.3"), &["multiple = 0.3", "power of ten"]);
        check(&with("coefficient = [\"B0\"]"), &["coefficient = \"B0\"", "that is a number"]);
        check(&with("coefficient = [\"F0\"]"), &["coefficient = \"F0\"", "another property"]);
        check(&with("coefficient = [\"70\"]"), &["coefficient = \"70\"", "80 to FF"]);
        check(&with("size = 2"), &["line 8", "size: a number has no such field"]);
        check(&with("access = [\"got\"]"), &["access = \"got\"", "get, set or announce"]);
        check(&with("access = [\"announce\"]"), &["extra", "get or set"]);
        check(&with("values = { 4 = \"a\" }"), &["values.4", "2 hexadecimal digits"]);
        check(&with("values = { 41 = \"a\", 42 = \"a\" }"), &["values.42", "each code and each name once"]);
        check(&with("values = { 4a = \"a\", 4A = \"b\" }"), &["each code and each name once"]);
        check(&with("values = { 41 = \"a b\" }"), &["values.41 = \"a b\"", "letters and digits"]);
        check(&with("read_only = [\"a\"]"), &["read_only = \"a\"", "a name of values"]);
        let without_format = |text: &str| with(text).replace("format = \"uint8\"\n", "");
        check(&without_format(""), &["format: extra has none", "uint16"]);
        check(&without_format("type = \"state\""), &["values: extra has none"]);
        check(&without_format("type = \"state\"\nvalues = {}"), &["values: expected codes"]);
        check(&without_format("type = \"text\"\nsize = 0"), &["size = 0", "from 1 to 255"]);
        check(&without_format("type = \"raw\"\nsize = 4\nminimum_size = 5"), &["minimum_size = 5", "from 0 to 4"]);
        check(&without_format("type = \"raw\""), &["size: extra has none"]);
        let bitmap = |flags: &str| without_format(&format!("type = \"bitmap\"\nsize = 1\nflags = [{flags}]"));
        check(&bitmap(""), &["flags: extra has none"]);
        check(&bitmap("{ name = \"a\", bit = 8 }"), &["bit = 8", "from 0 to 7"]);
        check(&bitmap("{ name = \"a\", byte = 1, bit = 0 }"), &["byte = 1", "from 0 to 0"]);
        check(&bitmap("{ name = \"a\", bit = 0 }, { name = \"b\", bit = 0 }"), &["\"b\"", "each bit"]);
        let class = |code: &str, name: &str| format!("[[class]]\ncode = \"{code}\"\nname = \"{name}\"\n");
        check(&class("0130", "mine"), &["code = \"0130\"", "not defined yet"]);
        check(&class("0EF7", "mine"), &["0EF7", "0001 to 0DFF"]);
        check(&class("05F1", "controller"), &["controller", "as no other class has it"]);
        check(&class("05F1", "mine").repeat(2), &["line 5", "not defined yet"]);
        let inside = |lines: &str| format!("{}[[class.property]]\n{lines}", class("05F1", "mine"));
        check(
            &inside("maker = \"0000FE\"\nepc = \"E0\"\nname = \"a\"\ntype = \"raw\"\nsize = 1"),
            &["maker", "no such field"],
        );
        check(&inside("epc = \"7F\"\nname = \"a\"\ntype = \"raw\"\nsize = 1"), &["7F", "80 to FF"]);
    }

    #[test]
    fn every_beginning_of_a_file_is_data_or_a_mistake() {
        for end in (0..FILE.len()).filter(|end| FILE.is_char_boundary(*end)) {
            let _ = data(&FILE[..end]);
        }
    }
}

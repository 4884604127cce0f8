//! `echonet classes`: the tables.

use echonet_lite::class::{Class, Data, PropertySpec, Rule, State};
use serde_json::{Value, json};

use crate::commands::{Classes, Options};
use crate::failure::Failure;
use crate::language::Language;
use crate::names;
use crate::output::{Output, table};

pub(crate) fn run(args: &Classes, options: &Options, out: &Output) -> Result<(), Failure> {
    let lang = args.lang.or(options.language).unwrap_or_default();
    match &args.class {
        Some(name) => one(names::class(name)?, lang, out),
        None => all(lang, out),
    }
}

fn all(lang: Language, out: &Output) -> Result<(), Failure> {
    if out.json {
        return names::classes().try_for_each(|class| out.line(head(class)));
    }
    let rows = names::classes().map(|class| {
        [
            format!("0x{}", class.code),
            class.short_name.to_owned(),
            lang.class(class).to_owned(),
            class.releases.to_string(),
        ]
    });
    out.line(table(["CODE", "CLASS", "NAME", "RELEASES"], rows))
}

fn one(class: &Class, lang: Language, out: &Output) -> Result<(), Failure> {
    if out.json {
        let mut value = head(class);
        value["properties"] = class.all_properties().map(property).collect();
        return out.line(value);
    }
    let title = lang.class(class);
    out.line(format!("0x{} {}: {title}, releases {}\n", class.code, class.short_name, class.releases))?;
    let rows = class.all_properties().map(|spec| {
        let access = [spec.access.get, spec.access.set, spec.access.inf].map(letter).join(" ");
        [
            format!("{:#04X}", spec.epc),
            spec.short_name.to_owned(),
            access,
            lang.property(spec).to_owned(),
            values(spec.data),
        ]
    });
    out.line(table(["EPC", "PROPERTY", "G S I", "NAME", "VALUES"], rows))?;
    out.remark(
        "\nG get, S set, I announced: R required, C required on a condition, F required with its function, P required where the property is, o optional",
    );
    Ok(())
}

/// The values, as `get` shows them and `set` takes them: a switch is on or off. A name of several codes stands there once.
fn values(data: &'static Data) -> String {
    let Data::State(states) = data else { return data.to_string() };
    let name = |state: &State| match (state.code, state.name) {
        (0x30, "true") => "on",
        (0x31, "false") => "off",
        (_, name) => name,
    };
    let mut names: Vec<&str> = Vec::new();
    for name in states.all.iter().map(name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

const fn letter(rule: Rule) -> &'static str {
    match rule {
        Rule::Required => "R",
        Rule::RequiredC => "C",
        Rule::RequiredO => "F",
        Rule::IfPresent => "P",
        Rule::Optional => "o",
        Rule::NotApplicable => "-",
    }
}

fn head(class: &Class) -> Value {
    json!({
        "code": format!("0x{}", class.code),
        "class": class.short_name,
        "name": class.name(),
        "nameJa": class.name_ja(),
        "releases": class.releases.to_string(),
    })
}

fn property(spec: &PropertySpec) -> Value {
    let (least, most) = spec.data.sizes();
    json!({
        "epc": format!("{:#04X}", spec.epc),
        "name": spec.short_name,
        "nameEn": spec.name(),
        "nameJa": spec.name_ja(),
        "releases": spec.releases.to_string(),
        "get": spec.access.get.as_str(),
        "set": spec.access.set.as_str(),
        "inf": spec.access.inf.as_str(),
        "values": spec.data.to_string(),
        "unit": spec.number().map(|number| number.unit.symbol()),
        "bytes": [least, most],
    })
}

//! Names of entities and options in another language than English.
//!
//! Topics and payloads stay English. Templates in the description of an entity have Home Assistant translate options both ways.

use std::collections::HashSet;

use echonet_lite::class::{Class, PropertySpec};
use serde_json::{Map, Value as Json};

use super::device_class;
use super::shown::{Leaf, meant};
use crate::language::Language;

/// The longest name of an entity. Home Assistant makes ids of the names of device and entity, and cuts them at 255
/// letters: a cut id can end with `_`, and then no user can change the entity.
pub(super) const LONGEST_NAME: usize = 100;

/// The name of an entity. None if the language lacks the name of the property, the name is too long, or another property has it.
pub(super) fn name(language: Language, class: &Class, spec: &PropertySpec, leaf: &Leaf) -> Option<String> {
    let title = language.translated(spec)?;
    let is_other = |other: &PropertySpec| other.epc != spec.epc && language.property(other) == title;
    if class.all_properties().any(is_other) {
        return None;
    }
    let part: Vec<_> = leaf.words.iter().map(|step| word(language, step)).collect();
    let full = if part.is_empty() { title.to_owned() } else { format!("{title}: {}", part.join(" ")) };
    (full.len() <= LONGEST_NAME).then_some(full)
}

/// The name of a state, a flag or a field; its English words where the language has none.
pub(super) fn word(language: Language, word: &str) -> String {
    language.value(word).map_or_else(|| device_class::readable(word), str::to_owned)
}

/// Has Home Assistant show the options of a component in a language, and give them back as they were.
pub(super) fn options(language: Language, component: &mut Map<String, Json>) {
    let Some(Json::Array(options)) = component.get("options") else { return };
    let words: Vec<String> = options.iter().filter_map(Json::as_str).map(str::to_owned).collect();
    let shown: Vec<_> = words.iter().map(|word| language.shown(meant(word))).collect();
    let is_ambiguous = shown.iter().collect::<HashSet<_>>().len() < words.len();
    if is_ambiguous || language == Language::En {
        return;
    }
    let pairs = || words.iter().zip(&shown).filter(|(word, shown)| word != shown);
    component.insert("value_template".into(), template(pairs()).into());
    if component.get("platform").is_some_and(|platform| platform == "select") {
        component.insert("command_template".into(), template(pairs().map(|(word, shown)| (shown, word))).into());
    }
    component.insert("options".into(), shown.into());
}

/// A template of Home Assistant that replaces texts by others.
fn template<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let table: Map<_, _> = pairs.map(|(from, to)| (from.clone(), Json::from(to.as_str()))).collect();
    format!("{{{{ {}.get(value, value) }}}}", Json::Object(table))
}

#[cfg(test)]
mod tests {
    use super::super::shown::leaves;
    use super::*;
    use echonet_lite::class;
    use serde_json::json;

    #[test]
    fn options_are_translated_both_ways() {
        let select = json!({ "platform": "select", "options": ["auto", "cooling", "level 1", "(none)", "c_x"] });
        let Json::Object(mut component) = select else { panic!() };
        options(Language::De, &mut component);
        let shown = json!(["Automatik", "Kühlen", "Stufe 1", "Keine", "c_x"]);
        assert_eq!(component["options"], shown);
        let there =
            r#"{{ {"auto":"Automatik","cooling":"Kühlen","level 1":"Stufe 1","(none)":"Keine"}.get(value, value) }}"#;
        let back =
            r#"{{ {"Automatik":"auto","Kühlen":"cooling","Stufe 1":"level 1","Keine":"(none)"}.get(value, value) }}"#;
        assert_eq!((&component["value_template"], &component["command_template"]), (&json!(there), &json!(back)));
        // Two options would look the same, a sensor takes no commands, and English needs nothing.
        for (language, platform, words, keys) in [
            (Language::De, "select", ["batteryLow", "lowBattery"], [false, false]),
            (Language::Ja, "sensor", ["on", "off"], [true, false]),
            (Language::En, "select", ["on", "off"], [false, false]),
        ] {
            let Json::Object(mut component) = json!({ "platform": platform, "options": words }) else { panic!() };
            options(language, &mut component);
            assert_eq!(
                ["value_template", "command_template"].map(|key| component.contains_key(key)),
                keys,
                "{words:?}"
            );
        }
    }

    #[test]
    fn names_of_entities_differ_on_each_device() {
        for language in [Language::De, Language::Ja] {
            for class in class::all() {
                let mut seen = HashSet::new();
                for spec in class.all_properties() {
                    for leaf in leaves(spec.data) {
                        let Some(name) = name(language, class, spec, &leaf) else { continue };
                        assert!(seen.insert(name.clone()), "{language:?} {class} {:02X}: {name}", spec.epc);
                    }
                }
            }
        }
    }
}

//! Names in the language of the user: of classes, properties, states and rooms. Names that people type, topics and JSON are the same in
//! each language.

use std::collections::HashMap;
use std::sync::LazyLock;

use clap::ValueEnum;
use echonet_lite::class::{Class, PropertySpec};
use serde::Deserialize;

/// A language that names are shown in.
#[derive(ValueEnum, Deserialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    /// English
    #[default]
    En,
    /// German
    De,
    /// Japanese
    Ja,
}

static GERMAN: LazyLock<Words> = LazyLock::new(|| Words::read(include_str!("language/de.tsv")));
static JAPANESE: LazyLock<Words> = LazyLock::new(|| Words::read(include_str!("language/ja.tsv")));

/// The table of a language: the kind of a name and the name in English, or the code of a class, lead to the name.
struct Words(HashMap<[&'static str; 2], &'static str>);

impl Words {
    fn read(table: &'static str) -> Self {
        let fields = |line: &'static str| {
            let mut fields = line.split('\t');
            Some(([fields.next()?, fields.next()?], fields.next()?))
        };
        Self(table.lines().filter(|line| !line.starts_with('#')).filter_map(fields).collect())
    }

    fn get(&self, kind: &str, name: &str) -> Option<&'static str> {
        self.0.get(&[kind, name]).copied()
    }
}

impl Language {
    fn words(self) -> Option<&'static Words> {
        match self {
            Self::En => None,
            Self::De => Some(&GERMAN),
            Self::Ja => Some(&JAPANESE),
        }
    }

    /// The name of a class; the English one where the language has none.
    pub(crate) fn class(self, class: &Class) -> &'static str {
        match self {
            Self::En => class.name(),
            Self::De => GERMAN.get("class", &class.code.to_string()).unwrap_or_else(|| class.name()),
            Self::Ja => class.name_ja(),
        }
    }

    /// The name of a property, if the language has one.
    pub(crate) fn translated(self, spec: &PropertySpec) -> Option<&'static str> {
        match self {
            Self::En => None,
            Self::De => GERMAN.get("property", spec.name()),
            Self::Ja => Some(spec.name_ja()),
        }
    }

    /// The name of a property; the English one where the language has none.
    pub(crate) fn property(self, spec: &PropertySpec) -> &'static str {
        self.translated(spec).unwrap_or_else(|| spec.name())
    }

    /// The name of a state, a flag or a field, if the language has one.
    pub(crate) fn value(self, word: &str) -> Option<&'static str> {
        self.words()?.get("value", word)
    }

    /// The name of a room.
    #[cfg(feature = "mqtt")]
    pub(crate) fn room(self, english: &'static str) -> &'static str {
        self.words().and_then(|words| words.get("room", english)).unwrap_or(english)
    }

    /// A word of the command itself.
    pub(crate) fn word(self, english: &'static str) -> &'static str {
        self.words().and_then(|words| words.get("word", english)).unwrap_or(english)
    }

    /// A state or a level, `cooling` or `level 3`, as it is shown.
    pub(crate) fn shown(self, text: &str) -> String {
        match (self.value(text), text.strip_prefix("level ")) {
            (Some(word), _) => word.to_owned(),
            (None, Some(level)) => format!("{} {level}", self.word("level")),
            (None, None) => text.to_owned(),
        }
    }
}

/// A name for programs as words: `dayForTheLog2` is "Day for the log 2".
pub(crate) fn spelled(short_name: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    for letter in short_name.chars() {
        let begins = letter.is_ascii_uppercase() || (letter.is_ascii_digit() && !before.is_ascii_digit());
        let is_word = begins && !before.is_ascii_uppercase() && before != ' ';
        if is_word {
            words.push(' ');
        }
        words.push(if words.is_empty() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() });
        before = letter;
    }
    words
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use echonet_lite::class::{self, Data};

    const LANGUAGES: [(Language, &str); 2] =
        [(Language::De, include_str!("language/de.tsv")), (Language::Ja, include_str!("language/ja.tsv"))];

    fn rows(table: &str) -> impl Iterator<Item = [&str; 3]> {
        let lines = table.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{line}")))
    }

    fn all() -> impl Iterator<Item = &'static PropertySpec> {
        class::all().iter().flat_map(|class| class.properties.iter().chain(class.superseded))
    }

    /// The states, flags and fields of a type.
    fn words(data: &'static Data) -> Vec<&'static str> {
        match data {
            Data::State(states) => states.all.iter().map(|state| state.name).collect(),
            Data::OneOf(arms) => arms.iter().flat_map(words).collect(),
            Data::Array(array) => words(array.items),
            Data::Object(fields) => {
                fields.iter().flat_map(|field| [vec![field.name()], words(field.data)].concat()).collect()
            }
            Data::Bitmap(bitmap) => {
                bitmap.flags.iter().flat_map(|flag| [vec![flag.name], words(flag.data)].concat()).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn each_translated_name_exists_and_is_there_once() {
        let properties: BTreeSet<_> = all().map(PropertySpec::name).collect();
        let values: BTreeSet<_> = all().flat_map(|spec| words(spec.data)).collect();
        for (language, table) in LANGUAGES {
            let mut seen = BTreeSet::new();
            for [kind, name, translated] in rows(table) {
                let exists = match kind {
                    "class" => class::by_name(name).is_some_and(|class| class.code.to_string() == name),
                    "property" => properties.contains(name),
                    "value" => values.contains(name),
                    "room" | "word" => true,
                    _ => false,
                };
                assert!(exists, "{language:?}: there is no {kind} {name}");
                assert!(!translated.trim().is_empty() && seen.insert((kind, name)), "{language:?}: {kind} {name}");
            }
        }
        let untranslated = class::all().iter().find(|class| Language::De.class(class) == class.name());
        assert!(untranslated.is_none_or(|class| ["Toaster"].contains(&class.name())), "{untranslated:?}");
    }

    #[test]
    fn no_two_properties_or_values_of_a_device_have_one_name() {
        for (language, _) in LANGUAGES {
            for class in class::all() {
                // Some classes have one English name for two properties.
                let mut names: BTreeMap<&str, &str> = BTreeMap::new();
                for spec in class.all_properties().filter(|spec| language.translated(spec).is_some()) {
                    let name = language.property(spec);
                    let other = names.insert(name, spec.name()).is_none_or(|other| other == spec.name());
                    assert!(other, "{language:?} {class} {:02X} {name}", spec.epc);
                }
                for spec in class.all_properties() {
                    let own: BTreeSet<_> = match spec.data {
                        Data::State(_) | Data::OneOf(_) => words(spec.data).into_iter().collect(),
                        _ => continue,
                    };
                    let shown: BTreeSet<_> = own.iter().map(|word| language.shown(word)).collect();
                    assert_eq!(shown.len(), own.len(), "{language:?} {class} {:02X} {shown:?}", spec.epc);
                }
            }
        }
    }

    #[test]
    fn names_of_common_devices_are_translated() {
        let conditioner = class::by_name("0130").unwrap();
        let target = conditioner.property(0xB3).unwrap();
        for (language, class, property, state, level) in [
            (Language::En, "Home air conditioner", "Set temperature value", "cooling", "level 3"),
            (Language::De, "Klimaanlage", "Solltemperatur", "Kühlen", "Stufe 3"),
            (Language::Ja, "家庭用エアコン", "温度設定値", "冷房", "レベル 3"),
        ] {
            let found = (language.class(conditioner), language.property(target), language.shown("cooling"));
            assert_eq!(found, (class, property, state.to_owned()));
            assert_eq!(language.shown("level 3"), level);
        }
        const HOME: &str = "0000 0130 0133 0135 0139 0011 0012 0007 0029 001B 00D0 0260 0261 0263 026B 026F 0272 0273 0279 027B \
                            027C 027D 027E 0280 0281 0282 0287 0288 0290 0291 02A1 02A6 03B7 03B9 03BB 03C5 03D3 0602 05FD 05FF 0EF0";
        for class in HOME.split(' ').map(|code| class::by_name(code).unwrap()) {
            for spec in class.properties {
                assert!(Language::De.translated(spec).is_some(), "{class} {:02X} {}", spec.epc, spec.name());
            }
        }
    }
}

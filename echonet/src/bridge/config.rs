//! `echonet bridge --config FILE`: names, areas and entities as the user wants them.

use std::collections::BTreeMap;
use std::path::Path;

use echonet_lite::wire::Eoj;
use serde::Deserialize;

use crate::failure::Failure;
use crate::language::Language;
use crate::{data, names};

/// The wishes for all devices, by the part of their topics that names node and object.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// The language of the names that Home Assistant shows.
    pub(super) language: Option<Language>,
    #[serde(default)]
    device: BTreeMap<String, Wanted>,
}

/// The wishes for a device.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    pub(super) name: Option<String>,
    pub(super) area: Option<String>,
    /// Properties whose entities are enabled, and those whose entities are not.
    #[serde(default)]
    enable: Vec<String>,
    #[serde(default)]
    disable: Vec<String>,
}

impl Config {
    /// Reads a file; nothing is wanted without one.
    pub(super) fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(file) = file else { return Ok(Self::default()) };
        let failed = |why: &dyn std::fmt::Display| Failure::Input(format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
        Self::parse(&text).map_err(|why| failed(&why))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (place, wanted) in &config.device {
            let eoj: Option<Eoj> = place.split_once('/').and_then(|(_, eoj)| eoj.parse().ok());
            let class = eoj.and_then(names::class_of);
            let class =
                class.ok_or_else(|| format!("device `{place}`: a node and an object are wanted, as in topics"))?;
            let named = wanted.enable.iter().chain(&wanted.disable);
            let is_unknown =
                |name: &&String| class.property_by_name(name).is_none() && !data::names_property(class.code, name);
            if let Some(name) = named.into_iter().find(is_unknown) {
                return Err(format!("device `{place}`: {} has no property {name}", class.short_name));
            }
        }
        Ok(config)
    }

    pub(super) fn of(&self, node: &str, eoj: Eoj) -> Wanted {
        self.device.get(&format!("{node}/{}", eoj.to_string().to_lowercase())).cloned().unwrap_or_default()
    }
}

impl Wanted {
    /// True or false for a property that the user names.
    pub(super) fn enables(&self, property: &str) -> Option<bool> {
        let has = |list: &[String]| list.iter().any(|name| name == property);
        if has(&self.enable) { Some(true) } else { has(&self.disable).then_some(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_found_and_mistakes_named() {
        let text = "[device.\"fe00/013001\"]\nname = \"Study\"\narea = \"Upstairs\"\n\
                    enable = [\"powerSaving\"]\ndisable = [\"faultStatus\"]";
        let config = Config::parse(text).unwrap();
        let wanted = config.of("fe00", "013001".parse().unwrap());
        assert_eq!((wanted.name.as_deref(), wanted.area.as_deref()), (Some("Study"), Some("Upstairs")));
        let enabled = ["powerSaving", "faultStatus", "operationMode"].map(|name| wanted.enables(name));
        assert_eq!(enabled, [Some(true), Some(false), None]);
        assert_eq!(Config::parse("language = \"de\"").unwrap().language, Some(Language::De));
        assert!(config.of("fe00", "013002".parse().unwrap()).name.is_none());
        for (text, why) in [
            ("[device.\"fe00\"]", "a node and an object are wanted"),
            ("[device.\"fe00/013001\"]\nenable = [\"powerSafing\"]", "homeAirConditioner has no property powerSafing"),
            ("[device.\"fe00/013001\"]\nnom = \"Study\"", "unknown field"),
            ("[devices]", "unknown field"),
            ("language = \"fr\"", "unknown variant `fr`, expected one of `en`, `de`, `ja`"),
        ] {
            let error = Config::parse(text).err().unwrap();
            assert!(error.contains(why), "{error}");
        }
    }
}

//! Names and options in German and Japanese.

use super::commands::Way;
use super::expected::Expected;
use super::*;

impl Scene {
    /// An entity with the options that Home Assistant offers.
    pub(super) fn in_its_words(&self, expected: Expected, entity: &str) -> Expected {
        let state = self.hass.socket.state(entity);
        let options = state["attributes"]["options"].as_array();
        let words: Vec<_> = options.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        if words.is_empty() { expected } else { expected.in_words(&words) }
    }

    /// The faults of names and options, by class and property, that must be such in the language.
    fn faults_of_words(
        &self,
        classes: &[&'static class::Class],
        entities: &BTreeMap<String, Value>,
        words: &[(&str, &str, &str, &str)],
    ) -> Vec<String> {
        let mut faults = Vec::new();
        for (code, property, name, option) in words {
            let code = class::by_name(code).unwrap().code;
            let at = classes.iter().position(|class| class.code == code).unwrap();
            let Some(entity) = self.entity(entities, at, property) else {
                faults.push(format!("{code}: {property} is not there"));
                continue;
            };
            let state = self.hass.socket.state(&entity);
            let shown = state["attributes"]["friendly_name"].as_str().unwrap_or_default().to_owned();
            let is_option = |one: &Value| one.as_str() == Some(option);
            let options = &state["attributes"]["options"];
            let has_option = option.is_empty() || options.as_array().is_some_and(|all| all.iter().any(is_option));
            if !shown.ends_with(&format!(" {name}")) || !has_option {
                faults.push(format!("{entity}: {shown} with {options}, not {name} with {option}"));
            }
        }
        faults
    }
}

/// A home of all classes in a language: the names of some devices, of properties and of their options.
fn check(net: u8, language: &str, devices: &[&str], words: &[(&str, &str, &str, &str)]) {
    let classes = classes();
    let Some(scene) = Scene::new(net, &format!("all-classes-{language}"), &classes, language) else { return };
    let entities = scene.registry(classes.len());
    let mut faults = scene.faults_of_words(&classes, &entities, words);
    let named: Vec<_> = scene.hass.registry("device").iter().map(|device| device["name"].to_string()).collect();
    let is_missing = |device: &&&str| !named.iter().any(|name| name.contains(**device));
    faults.extend(devices.iter().filter(is_missing).map(|device| format!("no device is called {device}")));
    faults.extend(faults_of_names(&entities));
    faults.extend(scene.faults(&classes, &entities));
    faults.extend(scene.services_of_whole_devices(Way::WebSocket, &classes, &entities).1);
    faults.extend(scene.services_of_all_properties(&classes, &entities));
    faults.extend(scene.hass.complaints());
    faults.iter().for_each(|fault| println!("FAULT {fault}"));
    assert_eq!(faults.len(), 0, "{faults:#?}");
}

#[test]
fn a_home_in_german() {
    check(
        41,
        "de",
        &["Klimaanlage", "Photovoltaikanlage", "Leuchte"],
        &[
            ("0130", "roomTemperature", "Raumtemperatur", ""),
            ("0130", "airFlowDirectionVertical", "Luftrichtung vertikal", "Ganz oben"),
            ("0130", "trouble", "Störungsmeldung", ""),
            ("0279", "cumulativeElectricEnergyOfGeneration", "Erzeugte Energie", ""),
        ],
    );
}

#[test]
fn a_home_in_japanese() {
    check(
        42,
        "ja",
        &["家庭用エアコン", "住宅用太陽光発電", "一般照明"],
        &[
            ("0130", "roomTemperature", "室内温度計測値", ""),
            ("0130", "airFlowDirectionVertical", "風向上下設定", "最上"),
            ("0279", "cumulativeElectricEnergyOfGeneration", "積算発電電力量計測値", ""),
        ],
    );
}

//! Names of entities and options in another language than English.

use super::*;

/// The table in a template.
fn table(template: &Value) -> Value {
    let text = template.as_str().unwrap_or_else(|| panic!("no template: {template}"));
    let table = text.strip_prefix("{{ ").and_then(|text| text.strip_suffix(".get(value, value) }}"));
    serde_json::from_str(table.unwrap_or_else(|| panic!("{text}"))).unwrap()
}

#[test]
fn names_and_options_are_german_and_topics_stay_english() {
    if !is_there() {
        return;
    }
    const NET: u8 = 33;
    let broker = Mosquitto::start("bridge-language");
    let home = home(NET, &["0130", "0279"].map(|code| class::by_name(code).unwrap()), 1);
    let file = std::env::temp_dir().join(format!("echonet-language-{}.toml", std::process::id()));
    std::fs::write(&file, "language = \"de\"\n").unwrap();
    let _bridge = bridge_with(NET, &broker, "1", &["--config", file.to_str().unwrap()]);
    let listener = Listener::new(&broker);
    let devices = listener.devices(2);
    std::fs::remove_file(&file).unwrap();
    let of = |class: &str| {
        let is_it = |device: &&Value| device["device"]["name"].as_str().is_some_and(|name| name.contains(class));
        devices.iter().find(is_it).unwrap_or_else(|| panic!("no {class}: {devices:#?}"))
    };
    let conditioner = &of("Klimaanlage")["components"];
    assert_eq!(conditioner["roomTemperature"]["name"], "Raumtemperatur");
    assert_eq!(conditioner["trouble"]["name"], "Störungsmeldung");
    let solar = &of("Photovoltaikanlage")["components"];
    let energy = &solar["cumulativeElectricEnergyOfGeneration"];
    assert_eq!(energy["name"], "Erzeugte Energie", "{solar:#?}");

    let select = &conditioner["airFlowDirectionVertical"];
    let base = topic(&home, 0);
    assert_eq!(select["state_topic"], format!("{base}/airFlowDirectionVertical"));
    let options = select["options"].as_array().unwrap();
    assert!(options.contains(&json!("Ganz oben")), "{options:?}");
    let (shown, meant) = (table(&select["value_template"]), table(&select["command_template"]));
    for option in options {
        let word = meant.get(option.as_str().unwrap()).unwrap_or(option).as_str().unwrap();
        listener.command(&format!("{base}/airFlowDirectionVertical"), word);
        listener.wait_for(&format!("{base}/airFlowDirectionVertical"), word);
        assert_eq!(shown.get(word).and_then(Value::as_str).unwrap_or(word), option);
    }
}

//! Names, areas and entities as a user wants them.

use super::*;

#[test]
fn a_device_is_called_as_the_user_wants() {
    if !is_there() {
        return;
    }
    const NET: u8 = 29;
    let broker = Mosquitto::start("bridge-config");
    let _home = Home::new(
        [127, 74, NET],
        PORT + u16::from(NET),
        &["0130", "0139"].map(|code| class::by_name(code).unwrap()),
        1,
    );
    let file = std::env::temp_dir().join(format!("echonet-bridge-{}.toml", std::process::id()));
    let text = format!(
        "[device.\"fe000077{:026x}/013001\"]\nname = \"Study\"\narea = \"Upstairs\"\n\
         enable = [\"powerSaving\"]\ndisable = [\"faultStatus\"]\n",
        1
    );
    std::fs::write(&file, text).unwrap();
    let (port, address) = ((PORT + u16::from(NET)).to_string(), format!("127.75.{NET}.1"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
    command.args(["--port", &port, "--address", &address, "bridge", &format!("mqtt://127.0.0.1:{}", broker.port)]);
    let _bridge = Running(command.arg("--config").arg(&file).stdout(Stdio::null()).spawn().unwrap());
    let listener = Listener::new(&broker);
    let devices = listener.devices(2);
    std::fs::remove_file(&file).unwrap();
    let is_named = |device: &&Value| device["device"]["name"] == "Study";
    let device = devices.iter().find(is_named).unwrap_or_else(|| panic!("{devices:?}"));
    assert_eq!(device["components"]["main"]["platform"], "climate");
    for device in &devices {
        assert_eq!(checker::problems(device, &listener.values()), Vec::<String>::new());
    }
    assert_eq!(
        (device["device"]["name"].as_str(), device["device"]["suggested_area"].as_str()),
        (Some("Study"), Some("Upstairs"))
    );
    let enabled = ["powerSaving", "faultStatus"].map(|name| device["components"][name]["enabled_by_default"].clone());
    assert_eq!(enabled, [Value::Null, json!(false)]);
}

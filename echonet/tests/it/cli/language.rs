//! Names in German and Japanese.

use super::*;

#[test]
fn names_are_shown_in_the_language_of_the_user() {
    let (port, node) = ("13642", "127.0.62.33");
    let mut device = serve(port, node, &["homeAirConditioner"]);
    let tool = |language: &str, rest: &[&str]| {
        let head = ["--quiet", "--port", port, "--address", "127.0.62.34", "--timeout", "1", "--language", language];
        check(&[&head[..], rest].concat(), 0)
    };
    let set = ["set", node, "homeAirConditioner", "operationMode=cooling", "airFlowLevel=level 3"];
    tool("de", &set);
    let get = ["get", node, "homeAirConditioner", "operationStatus", "operationMode", "airFlowLevel"];
    for (language, words) in [
        ("en", ["operationStatus", "on", "cooling", "level 3"]),
        ("de", ["Betriebszustand", "Ein", "Kühlen", "Stufe 3"]),
        ("ja", ["動作状態", "入", "冷房", "レベル 3"]),
    ] {
        let text = tool(language, &get);
        assert!(words.iter().all(|word| text.contains(word)), "{language}: {text}");
    }
    // Programs read the same in each language.
    let json = lines(&tool("de", &[&["--json"], &get[..]].concat())).remove(0);
    assert_eq!(
        (&json["properties"][1]["name"], &json["properties"][1]["value"]),
        (&json!("operationMode"), &json!("cooling"))
    );

    let found = tool("ja", &["discover"]);
    assert!(found.contains("homeAirConditioner:1 (家庭用エアコン)"), "{found}");
    let head =
        ["--quiet", "--port", port, "--address", "127.0.62.34", "--language", "de", "watch", "--interval", "0.2"];
    let mut watch = Running::start(&[&head[..], &[node]].concat());
    let mut line = String::new();
    while !line.contains("Betriebsart Kühlen") {
        line.clear();
        assert_ne!(watch.stdout.read_line(&mut line).unwrap(), 0);
    }
    assert!(line.contains("homeAirConditioner:1 (Klimaanlage)"), "{line}");
    writeln!(device.stdin, "homeAirConditioner operationMode=heating").unwrap();
    while !line.contains("Kühlen → Heizen") {
        line.clear();
        assert_ne!(watch.stdout.read_line(&mut line).unwrap(), 0);
    }
    let classes = check(&["--language", "de", "classes", "0290"], 0);
    assert!(classes.contains("Leuchte") && classes.contains("Helligkeit"), "{classes}");
    check(&["--language", "fr", "classes"], 1);
}

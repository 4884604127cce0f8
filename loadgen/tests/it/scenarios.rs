//! The workspace's own plans (`benches/scenarios`) and the script that installs what they compare. Nothing is installed here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadgen::compare::{Plan, Words};

fn benches(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches").join(path)
}

/// The installed programs of `benches/peers/install`.
fn peers() -> Vec<String> {
    let output = Command::new(benches("peers/install")).arg("--list").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn every_plan_is_read_and_installs_what_the_script_has() {
    let (list, mut plans) = (peers(), 0);
    let known: BTreeSet<&String> = list.iter().collect();
    assert_eq!(known.len(), list.len(), "a name stands twice");
    for path in fs::read_dir(benches("scenarios")).unwrap().map(|entry| entry.unwrap().path()) {
        // These say what becomes of records.
        if ["findings.toml", "hypotheses.toml", "readme.toml"].iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let plan = fs::read_to_string(&path).map_err(|error| error.to_string()).and_then(|text| Plan::parse(&text));
        let plan = plan.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        plans += 1;
        let servers = plan.subjects.iter().chain(&plan.targets).filter_map(|subject| subject.start.as_ref());
        let loads =
            plan.scenarios.iter().flat_map(|scenario| scenario.program.iter().chain(scenario.programs.values()));
        let started: Vec<&Words> = servers.chain(loads).collect();
        for subject in &plan.subjects {
            let Some(install) = &subject.install else {
                // The plan of a finding installs each subject, as its reader may have none.
                let is_finding = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('F'));
                assert!(!is_finding, "{}: {}", path.display(), subject.name);
                continue;
            };
            let Some(names) = install.words().strip_prefix(&["../peers/install".to_owned()]) else { continue };
            for name in names {
                assert!(known.contains(name), "{}: there is no peer {name}", path.display());
                let made = format!("target/peers/bin/{name}");
                let is_started = started.iter().any(|words| words.mention(&made));
                assert!(is_started, "{}: {name} is installed, not started", path.display());
            }
        }
    }
    assert!(plans > 0, "there is no plan");
}

#[test]
fn every_peer_is_described() {
    let text = fs::read_to_string(benches("peers/README.md")).unwrap();
    for name in peers() {
        assert!(text.contains(&format!("| `{name}` |")), "benches/peers/README.md says nothing of {name}");
    }
}

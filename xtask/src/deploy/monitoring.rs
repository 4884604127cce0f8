//! Prometheus' rules, Grafana's dashboard and Kubernetes' manifests, checked against the metrics and flags of the programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use xtask::process::run_quietly;

use super::tool::is_there;

const RULES: &str = "deploy/prometheus/rules.yml";
const RULES_TEST: &str = "deploy/prometheus/rules.test.yml";
const DASHBOARD: &str = "deploy/grafana/servers.json";
const MANIFESTS: &str = "deploy/kubernetes";

/// Names of redis_exporter's metrics, one a line: its /metrics for a primary, a replica and a node of a cluster of ours.
const EXPORTER: &str = "deploy/prometheus/redis_exporter.txt";

/// Sources that name http-server's and grpc-server's metrics, as string literals.
const SOURCES: [&str; 5] = [
    "server-runtime/src/counters.rs",
    "serve/src/engine/stats.rs",
    "serve/src/engine/service.rs",
    "http-server/src/api/mod.rs",
    "grpc-server/src/engine/stats.rs",
];

/// Each metric's name begins with one of these; no label, function or keyword does.
const PREFIXES: [&str; 4] = ["redis_", "http_", "server_", "grpc_server_"];

/// A histogram has a series for each of these.
const HISTOGRAM: [&str; 3] = ["_bucket", "_sum", "_count"];

/// Checks the files; returns the number of alerts. `programs` is a folder with the programs under their installed names.
///
/// # Errors
/// When an expression names an unknown metric, an alert has no test, a manifest has an unknown flag, or promtool finds a fault.
pub(super) fn check(root: &Path, programs: &Path) -> Result<usize> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| name.to_owned());
    let exporter = read(EXPORTER)?;
    let mut exported: BTreeSet<String> = exporter.lines().map(str::to_owned).collect();
    for source in SOURCES {
        exported.extend(literals(&read(source)?).map(str::to_owned));
    }
    let rules = read(RULES)?;
    for expression in values(&rules, "expr: ") {
        check_expression(RULES, expression, &exported)?;
    }
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)?).context(DASHBOARD)?;
    let panels = dashboard["panels"].as_array().with_context(|| format!("{DASHBOARD}: expected panels"))?;
    for target in panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten() {
        let expression = target["expr"].as_str().with_context(|| format!("{DASHBOARD}: {target}: expected expr"))?;
        check_expression(DASHBOARD, expression, &exported)?;
    }
    let alerts: BTreeSet<String> = values(&rules, "- alert: ").map(str::to_owned).collect();
    let tests = read(RULES_TEST)?;
    let tested: BTreeSet<String> = values(&tests, "- alertname: ").map(str::to_owned).collect();
    if let Some(alert) = alerts.symmetric_difference(&tested).next() {
        bail!("{alert}: expected in both {RULES} and {RULES_TEST}");
    }
    for entry in fs::read_dir(root.join(MANIFESTS))? {
        let path = entry?.path();
        let help = |program: &str| run_quietly(Command::new(programs.join(program)).arg("--help"));
        check_manifest(&fs::read_to_string(&path)?, help).with_context(|| path.display().to_string())?;
    }
    run_promtool(&root.join("deploy/prometheus"))?;
    Ok(alerts.len())
}

/// The rest of each line that begins with `key`, after its indentation.
fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.trim_start().strip_prefix(key))
}

/// String literals of a source that could be names of metrics.
fn literals(source: &str) -> impl Iterator<Item = &str> {
    source
        .split('"')
        .filter(|text| is_metric(text) && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()))
}

fn is_metric(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// Every metric of the expression is exported, and it names one: `up` is Prometheus' own.
fn check_expression(file: &str, expression: &str, exported: &BTreeSet<String>) -> Result<()> {
    let words = expression.split(|char: char| char != '_' && !char.is_ascii_alphanumeric());
    let metrics: Vec<&str> = words.filter(|word| *word == "up" || is_metric(word)).collect();
    if metrics.is_empty() {
        bail!("{file}: {expression}: expected a metric, in one line");
    }
    for metric in metrics {
        let family = HISTOGRAM.iter().find_map(|suffix| metric.strip_suffix(suffix)).unwrap_or(metric);
        if metric != "up" && !exported.contains(metric) && !exported.contains(family) {
            bail!("{file}: {metric}: expected a metric that a server exports, or that {EXPORTER} lists");
        }
    }
    Ok(())
}

/// Every flag in the `args` of a container is one that the help of its program, the image's name, prints.
fn check_manifest(manifest: &str, help: impl Fn(&str) -> Result<String>) -> Result<()> {
    let mut program = "";
    for line in manifest.lines().map(str::trim_start) {
        program = line.strip_prefix("image: ").unwrap_or(program);
        let Some(arguments) = line.strip_prefix("args: [") else { continue };
        let help = help(program)?;
        for flag in arguments.split([',', ']', ' ']).filter(|word| word.starts_with("--")) {
            if !help.split_whitespace().any(|word| word == flag) {
                bail!("{flag}: expected a flag of {program}");
            }
        }
    }
    Ok(())
}

fn run_promtool(folder: &Path) -> Result<()> {
    if !is_there("promtool") {
        ensure!(!xtask::workspace::requires_peers(), "REQUIRE_PEERS=1, and promtool is not installed");
        println!("skipped: tests of the alerts (promtool is not installed)");
        return Ok(());
    }
    run_quietly(Command::new("promtool").args(["check", "config", "prometheus.yml"]).current_dir(folder))?;
    run_quietly(Command::new("promtool").args(["test", "rules", "rules.test.yml"]).current_dir(folder)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_metric_is_named() {
        let exported: BTreeSet<String> =
            literals(r#"("http_panics_total", "server_t", "Http.")"#).map(str::to_owned).collect();
        let check = |expression: &str, expected: &str| {
            let found = check_expression("f", expression, &exported).map_err(|error| error.to_string());
            assert_eq!(found.err().unwrap_or_default(), expected, "{expression}");
        };
        check("up{job=\"http-server\"} == 0", "");
        check("rate(http_panics_total[5m]) / sum by (job) (server_t_bucket)", "");
        check("|", "f: |: expected a metric, in one line");
        check(
            "http_panic_total > 0",
            "f: http_panic_total: expected a metric that a server exports, or that deploy/prometheus/redis_exporter.txt lists",
        );
    }

    #[test]
    fn an_unknown_flag_is_named() {
        let check = |flag: &str, expected: &str| {
            let manifest = format!("  image: other\n  image: server\n  args: [{flag}, \"1\"]\n");
            let help = |program: &str| Ok(format!("Usage: {program}\n  --listen <PLACE>\n"));
            let found = check_manifest(&manifest, help).map_err(|error| error.to_string());
            assert_eq!(found.err().unwrap_or_default(), expected, "{flag}");
        };
        check("--listen", "");
        check("--listens", "--listens: expected a flag of server");
    }
}

//! A comparison: a TOML file with subjects and scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::capacity::RateOf;
use super::cores::Cores;
use super::order::Order;
use super::ready::Ready;
use super::words::Words;
use crate::number;

/// A comparison's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// The title of the report.
    pub title: String,
    /// The topic, for readers.
    #[serde(default)]
    pub description: String,
    /// How often every subject runs every scenario.
    #[serde(default = "twenty")]
    pub rounds: usize,
    /// Rounds before that, whose results are thrown away.
    #[serde(default = "one")]
    pub warm_up_rounds: usize,
    /// The order of subjects within a round.
    #[serde(default)]
    pub order: Order,
    /// Whether servers are kept for the whole comparison.
    #[serde(default)]
    pub servers: Servers,
    /// The subject that the others are compared with; without it the first.
    pub baseline: Option<String>,
    /// Where the drawn orders come from.
    #[serde(default = "one")]
    pub seed: usize,
    /// Processors for servers, unless a subject has its own.
    pub pin: Option<Cores>,
    /// Processors for the generator.
    pub generator_pin: Option<Cores>,
    /// The compared subjects: servers, or programs that ask a target.
    #[serde(rename = "subject", default)]
    pub subjects: Vec<Subject>,
    /// Servers that subjects ask.
    #[serde(rename = "target", default)]
    pub targets: Vec<Subject>,
    /// The loads.
    #[serde(rename = "scenario", default)]
    pub scenarios: Vec<Load>,
}

/// Whether servers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Servers {
    /// Each is started for a run and ended after it.
    #[default]
    Anew,
    /// Each is started for its first run and stays until the end. Differences between starts of a server, such as its memory's layout, are
    /// then in no interval.
    Kept,
}

/// A server, and how it is handled.
///
/// In its commands `{port}` is the port, `{here}` the folder of the file and `{scratch}` a folder of its own that is removed
/// afterwards. A program with a `/` in its name is looked for from the folder of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    /// A description, for readers.
    #[serde(default)]
    pub about: String,
    /// Succeeds if the server is installed; without it the program of `start` is looked for.
    pub check: Option<Words>,
    /// How it is installed: shown where it is absent, and run by `--install`.
    pub install: Option<Words>,
    /// Prints its version.
    pub version: Option<Words>,
    /// Starts it, in the foreground. A subject without it is no server: it takes part where scenarios have a program of it.
    pub start: Option<Words>,
    /// How it is seen that it serves.
    #[serde(default)]
    pub ready: Ready,
    /// How long that may take.
    #[serde(default = "half_a_minute")]
    pub ready_within: Time,
    /// Ends it; without it a SIGTERM does.
    pub stop: Option<Words>,
    /// How long that may take before it is killed.
    #[serde(default = "five_seconds")]
    pub stop_within: Time,
    /// Where it runs; without it in `{scratch}`.
    pub folder: Option<String>,
    /// Its environment, beside the one of this process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its processors.
    pub pin: Option<Cores>,
    /// Its port; without it a free one.
    pub port: Option<u16>,
}

/// A load, in the words of the command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Load {
    /// Its name in reports.
    pub name: String,
    /// `redis -c 50 --depth 16 GET key:{key}` or `http /json -c 50`: the target is put behind the first word, and before the path,
    /// unless the words hold `{port}`.
    pub command: Option<Words>,
    /// Another program makes the load instead, whose words hold `{port}`: wrk, redis-benchmark with `--csv`, h2load, ghz, or one that
    /// prints a line of answers, seconds and losses.
    pub program: Option<Words>,
    /// The load is the subjects' own, and it is their processor time that counts: the [`Plan::targets`] that they ask. It is started anew
    /// for every run, on the processors of the generator.
    pub target: Option<String>,
    /// The programs that ask the target, by subject; as for `program`.
    #[serde(default)]
    pub programs: BTreeMap<String, Words>,
    /// The same for a run that fills a fresh server, whose result is thrown away.
    pub prepare: Option<Words>,
    /// The subjects that it is for; without it all.
    pub subjects: Option<Vec<String>>,
    /// Makes it an open loop at a share of what another scenario has shown.
    pub rate_of: Option<RateOf>,
    /// Processors for the generator, or for the target, instead of the file's: with those of the subject both share them.
    pub generator_pin: Option<Cores>,
}

/// A time such as `30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        number::duration(&text).map(Self).map_err(|expected| format!("the time is `{text}`, {expected}"))
    }
}

fn twenty() -> usize {
    20
}

fn one() -> usize {
    1
}

fn half_a_minute() -> Time {
    Time(Duration::from_secs(30))
}

fn five_seconds() -> Time {
    Time(Duration::from_secs(5))
}

/// More subjects, scenarios or rounds are a mistake.
const MOST: usize = 1000;

impl Plan {
    /// Reads the file's text.
    ///
    /// # Errors
    /// When it is not such a file; the text names the place, what stands there, and what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut plan: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        plan.settle();
        plan.check()?;
        Ok(plan)
    }

    /// The baseline's name.
    #[must_use]
    pub fn baseline(&self) -> &str {
        let first = self.subjects.first().map_or("", |subject| &subject.name);
        self.baseline.as_deref().unwrap_or(first)
    }

    /// Keeps only the named subjects and scenarios; an empty list keeps all.
    ///
    /// # Errors
    /// When a name is none of the file's.
    pub fn restrict(&mut self, subjects: &[String], scenarios: &[String]) -> Result<(), String> {
        known("--only", subjects, self.subjects.iter().map(|subject| &subject.name))?;
        known("--scenario", scenarios, self.scenarios.iter().map(|scenario| &scenario.name))?;
        self.subjects.retain(|subject| subjects.is_empty() || subjects.contains(&subject.name));
        self.scenarios.retain(|scenario| scenarios.is_empty() || scenarios.contains(&scenario.name));
        for scenario in &mut self.scenarios {
            if let Some(names) = &mut scenario.subjects {
                names.retain(|name| self.subjects.iter().any(|subject| subject.name == *name));
            }
        }
        if self.baseline.as_ref().is_some_and(|name| !self.subjects.iter().any(|subject| subject.name == *name)) {
            self.baseline = None;
        }
        self.check_rates()
    }

    /// Gives every load that lasts for a time another one.
    pub fn set_duration(&mut self, duration: &Time) {
        for scenario in &mut self.scenarios {
            if let Some(command) = &mut scenario.command {
                command.set_duration(&number::duration_text(duration.0));
            }
        }
    }

    /// Fills in the subjects of each scenario that names none and is not for all.
    fn settle(&mut self) {
        let is_server = |subject: &Subject| subject.start.is_some();
        for scenario in self.scenarios.iter_mut().filter(|scenario| scenario.subjects.is_none()) {
            let asks = |subject: &Subject| match scenario.target {
                Some(_) => scenario.programs.contains_key(&subject.name),
                None => is_server(subject),
            };
            if !self.subjects.iter().all(asks) {
                let names = self.subjects.iter().filter(|subject| asks(subject)).map(|subject| subject.name.clone());
                scenario.subjects = Some(names.collect());
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        for (field, value) in
            [("rounds", self.rounds), ("subject", self.subjects.len()), ("scenario", self.scenarios.len())]
        {
            if value == 0 || value > MOST {
                return Err(format!("`{field}`: there are {value}, expected 1 to {MOST}"));
            }
        }
        if self.warm_up_rounds > MOST {
            return Err(format!("`warm-up-rounds`: there are {}, expected 0 to {MOST}", self.warm_up_rounds));
        }
        unique("subject.name", self.subjects.iter().map(|subject| subject.name.as_str()))?;
        unique("scenario.name", self.scenarios.iter().map(|scenario| scenario.name.as_str()))?;
        let names = || self.subjects.iter().map(|subject| &subject.name);
        known("baseline", self.baseline.as_slice(), names())?;
        for scenario in &self.scenarios {
            known("scenario.subjects", scenario.subjects.as_deref().unwrap_or_default(), names())?;
        }
        self.check_rates()?;
        unique("target.name", self.targets.iter().map(|target| target.name.as_str()))?;
        for subject in &self.subjects {
            match &subject.start {
                Some(start) => check_port("subject", subject, start)?,
                None if subject.check.is_some() => {}
                None => return Err(format!("subject {}: expected `start`, or a `check` of a program", subject.name)),
            }
        }
        for target in &self.targets {
            let start = target.start.as_ref().ok_or_else(|| format!("target {}: expected `start`", target.name))?;
            check_port("target", target, start)?;
        }
        self.scenarios.iter().try_for_each(|scenario| self.check_load(scenario))
    }

    /// A scenario's load is of one kind, and its subjects can do it.
    fn check_load(&self, scenario: &Load) -> Result<(), String> {
        let Load { name, command, program, target, programs, .. } = scenario;
        match (command, program, target) {
            (Some(_), None, None) | (None, Some(_), None) if programs.is_empty() => {}
            (None, None, Some(_)) if !programs.is_empty() && scenario.rate_of.is_none() => {}
            _ => return Err(format!("scenario {name}: expected `command`, or `program`, or `target` with `programs`")),
        }
        if program.is_some() && scenario.rate_of.is_some() {
            return Err(format!("scenario {name}: `rate-of` needs a `command`"));
        }
        known("scenario.target", target.as_slice(), self.targets.iter().map(|target| &target.name))?;
        let named: Vec<String> = programs.keys().cloned().collect();
        known("scenario.programs", &named, self.subjects.iter().map(|subject| &subject.name))?;
        for subject in self.subjects.iter().filter(|subject| scenario.is_for(&subject.name)) {
            let can = if target.is_some() { programs.contains_key(&subject.name) } else { subject.start.is_some() };
            if !can {
                let missing = if target.is_some() { "program in `programs`" } else { "`start`" };
                return Err(format!("scenario {name}: subject {} has no {missing}", subject.name));
            }
        }
        Ok(())
    }
}

fn check_port(kind: &str, subject: &Subject, start: &Words) -> Result<(), String> {
    if subject.port.is_some()
        || start.mention("{port}")
        || subject.environment.values().any(|value| value.contains("{port}"))
    {
        return Ok(());
    }
    let name = &subject.name;
    Err(format!(
        "`start` of {kind} {name} is `{start}`, expected {{port}} in it or in `environment`, or a fixed `port`"
    ))
}

impl Plan {
    /// Each scenario that `rate-of` names is there, and is a closed loop.
    fn check_rates(&self) -> Result<(), String> {
        let closed: Vec<&String> = self.scenarios.iter().filter(|s| s.rate_of.is_none()).map(|s| &s.name).collect();
        for scenario in &self.scenarios {
            let Some(of) = &scenario.rate_of else { continue };
            let field = format!("rate-of of scenario {}", scenario.name);
            known(&field, std::slice::from_ref(&of.scenario), closed.iter().copied())?;
            known(&field, of.subject.as_slice(), self.subjects.iter().map(|subject| &subject.name))?;
            if !(of.share > 0.0 && of.share <= 1.0) {
                return Err(format!("`{field}`: the share is {}, expected one above 0, at most 1", of.share));
            }
            let mut words = scenario.command.iter().flat_map(Words::words);
            if words.any(|word| word == "--rate" || word.starts_with("--rate=")) {
                return Err(format!("`{field}`: the command has a --rate of its own, expected none"));
            }
        }
        Ok(())
    }
}

impl Load {
    /// All its words, for readers: those of programs behind their subjects' names.
    #[must_use]
    pub fn in_words(&self) -> String {
        let own = self.command.iter().chain(&self.program).map(Words::to_string);
        own.chain(self.programs.iter().map(|(name, words)| format!("{name}: {words}"))).collect::<Vec<_>>().join("; ")
    }

    /// Whether it is for a subject.
    #[must_use]
    pub fn is_for(&self, subject: &str) -> bool {
        self.subjects.as_ref().is_none_or(|names| names.iter().any(|name| name == subject))
    }
}

fn unique<'a>(field: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if name.trim().is_empty() {
            return Err(format!("`{field}` is empty, expected a name"));
        }
        if !seen.insert(name) {
            return Err(format!("`{field}` is `{name}` twice, expected different names"));
        }
    }
    Ok(())
}

fn known<'a>(field: &str, names: &[String], all: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let all: Vec<&str> = all.map(String::as_str).collect();
    match names.iter().find(|name| !all.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(format!("`{field}` is `{name}`, expected one of: {}", all.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        title = "t"
        rounds = 3
        pin = "1"
        [[subject]]
        name = "a"
        start = "a --port {port} 'two words'"
        ready = "redis"
        stop-within = "2s"
        [[subject]]
        name = "b"
        start = "b"
        port = 7
        environment = { X = "1" }
        [[scenario]]
        name = "s"
        command = "redis -c 5 GET key:{key}"
        subjects = ["b"]
    "#;

    #[test]
    fn a_plan_has_defaults() {
        let plan = Plan::parse(GOOD).unwrap();
        assert_eq!((plan.rounds, plan.warm_up_rounds, plan.servers), (3, 1, Servers::Anew));
        assert_eq!(plan.baseline(), "a");
        assert_eq!(plan.subjects[0].ready, Ready::Redis);
        assert_eq!(plan.subjects[0].stop_within, Time(Duration::from_secs(2)));
        assert_eq!(plan.subjects[1].ready, Ready::Tcp);
        assert!(plan.scenarios[0].is_for("b") && !plan.scenarios[0].is_for("a"));
    }

    #[test]
    fn an_error_names_field_value_and_expectation() {
        #[track_caller]
        fn check(from: &str, to: &str, expected: &[&str]) {
            assert!(GOOD.contains(from), "{from}");
            let error = Plan::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            for part in expected {
                assert!(error.contains(part), "`{part}` is not in: {error}");
            }
        }
        check("rounds = 3", "rounds = \"x\"", &["rounds = \"x\"", "expected usize"]);
        check("rounds = 3", "rounds = -3", &["rounds = -3", "expected usize"]);
        check("rounds = 3", "rounds = 0", &["`rounds`", "0", "expected 1 to 1000"]);
        check("rounds = 3", "round = 3", &["`round`", "expected one of", "`rounds`"]);
        check("rounds = 3", "order = \"chance\"", &["`chance`", "`random`", "`rotate`", "`reverse`"]);
        check("rounds = 3", "servers = \"new\"", &["`new`", "`anew`", "`kept`"]);
        check("rounds = 3", "baseline = \"z\"", &["`baseline` is `z`", "expected one of: a, b"]);
        check(
            "pin = \"1\"",
            "pin = \"one\"",
            &["pin = \"one\"", "the processors are `one`", "expected a list such as"],
        );
        check(
            "ready = \"redis\"",
            "ready = \"ping\"",
            &["ready = \"ping\"", "`ping`", "expected tcp, udp, redis, http:/PATH"],
        );
        check("\"2s\"", "\"soon\"", &["stop-within = \"soon\"", "the time is `soon`", "expected a time such as"]);
        check("'two words'", "'two words", &["start = ", "the command is `a --port {port} 'two words`", "quotation"]);
        check("start = \"b\"\n        port = 7", "start = \"b\"", &["`start` of subject b is `b`", "expected {port}"]);
        check("port = 7", "port = 70000", &["port = 70000", "expected u16"]);
        check("name = \"b\"", "name = \"a\"", &["`subject.name` is `a` twice"]);
        check("name = \"s\"", "name = \" \"", &["`scenario.name` is empty"]);
        check("start = \"b\"", "", &["subject b: expected `start`, or a `check`"]);
        check("[\"b\"]", "[\"c\"]", &["`scenario.subjects` is `c`", "expected one of: a, b"]);
        let rate = |of: &str| {
            format!("[\"b\"]\n[[scenario]]\nname = \"t\"\ncommand = \"redis --rate 5 GET a\"\nrate-of = {of}")
        };
        check(
            "[\"b\"]",
            &rate("{ scenario = \"t\", share = 0.5 }"),
            &["rate-of of scenario t` is `t`, expected one of: s"],
        );
        check("[\"b\"]", &rate("{ scenario = \"s\", share = 1.5 }"), &["the share is 1.5, expected one above 0"]);
        check(
            "[\"b\"]",
            &rate("{ scenario = \"s\", share = 0.5, subject = \"z\" }"),
            &["is `z`, expected one of: a, b"],
        );
        check("[\"b\"]", &rate("{ scenario = \"s\", share = 0.5 }"), &["has a --rate of its own"]);
        check("command = \"redis -c 5 GET key:{key}\"", "command = \"\"", &["command = \"\"", "expected a program"]);
    }

    /// A program that asks, and what it asks.
    const ASKING: &str = r#"
        [[subject]]
        name = "c"
        check = "true"
        [[target]]
        name = "t"
        start = "t {port}"
        [[scenario]]
        name = "u"
        target = "t"
        programs = { c = "c {port}", a = "a {port}" }
        [[scenario]]
        name = "v"
        program = "wrk {port}"
        generator-pin = "1"
    "#;

    #[test]
    fn programs_ask_servers_and_targets() {
        let text = format!("{GOOD}{ASKING}");
        let plan = Plan::parse(&text).unwrap();
        let of = |scenario: &Load| ["a", "b", "c"].map(|name| scenario.is_for(name));
        assert_eq!(of(&plan.scenarios[1]), [true, false, true], "those that have a program");
        assert_eq!(of(&plan.scenarios[2]), [true, true, false], "servers");
        assert_eq!(plan.scenarios[1].in_words(), "a: a {port}; c: c {port}");
        let check = |from: &str, to: &str, expected: &str| {
            assert!(text.contains(from), "{from}");
            let error = Plan::parse(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(expected), "`{expected}` is not in: {error}");
        };
        check("check = \"true\"", "", "subject c: expected `start`, or a `check`");
        check("start = \"t {port}\"", "start = \"t\"", "`start` of target t is `t`, expected {port}");
        check("target = \"t\"", "target = \"x\"", "`scenario.target` is `x`, expected one of: t");
        check("target = \"t\"", "", "scenario u: expected `command`, or `program`, or `target` with `programs`");
        check("program = \"wrk {port}\"", "", "scenario v: expected `command`");
        check("{ c = ", "{ x = ", "`scenario.programs` is `x`, expected one of: a, b, c");
        check("target = \"t\"", "target = \"t\"\nsubjects = [\"b\"]", "subject b has no program in `programs`");
        check("program = ", "subjects = [\"c\"]\nprogram = ", "scenario v: subject c has no `start`");
    }

    #[test]
    fn a_plan_without_subjects_is_refused() {
        let error = Plan::parse("title = \"t\"").unwrap_err();
        assert_eq!(error, "`subject`: there are 0, expected 1 to 1000");
    }

    #[test]
    fn a_plan_can_be_restricted() {
        let mut plan = Plan::parse(&GOOD.replace("rounds = 3", "baseline = \"a\"")).unwrap();
        plan.restrict(&["b".to_owned()], &[]).unwrap();
        assert_eq!((plan.subjects.len(), plan.baseline()), (1, "b"));
        let error = plan.restrict(&["c".to_owned()], &[]).unwrap_err();
        assert_eq!(error, "`--only` is `c`, expected one of: b");
    }
}

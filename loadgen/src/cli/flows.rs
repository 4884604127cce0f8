//! `loadgen scenario`: virtual users that walk through flows of requests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::header::{self, Header};
use super::{Drive, Invalid, LoadArgs, Transport};
use crate::codec::Flows;
use crate::flow::{Plan, Site};
use crate::load::{Length, Load};
use crate::pace::{Pace, Rate, Staged};
use crate::scenario::Scenario;

/// Lets virtual users walk through the flows of a file: steps over HTTP/1.1, with values of earlier answers.
///
/// Each connection is a user. A request of the load is an iteration: the steps of one flow. So -c is the number of users, -n the
/// number of iterations, and --rate the iterations per second.
#[derive(Args, Clone, Debug)]
pub struct ScenarioArgs {
    #[command(flatten)]
    load: LoadArgs,

    /// The file of flows (TOML), which docs/loadgen/scenarios.md describes
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only check the file
    #[arg(long)]
    check: bool,
}

impl Drive for ScenarioArgs {
    fn load_args(&self) -> &LoadArgs {
        &self.load
    }

    fn scenario(&self) -> Result<Scenario, Invalid> {
        self.check_options()?;
        let scheme = self.load.target.scheme.as_deref();
        let is_https = scheme == Some("https");
        if !matches!(scheme, None | Some("http" | "https")) {
            return Err(Invalid::new("TARGET's scheme", scheme.unwrap_or_default(), "http:// or https://"));
        }
        let port = if is_https { 443 } else { 80 };
        let load = self.load.load(Transport { port, tls: is_https, alpn: &[b"http/1.1"], ..Transport::default() })?;
        let plan = self.plan(port)?;
        let load = self.staged(load, &plan)?;
        let objectives = plan.objectives.clone();
        let site = Site::new(self.load.target.host(), load.endpoint.tls().is_some());
        let what = plan.describe();
        let settings = [
            ("file", json!(self.file)),
            ("flows", json!(what)),
            ("stages", json!(plan.stages.as_ref().map(|stages| stages.describe()))),
        ];
        let parts: Vec<String> = plan.names().map(str::to_owned).collect();
        let mut scenario = self.load.scenario(load, "scenario", &what, settings, Flows::new(plan, site));
        for objective in &scenario.objectives {
            if let Some(part) = objective.part.as_ref().filter(|part| !parts.contains(part)) {
                let expected = format_args!("the name of a flow or step before the colon: {}", parts.join(", "));
                return Err(Invalid::new("--slo", format_args!("{objective} ({part})"), expected));
            }
        }
        scenario.objectives.extend(objectives);
        Ok(scenario)
    }
}

impl ScenarioArgs {
    /// True if the file is only checked.
    pub(super) fn is_check(&self) -> bool {
        self.check
    }

    fn check_options(&self) -> Result<(), Invalid> {
        match &self.load {
            load if load.depth > 1 => Err(Invalid::new("--depth", load.depth, "1: a user waits for each answer")),
            load if load.batch => Err(Invalid::new("--batch", "true", "false: a user waits for each answer")),
            load if load.verify => Err(Invalid::new("--verify", "true", "false: the file has the checks of answers")),
            _ => Ok(()),
        }
    }

    fn plan(&self, port: u16) -> Result<Plan, Invalid> {
        let file = self.file.display();
        let unread = |error| Invalid::new("FILE", &file, format_args!("a file that can be read ({error})"));
        let text = fs::read_to_string(&self.file).map_err(unread)?;
        let folder = self.file.parent().unwrap_or_else(|| Path::new(""));
        let read = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
        let headers = header::with_needed(&[], &self.load.target, port);
        let headers: Vec<_> = headers.into_iter().map(|Header { name, value }| (name, value)).collect();
        Plan::parse(&text, &read, &headers).map_err(|faults| {
            let faults = faults.iter().map(|fault| format!("{file}: {fault}"));
            Invalid::because(faults.collect::<Vec<_>>().join("\n"))
        })
    }

    /// The load of the file's stages, if it has some.
    fn staged(&self, load: Load, plan: &Plan) -> Result<Load, Invalid> {
        let Some(stages) = &plan.stages else { return Ok(load) };
        let given = [
            ("--rate", self.load.rate.is_some()),
            ("--duration", self.load.duration.is_some()),
            ("--requests", self.load.requests.is_some()),
            ("--warm-up", self.load.warm_up.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let expected = "none of --rate, --duration, --requests and --warm-up: the file has stages";
            return Err(Invalid::new("the option", option, expected));
        }
        let mut load = load;
        load.length = Length::Duration(stages.length());
        load.warm_up = Duration::ZERO;
        load.stages = Some(stages.clone());
        match stages.kind() {
            Staged::Users => load.connections = stages.most() as usize,
            Staged::Rate => {
                let rate = Rate::Fixed(stages.most());
                load.pace = Pace::Open { rate, arrivals: self.load.arrivals.arrivals() };
            }
        }
        load.threads = load.threads.min(load.connections).max(1);
        Ok(load)
    }
}

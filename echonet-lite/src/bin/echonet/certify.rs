//! `echonet certify`: a node held against the specification.

use echonet_lite::certify::{Item, Outcome, Settings, certify};
use serde_json::json;

use crate::commands::{Certify, Options};
use crate::failure::Failure;
use crate::output::Output;
use crate::render;

pub(crate) fn run(args: &Certify, options: &Options, out: &Output) -> Result<(), Failure> {
    let mut settings = Settings { port: options.port, writes: !args.read_only, ..Settings::default() };
    settings.address = options.address.first().copied();
    settings.answer = options.timeout.unwrap_or(settings.answer);
    let progress = out.progress(format!("examining {}", args.target));
    let report = certify(args.target, &settings).map_err(|error| Failure::Network(error.to_string()))?;
    drop(progress);
    for item in &report.items {
        if out.json {
            out.line(json_of(item))?;
        } else if args.verbose || item.outcome != Outcome::Passed {
            out.line(item)?;
        }
    }
    if let Some(file) = &args.junit {
        std::fs::write(file, report.junit())?;
    }
    let [passed, failed, skipped] = report.counts();
    let counts = format!("{passed} passed, {failed} failed, {skipped} skipped");
    out.remark(&counts);
    if failed == 0 { Ok(()) } else { Err(Failure::Refused(format!("{}: {counts}", args.target))) }
}

fn json_of(item: &Item) -> serde_json::Value {
    let (outcome, why) = match &item.outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Failed(why) => ("failed", Some(why.as_str())),
        Outcome::Skipped(why) => ("skipped", Some(*why)),
    };
    json!({
        "object": render::object_json(item.eoj),
        "item": item.id,
        "requirement": item.requirement,
        "source": item.source,
        "outcome": outcome,
        "why": why,
    })
}

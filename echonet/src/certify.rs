//! `echonet certify`: a node held against the specification.

use std::io::Write;

use echonet_lite::certify::{Exchange, Item, Outcome, Settings, certify};
use serde_json::json;

use crate::commands::{Certify, Options};
use crate::failure::Failure;
use crate::output::Output;
use crate::render;

pub(crate) fn run(args: &Certify, options: &Options, out: &Output) -> Result<(), Failure> {
    let mut settings = Settings { port: options.port, writes: !args.read_only, ..Settings::default() };
    settings.address = options.address.first().copied();
    settings.answer = options.timeout.unwrap_or(settings.answer);
    // A report can take an hour: first find out whether its file can be written.
    let junit = match &args.junit {
        Some(file) => {
            let made = std::fs::File::create(file);
            let made = made.map_err(|error| Failure::Input(format!("--junit {}: {error}", file.display())))?;
            Some(made)
        }
        None => None,
    };
    let progress = out.progress(format!("examining {}", args.target));
    let report = certify(args.target, &settings).map_err(|error| Failure::Network(error.to_string()))?;
    drop(progress);
    if !report.is_there {
        return Err(Failure::NoAnswer(format!("{}: no node answers", args.target)));
    }
    if report.is_shared {
        out.remark(
            "another program of this machine has the same address and port: answers can go there (--address IP)",
        );
    }
    for item in &report.items {
        if out.json {
            out.line(json_of(item))?;
        } else if args.verbose || item.outcome != Outcome::Passed {
            out.line(item)?;
        }
    }
    if let Some(mut file) = junit {
        file.write_all(report.junit().as_bytes())?;
    }
    let [passed, failed, undecided] = report.counts();
    let counts = format!("{passed} passed, {failed} failed, {undecided} undecided");
    out.remark(format_args!("{counts}; {} requests were sent again", report.repeated));
    if failed == 0 { Ok(()) } else { Err(Failure::Refused(format!("{}: {counts}", args.target))) }
}

fn json_of(item: &Item) -> serde_json::Value {
    let (outcome, why) = match &item.outcome {
        Outcome::Passed => ("passed", None),
        Outcome::Failed(why) => ("failed", Some(why.as_str())),
        Outcome::Undecided(why) => ("undecided", Some(why.as_str())),
    };
    // Only an item that has not passed needs its exchanges.
    let exchanges: Vec<_> = if item.outcome == Outcome::Passed {
        Vec::new()
    } else {
        let received =
            |exchange: &Exchange| exchange.received.iter().map(|bytes| render::hex(bytes)).collect::<Vec<_>>();
        let json = |exchange: &Exchange| json!({ "sent": render::hex(&exchange.sent), "received": received(exchange) });
        item.exchanges.iter().map(json).collect()
    };
    json!({
        "object": render::object_json(item.eoj),
        "item": item.id,
        "requirement": item.requirement,
        "source": item.source,
        "outcome": outcome,
        "why": why,
        "exchanges": exchanges,
    })
}

//! `echonet set`: writes properties.

use echonet_lite::class::Class;
use echonet_lite::controller::{Answer, Interview, Operation, Request};
use echonet_lite::wire::Eoj;
use serde_json::{Value, json};

use crate::commands::{Options, Set};
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::render::{self, Property};
use crate::{data, get, link, names};

pub(crate) async fn run(args: &Set, options: &Options, out: &Output) -> Result<(), Failure> {
    let node = names::target(&args.target, options)?;
    let eoj = names::object(&args.object)?;
    if !data::varies(eoj.class_code()) {
        writes(args, names::class_of(eoj), eoj)?;
    }
    let endpoint = link::open(options, Interview::Nothing).await?;
    let progress = out.progress(format!("telling {node}"));
    get::has_object(&endpoint, node, eoj, options).await?;
    let class = get::class_at(&endpoint, node, eoj, options.timeout).await;
    let writes = writes(args, class, eoj)?;
    let lent: Vec<_> = writes.iter().map(|(epc, edt)| (*epc, edt.as_slice())).collect();
    let operation = if args.unconfirmed { Operation::SetI(&lent) } else { Operation::SetC(&lent) };
    let answers = get::ask(&endpoint, node, Request::new(eoj, operation), options).await?;
    drop(progress);
    for answer in &answers {
        show(class, answer, &writes, out)?;
    }
    get::refuse(class, answers.iter().filter(|answer| !answer.is_ok()))
}

/// Properties and their new values.
fn writes(args: &Set, class: Option<&'static Class>, eoj: Eoj) -> Result<Vec<(u8, Vec<u8>)>, Failure> {
    args.writes.iter().map(|text| names::write(class, eoj, text)).collect()
}

fn show(class: Option<&'static Class>, answer: &Answer, writes: &[(u8, Vec<u8>)], out: &Output) -> Result<(), Failure> {
    let rows: Vec<_> = writes
        .iter()
        .map(|(epc, edt)| {
            let accepted = answer.outcomes().any(|outcome| outcome.epc == *epc && outcome.is_ok());
            (Property::of(class, *epc, edt), if accepted { "accepted" } else { "refused" })
        })
        .collect();
    if out.json {
        let properties: Vec<_> = rows
            .iter()
            .map(|(property, status)| {
                let mut map = property.json();
                map.insert("status".into(), json!(status));
                Value::Object(map)
            })
            .collect();
        let object = render::object_json(answer.eoj);
        return out.line(json!({ "address": answer.node.to_string(), "object": object, "properties": properties }));
    }
    let rows = rows.into_iter().map(|(property, status)| {
        let [epc, name] = property.cells();
        [epc, name, property.text(), status.to_owned()]
    });
    out.line(table(["EPC", "PROPERTY", "VALUE", "RESULT"], rows))
}

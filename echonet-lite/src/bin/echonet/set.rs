//! `echonet set`: writes properties.

use echonet_lite::controller::{Answer, Interview, Operation, Request};
use serde_json::{Value, json};

use crate::commands::{Options, Set};
use crate::failure::Failure;
use crate::output::{Output, table};
use crate::render::{self, Property};
use crate::{get, link, names};

pub(crate) async fn run(args: &Set, options: &Options, out: &Output) -> Result<(), Failure> {
    let node = names::target(&args.target, options)?;
    let eoj = names::object(&args.object)?;
    let writes = args.writes.iter().map(|text| names::write(eoj, text)).collect::<Result<Vec<_>, _>>()?;
    let lent: Vec<_> = writes.iter().map(|(epc, edt)| (*epc, edt.as_slice())).collect();
    let operation = if args.unconfirmed { Operation::SetI(&lent) } else { Operation::SetC(&lent) };

    let endpoint = link::open(options, Interview::Nothing).await?;
    let progress = out.progress(format!("telling {node}"));
    get::has_object(&endpoint, node, eoj, options).await?;
    let answers = get::ask(&endpoint, node, Request::new(eoj, operation), options).await?;
    drop(progress);
    for answer in &answers {
        show(answer, &writes, out)?;
    }
    get::refuse(answers.iter().filter(|answer| !answer.is_ok()))
}

fn show(answer: &Answer, writes: &[(u8, Vec<u8>)], out: &Output) -> Result<(), Failure> {
    let rows: Vec<_> = writes
        .iter()
        .map(|(epc, edt)| {
            let accepted = answer.outcomes().any(|outcome| outcome.epc == *epc && outcome.is_ok());
            (Property::new(answer.eoj, *epc, edt), if accepted { "accepted" } else { "refused" })
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

//! `echonet get`: reads properties.

use std::time::Duration;

use echonet_lite::class::Class;
use echonet_lite::controller::{Answer, Interview, NodeAddr, Outcome, Request, Status};
use echonet_lite::net::{Device, Endpoint};
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::{Value, json};

use crate::commands::{Get, Options};
use crate::failure::{self, Failure};
use crate::language::Language;
use crate::output::{Output, table};
use crate::render::{self, Factors, Property};
use crate::{data, link, names};

/// The map of the properties that can be read.
pub(crate) const GET_MAP: u8 = 0x9F;

/// How long a node may take to list its objects. A request to one that takes longer is made nevertheless.
const LISTED: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: &Get, options: &Options, out: &Output) -> Result<(), Failure> {
    let node = names::target(&args.target, options)?;
    let eoj = names::object(&args.object)?;
    if !data::varies(eoj.class_code()) {
        epcs(&args.properties, names::class_of(eoj), eoj)?;
    }
    let endpoint = link::open(options, Interview::Nothing).await?;
    let progress = out.progress(format!("asking {node}"));
    has_object(&endpoint, node, eoj, options).await?;
    let class = class_at(&endpoint, node, eoj, options.timeout).await;
    let epcs = epcs(&args.properties, class, eoj)?;
    let answers = if epcs.is_empty() {
        read_all(&endpoint, node, eoj, options).await?
    } else {
        read(&endpoint, node, eoj, &epcs, options).await?
    };
    let mut counted = Vec::new();
    for answer in answers {
        let factors = factors(&endpoint, class, &answer, options).await;
        counted.push((answer, factors));
    }
    drop(progress);
    show(class, &counted, options.language.unwrap_or_default(), out)?;
    let answers = counted.iter().map(|(answer, _)| answer);
    // Only properties that the user named count as refused. Those of a map do not.
    let refused = answers.filter(|answer| if epcs.is_empty() { nothing_done(answer) } else { !answer.is_ok() });
    refuse(class, refused)
}

/// The codes of properties, each once.
fn epcs(texts: &[String], class: Option<&'static Class>, eoj: Eoj) -> Result<Vec<u8>, Failure> {
    let mut epcs = Vec::new();
    for text in texts {
        let epc = names::property(class, eoj, text)?;
        if !epcs.contains(&epc) {
            epcs.push(epc);
        }
    }
    Ok(epcs)
}

/// The class of an object, with the properties of its maker and product. The node is asked for these two if the user's data has properties
/// of makers in this class. Without an answer it is the class as the tables have it.
pub(crate) async fn class_at<D: Device + Send>(
    endpoint: &Endpoint<D>,
    node: NodeAddr,
    eoj: Eoj,
    timeout: Option<Duration>,
) -> Option<&'static Class> {
    const MAKER: u8 = 0x8A;
    const PRODUCT: u8 = 0x8C;
    let class = names::class_of(eoj)?;
    if !data::varies(class.code) {
        return Some(class);
    }
    let time = timeout.map_or(LISTED, |time| time.min(LISTED));
    let told = async |eoj: Eoj, epc: u8| {
        let epcs = [epc];
        let request = Request::get(eoj, &epcs).fresh().timeout(time);
        endpoint.request(node, &request).await.ok()?.get(epc).map(<[u8]>::to_vec)
    };
    let maker = told(Eoj::NODE_PROFILE, MAKER).await.and_then(|code| code.try_into().ok());
    let product = if maker.is_some() && eoj.instance() != 0 { told(eoj, PRODUCT).await } else { None };
    Some(data::variant(class, maker, product.as_deref()))
}

fn nothing_done(answer: &Answer) -> bool {
    answer.outcomes().all(|outcome| !outcome.is_ok())
}

/// The failure of what was refused, if anything was.
pub(crate) fn refuse<'a>(
    class: Option<&'static Class>,
    answers: impl Iterator<Item = &'a Answer>,
) -> Result<(), Failure> {
    let mut said = Vec::new();
    for answer in answers {
        let names: Vec<_> =
            answer.refused().iter().map(|epc| Property::of(class, epc, &[]).cells().join(" ")).collect();
        said.push(format!("{} {} refused {}", answer.node, render::object(answer.eoj), names.join(", ").trim_end()));
    }
    if said.is_empty() { Ok(()) } else { Err(Failure::Refused(said.join("; "))) }
}

/// Refuses an object that the node does not list: a node is silent about objects that it does not have, so a request would
/// wait for its whole time. A node that does not list its objects in full may have any.
pub(crate) async fn has_object<D: Device + Send>(
    endpoint: &Endpoint<D>,
    node: NodeAddr,
    eoj: Eoj,
    options: &Options,
) -> Result<(), Failure> {
    const COUNT: u8 = 0xD3;
    const LIST: u8 = 0xD6;
    if eoj.class_code() == Eoj::NODE_PROFILE.class_code() {
        return Ok(());
    }
    let time = options.timeout.map_or(LISTED, |time| time.min(LISTED));
    let request = Request::get(Eoj::NODE_PROFILE, &[LIST, COUNT]).fresh().tries(1).timeout(time);
    let Ok(answer) = endpoint.request(node, &request).await else { return Ok(()) };
    let Some(list) = answer.get(LIST).and_then(|list| list.get(1..)) else { return Ok(()) };
    let mut objects: Vec<_> = list.chunks_exact(3).map(|code| Eoj::new(code[0], code[1], code[2])).collect();
    let count = answer.get(COUNT).map_or(0, |count| count.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)));
    let is_it = |object: &Eoj| match eoj.instance() {
        0 => object.class_code() == eoj.class_code(),
        _ => *object == eoj,
    };
    if objects.is_empty() || objects.len() != count || objects.iter().any(is_it) {
        return Ok(());
    }
    objects.sort();
    let has: Vec<_> = objects.iter().map(|object| render::object(*object)).collect();
    Err(Failure::Input(format!("{node} has no {}; it has {}", render::object(eoj), has.join(", "))))
}

/// Makes a request to one object or, with instance 0, to all of a class.
pub(crate) async fn ask<D: Device + Send>(
    endpoint: &Endpoint<D>,
    node: NodeAddr,
    mut request: Request<'_>,
    options: &Options,
) -> Result<Vec<Answer>, Failure> {
    request.timeout = options.timeout;
    let failed = |error| failure::of_request(error, node);
    if request.eoj.instance() != 0 {
        return Ok(vec![endpoint.request(node, &request).await.map_err(failed)?]);
    }
    let answers = endpoint.request_all(Some(node), &request).await.map_err(failed)?;
    if answers.is_empty() {
        return Err(Failure::NoAnswer(format!("{node}: no {} answered", render::object(request.eoj))));
    }
    Ok(answers)
}

/// Reads properties.
pub(crate) async fn read<D: Device + Send>(
    endpoint: &Endpoint<D>,
    node: NodeAddr,
    eoj: Eoj,
    epcs: &[u8],
    options: &Options,
) -> Result<Vec<Answer>, Failure> {
    ask(endpoint, node, Request::get(eoj, epcs).fresh(), options).await
}

/// Reads all that can be read.
pub(crate) async fn read_all<D: Device + Send>(
    endpoint: &Endpoint<D>,
    node: NodeAddr,
    eoj: Eoj,
    options: &Options,
) -> Result<Vec<Answer>, Failure> {
    let mut answers = Vec::new();
    for object in read(endpoint, node, eoj, &[GET_MAP], options).await? {
        let map = object.get(GET_MAP).ok_or_else(|| {
            let name = render::object(object.eoj);
            Failure::Refused(format!("{node} {name} does not tell its properties: name those to read"))
        })?;
        let epcs: Vec<_> = PropertySet::decode_map_lenient(map).iter().collect();
        answers.extend(read(endpoint, node, object.eoj, &epcs, options).await?);
    }
    Ok(answers)
}

/// The factors of an answer's numbers: from the answer itself, and from the object, which is asked for the missing
/// ones. A property that it refuses is one that it does not have.
async fn factors<D: Device + Send>(
    endpoint: &Endpoint<D>,
    class: Option<&'static Class>,
    answer: &Answer,
    options: &Options,
) -> Factors {
    let told = |answer: &Answer| {
        let values = answer.outcomes().filter_map(|outcome| Some((outcome.epc, outcome.value?.to_vec())));
        values.collect::<Vec<_>>()
    };
    let mut values = told(answer);
    let counted_in = values
        .iter()
        .fold(PropertySet::EMPTY, |all, (epc, edt)| all.union(Property::of(class, *epc, edt).counted_in()));
    let asked = answer.outcomes().fold(PropertySet::EMPTY, |all, outcome| all.with(outcome.epc));
    let missing: Vec<_> = counted_in.difference(asked).iter().collect();
    let mut refused = answer.refused();
    if !missing.is_empty() {
        // Without an answer the numbers are raw, and said to be.
        if let Ok(answers) = read(endpoint, answer.node, answer.eoj, &missing, options).await {
            for more in &answers {
                values.extend(told(more));
                refused = refused.union(more.refused());
            }
        }
    }
    let mut factors = Factors::of(class, values.iter().map(|(epc, edt)| (*epc, edt.as_slice())));
    let is_one = |epc: &u8| class.is_none_or(|class| render::is_one_if_absent(class, *epc));
    counted_in.intersection(refused).iter().filter(is_one).for_each(|epc| factors.lacks(epc));
    factors
}

fn show(
    class: Option<&'static Class>,
    answers: &[(Answer, Factors)],
    language: Language,
    out: &Output,
) -> Result<(), Failure> {
    for (place, (answer, factors)) in answers.iter().enumerate() {
        if out.json {
            out.line(json(class, answer, factors))?;
            continue;
        }
        if answers.len() > 1 {
            out.line(format!("{}{}", if place == 0 { "" } else { "\n" }, render::object_in(language, answer.eoj)))?;
        }
        let rows = answer.outcomes().map(|outcome| {
            let property = Property::of(class, outcome.epc, outcome.value.unwrap_or_default()).counted(factors);
            let property = property.shown_in(language);
            let [epc, name] = property.cells();
            [epc, name, word(outcome).map_or_else(|| property.text(), str::to_owned)]
        });
        out.line(table(["EPC", "PROPERTY", "VALUE"], rows))?;
    }
    Ok(())
}

/// The status of a property, unless it has a value.
fn word(outcome: Outcome<'_>) -> Option<&'static str> {
    match (outcome.status, outcome.value) {
        (Status::Done, Some(_)) => None,
        (Status::Done, None) => Some("accepted"),
        (Status::Refused | Status::KnownRefused, _) => Some("refused"),
        (Status::Omitted, _) => Some("omitted"),
    }
}

/// An answer as JSON.
fn json(class: Option<&'static Class>, answer: &Answer, factors: &Factors) -> Value {
    let properties: Vec<_> = answer
        .outcomes()
        .map(|outcome| {
            let property = Property::of(class, outcome.epc, outcome.value.unwrap_or_default()).counted(factors);
            let Some(word) = word(outcome) else { return Value::Object(property.json()) };
            let mut map = property.json_name();
            map.insert("status".into(), json!(word));
            Value::Object(map)
        })
        .collect();
    json!({
        "address": answer.node.to_string(),
        "object": render::object_json(answer.eoj),
        "properties": properties,
    })
}

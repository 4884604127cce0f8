//! Calls to devices, over HTTP, for groups, in bulks and for histories alike.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use echonet_lite::class::PropertySpec;
use echonet_lite::controller::{Answer, Failure, Request, Status};
use echonet_lite::net::Error;
use echonet_lite::wire::PropertySet;
use serde_json::{Map, Value as Json, json};

use super::device::{Device, Resource, Values, only_value};
use super::problem::Problem;
use super::{Web, schema, value};
use crate::directory::answers_at;

/// The time from a write to the read of its result: some devices take a moment to do it.
const SETTLED: Duration = Duration::from_secs(2);

/// How long a device that is not at its address is looked for.
const FOUND: Duration = Duration::from_secs(5);

/// The calls to a device.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Call {
    /// All properties.
    All,
    /// A property, with what its query says.
    Get { name: String, query: Vec<(String, String)> },
    /// A property is to have a value.
    Put { name: String, body: Json },
    /// Something is to be done.
    Act { name: String, body: Json },
}

impl Web {
    /// Makes a call to a device; returns the answer's body.
    ///
    /// # Errors
    /// There is no such device, it has no such resource, or it does not do it.
    pub(super) async fn call(&self, id: &str, call: Call) -> Result<Json, Problem> {
        let device = self.home.device(id)?;
        match call {
            Call::All => self.all(&device).await,
            Call::Get { name, query } if name == schema::CIRCUITS && device.has_circuits() && query.is_empty() => {
                self.circuits(&device).await
            }
            Call::Get { name, query } => self.get(&device, device.resource(&name)?, &query).await,
            Call::Put { name, body } => self.put(&device, device.resource(&name)?, &body).await,
            Call::Act { name, body } => self.act(&device, device.resource(&name)?, &body).await,
        }
    }

    async fn all(&self, device: &Arc<Device>) -> Result<Json, Problem> {
        let values = self.fetch(device, device.readable(), false).await?;
        let resources = device.resources().filter(|resource| resource.is_readable);
        let read =
            resources.filter_map(|resource| Some((resource.name.to_owned(), device.read(resource.spec, &values)?)));
        let mut all: Map<_, _> = read.collect();
        if device.has_circuits() {
            all.insert(schema::CIRCUITS.into(), self.circuits(device).await?[schema::CIRCUITS].take());
        }
        Ok(Json::Object(all))
    }

    async fn get(
        &self,
        device: &Arc<Device>,
        resource: Resource<'_>,
        query: &[(String, String)],
    ) -> Result<Json, Problem> {
        if !resource.is_readable {
            return Err(Problem::not_allowed("POST", format!("{} is an action: it is done by POST", resource.name)));
        }
        let spec = resource.spec;
        let first = first(device, spec, query)?;
        let epcs = device.coefficients(spec).with(spec.epc);
        let values = match first {
            None => self.fetch(device, epcs, true).await?,
            Some((epc, edt)) => {
                // No other request selects another day meanwhile.
                let _alone = device.atomic.lock().await;
                self.write(device, epc, &edt).await?;
                self.fetch(device, epcs, true).await?
            }
        };
        let Some(edt) = values.get(&spec.epc) else {
            return Err(Problem::device(format!("the device does not tell {}", resource.name)));
        };
        let value = device.read(spec, &values);
        let value =
            value.ok_or_else(|| Problem::device(format!("{}: {} is no value of it", resource.name, hex(edt))))?;
        Ok(json!({ resource.name: value }))
    }

    async fn put(&self, device: &Arc<Device>, resource: Resource<'_>, body: &Json) -> Result<Json, Problem> {
        let name = resource.name;
        if !resource.is_readable {
            return Err(Problem::not_allowed("POST", format!("{name} is an action: it is done by POST")));
        }
        if !resource.is_writable {
            return Err(Problem::not_allowed("GET, HEAD", format!("{name} cannot be written")));
        }
        let edt = value::edt(resource.spec, only_field(body, name)?)?;
        self.write(device, resource.spec.epc, &edt).await?;
        let said = [(resource.spec.epc, edt)];
        self.home.take_its_own(device, &said);
        self.settle(device);
        let values = Values::from(said);
        // For a number that is multiplied, the sent value counts.
        let value = device.read(resource.spec, &values).filter(|value| !value.is_null());
        Ok(json!({ name: value.unwrap_or_else(|| body[name].clone()) }))
    }

    async fn act(&self, device: &Arc<Device>, resource: Resource<'_>, body: &Json) -> Result<Json, Problem> {
        let name = resource.name;
        if resource.is_readable {
            return Err(Problem::not_allowed("GET, HEAD, PUT", format!("{name} is a property: it is written by PUT")));
        }
        let is_empty = body.is_null() || body.as_object().is_some_and(Map::is_empty);
        let edt = match only_value(resource.spec) {
            Some(only) if is_empty => value::parse(resource.spec, only)?,
            _ => value::edt(resource.spec, only_field(body, name)?)?,
        };
        self.write(device, resource.spec.epc, &edt).await?;
        self.settle(device);
        Ok(json!({}))
    }

    /// Asks a device at its node's address, or at the one that the node is found at meanwhile: no other node. A request that
    /// may have reached the node before is sent again only if it can be repeated. An address that the node has left is not
    /// waited for: earlier requests there can take half a minute to fail, one after the other.
    async fn ask_its_own(
        &self,
        device: &Device,
        request: &Request<'_>,
        can_be_repeated: bool,
    ) -> Result<Answer, Problem> {
        let until = tokio::time::Instant::now() + FOUND;
        let request = request.only_to(device.node);
        let mut is_turned = false;
        loop {
            // Looked at before the address is, so that no move is missed.
            let moved = self.home.moved.notified();
            let addr = self.home.device(&device.id)?.addr;
            let has_other = !is_turned && self.home.has_other(device);
            let asked = async {
                let is_there = !has_other || answers_at(&self.endpoint, addr, device.node).await;
                if is_there { Some(self.endpoint.request(addr, &request).await) } else { None }
            };
            let result = tokio::select! {
                result = asked => result,
                () = self.home.has_moved(device, addr), if can_be_repeated => continue,
            };
            let error = match result {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(error)) => error,
                None => {
                    is_turned = true;
                    self.home.turns(device, addr);
                    continue;
                }
            };
            let is_elsewhere = match error {
                Error::Failed(Failure::OtherNode | Failure::NodeSilent { .. }) => true,
                Error::Failed(Failure::TimedOut { .. }) => can_be_repeated && !self.home.is_certainly_at(device, addr),
                _ => false,
            };
            if !is_elsewhere {
                return Err(Problem::from(error));
            }
            if !std::mem::replace(&mut is_turned, true) && self.home.turns(device, addr) {
                continue;
            }
            self.search();
            if tokio::time::timeout_at(until, moved).await.is_err() {
                return Err(Problem::from(error));
            }
        }
    }

    /// Writes a property. A property that can be read is a state, which can be written twice.
    async fn write(&self, device: &Device, epc: u8, edt: &[u8]) -> Result<(), Problem> {
        let writes = [(epc, edt)];
        let is_state = device.maps.readable.contains(epc);
        let answer = self.ask_its_own(device, &Request::set(device.eoj, &writes), is_state).await?;
        let refused = || Problem::device(format!("the device refuses {epc:#04X} = {}", hex(edt)));
        if answer.is_ok() { Ok(()) } else { Err(refused()) }
    }

    /// Reads properties, and keeps what the device tells. Of several some may be missing; of one that the device refuses, the
    /// refusal is the answer.
    pub(super) async fn fetch(&self, device: &Device, epcs: PropertySet, is_fresh: bool) -> Result<Values, Problem> {
        let mut said = Vec::new();
        let mut problem = None;
        let certainty = self.home.certainty(device);
        for batch in device.quirks.batches(epcs) {
            let request = Request::get(device.eoj, &batch);
            let answer = if is_fresh {
                self.ask_its_own(device, &request.fresh(), true).await
            } else {
                self.endpoint.request(device.addr, &request).await.map_err(Problem::from)
            };
            match answer {
                Ok(answer) => {
                    let done = answer.outcomes().filter(|outcome| outcome.status == Status::Done);
                    said.extend(done.filter_map(|outcome| Some((outcome.epc, outcome.value?.to_vec()))));
                }
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        if is_fresh {
            self.home.take_its_own(device, &said);
        } else {
            self.home.take(device, certainty, &said);
        }
        match problem {
            Some(problem) if said.is_empty() => Err(problem),
            _ => Ok(said.into_iter().collect()),
        }
    }

    /// Reads after a while what a write may have changed.
    fn settle(&self, device: &Arc<Device>) {
        if !self.home.settles(&device.id) {
            return;
        }
        let (web, device) = (self.clone(), Arc::clone(device));
        tokio::spawn(async move {
            tokio::time::sleep(SETTLED).await;
            web.home.has_settled(&device.id);
            // It may have moved, or gone.
            let Ok(device) = web.home.device(&device.id) else { return };
            // It may be silent now; then it is asked later.
            let _ = web
                .fetch(&device, device.silent().union(device.maps.writable.intersection(device.readable())), false)
                .await;
        });
    }
}

/// The write that has to precede the read of a property, by the query.
///
/// # Errors
/// The query says what it cannot, or only a part.
fn first(device: &Device, spec: &PropertySpec, query: &[(String, String)]) -> Result<Option<(u8, Vec<u8>)>, Problem> {
    let parameters = device.parameters(spec);
    if let Some((name, _)) = query.iter().find(|(name, _)| !parameters.iter().any(|parameter| parameter.name == name)) {
        let names: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
        let there = if names.is_empty() { "no parameters".to_owned() } else { names.join(", ") };
        return Err(Problem::mistyped(format!("{name:.60}: there is no such parameter; there are {there}")));
    }
    let said = |name: &str| query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
    let (Some(epc), false) = (spec.atomic, query.is_empty()) else { return Ok(None) };
    let Some(first) = device.class.property(epc) else { return Ok(None) };
    let mut parts = Vec::new();
    for parameter in &parameters {
        let value = said(parameter.name)
            .ok_or_else(|| Problem::mistyped(format!("the parameter {} is missing", parameter.name)))?;
        parts.push((parameter.name, value));
    }
    let text = match &parts[..] {
        [(_, only)] => (*only).to_owned(),
        several => {
            let fields: Vec<_> =
                several.iter().map(|(name, value)| format!("{name}: \"{}\"", value.replace('"', ""))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    };
    Ok(Some((epc, value::parse(first, &text)?)))
}

/// The value in a body that has nothing else.
fn only_field<'a>(body: &'a Json, name: &str) -> Result<&'a Json, Problem> {
    let wrong = || Problem::mistyped(format!("{{\"{name}\": …}} is wanted, not {}", value::excerpt(body)));
    match body.as_object() {
        Some(map) if map.len() == 1 => map.get(name).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

fn hex(edt: &[u8]) -> String {
    format!("0x{}", crate::render::hex(edt))
}

/// The outcome of a call, in a list of several.
pub(super) fn outcome(device: &str, result: Result<Json, Problem>) -> Json {
    match result {
        Ok(body) => json!({ "deviceId": device, "status": StatusCode::OK.as_u16(), "body": body }),
        Err(problem) => json!({ "deviceId": device, "status": problem.status.as_u16(), "body": problem.json() }),
    }
}

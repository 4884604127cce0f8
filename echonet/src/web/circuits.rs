//! The circuits of a distribution board: the values of its lists, by circuit, as one more property.

use std::sync::Arc;

use echonet_lite::class::{Data, Scaled, Value};
use echonet_lite::wire::PropertySet;
use serde_json::{Map, Value as Json, json};

use super::device::{Device, Values};
use super::problem::Problem;
use super::schema::CIRCUITS;
use super::{Web, value};
use crate::circuits::{self, Circuits, List, Part};
use crate::render;

/// The number of a circuit in a list: the path of its field, if it is one of several.
type Number = (&'static List, u8, &'static str, Scaled);

impl Device {
    /// The ranges in which the values of its circuits are read.
    pub(super) fn parts(&self, values: &Values) -> Vec<Part> {
        circuits::parts(self.class, &self.maps, values)
    }

    /// The values of its circuits; `null` where one is not known.
    pub(super) fn circuits(&self, circuits: &Circuits, values: &Values) -> Json {
        let mut found: Vec<(&str, u8, Map<String, Json>)> = Vec::new();
        for list in circuits::lists(self.class, &self.maps) {
            let Some(data) = list.items() else { continue };
            for channel in 1..=list.channels(values) {
                let told = circuits.value(list, channel);
                let told = told.map(|told| value::json(told, data, &|epcs| self.factor(epcs, values)));
                let is_it = |(kind, number, _): &(&str, u8, _)| (*kind, *number) == (list.kind, channel);
                let at = found.iter().position(is_it).unwrap_or(found.len());
                if at == found.len() {
                    found.push((list.kind, channel, Map::new()));
                }
                found[at].2.insert(list.quantity.to_owned(), told.unwrap_or(Json::Null));
            }
        }
        let entry = |(kind, channel, mut values): (&str, u8, Map<String, Json>)| {
            values.insert("circuit".to_owned(), channel.into());
            values.insert("kind".to_owned(), kind.into());
            Json::Object(values)
        };
        found.into_iter().map(entry).collect()
    }

    /// The properties that the values of its circuits are counted in.
    fn circuit_coefficients(&self) -> PropertySet {
        let specs = circuits::lists(self.class, &self.maps).filter_map(List::spec);
        specs.fold(PropertySet::EMPTY, |set, spec| set.union(self.coefficients(spec)))
    }

    /// All numbers of its circuits.
    pub(super) fn circuit_numbers(&self, circuits: &Circuits, values: &Values) -> Vec<Number> {
        let mut found = Vec::new();
        for list in circuits::lists(self.class, &self.maps) {
            let Some(data) = list.items() else { continue };
            for channel in 1..=list.channels(values) {
                let Some(told) = circuits.value(list, channel) else { continue };
                let parts: Vec<(&'static str, Value<'_>, &'static Data)> = match told {
                    Value::Object(fields) => {
                        fields.map(|(field, value)| (field.short_name, value, field.data)).collect()
                    }
                    value => vec![("", value, data)],
                };
                let numbers = parts.into_iter().filter_map(|(path, value, data)| {
                    let factor = self.factor(render::coefficients(data), values)?;
                    Some((list, channel, path, factor.times(value.number()?)?))
                });
                found.extend(numbers);
            }
        }
        found
    }
}

impl Web {
    /// Reads the values of all circuits.
    ///
    /// # Errors
    /// The board does not answer.
    pub(super) async fn circuits(&self, device: &Arc<Device>) -> Result<Json, Problem> {
        let numbers = circuits::numbers(device.class, &device.maps).union(device.circuit_coefficients());
        let values = self.fetch(device, numbers, true).await?;
        let said = self.fetch_circuits(device, device.parts(&values)).await?;
        let mut told = Circuits::default();
        for (part, edt) in &said {
            told.take(*part, edt);
        }
        Ok(json!({ CIRCUITS: device.circuits(&told, &values) }))
    }

    /// Reads ranges of circuits, and keeps what the board tells.
    ///
    /// # Errors
    /// The board does not answer.
    pub(super) async fn fetch_circuits(
        &self,
        device: &Device,
        parts: Vec<Part>,
    ) -> Result<Vec<(Part, Vec<u8>)>, Problem> {
        let certainty = self.home.certainty(device);
        let (place, object) = ((device.addr, device.node), (device.eoj, device.maps.writable));
        let (mut said, mut problem) = (Vec::new(), None);
        for part in parts {
            // No other request chooses another range meanwhile.
            let _alone = device.atomic.lock().await;
            match circuits::read(&self.endpoint, place, object, part).await {
                Ok(answer) => said.extend(answer.map(|edt| (part, edt))),
                Err(error) => {
                    problem = Some(Problem::from(error));
                    break;
                }
            }
        }
        self.home.take_circuits(device, certainty, &said);
        problem.map_or(Ok(said), Err)
    }
}

//! Commands of users to devices.

use std::time::Duration;

use echonet_lite::class::{Data, PropertySpec, Scaled, Unit, Value};
use echonet_lite::controller::{Failure as Ended, NodeAddr, Request};
use echonet_lite::net::Error;
use echonet_lite::wire::Eoj;
use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::asking::{self, Reading, SETTLED, Told, WriteFailure};
use super::{Bridge, composite, shown};
use crate::directory::{Name, answers_at};
use crate::render;

/// How long a command waits for a node that is not found at its address: it can be found at another one.
const FOUND: Duration = Duration::from_secs(5);
/// Commands that wait for nodes.
const WAITING: usize = 256;

/// The values to write to an object.
#[derive(Clone)]
pub(super) struct Command {
    name: Name,
    eoj: Eoj,
    writes: Vec<(u8, Vec<u8>)>,
    /// When it is given up if the node is not found.
    pub(super) until: Instant,
    /// The words of the user: the topic's last part, and the payload.
    said: [String; 2],
    /// Whether a further address of the node was tried.
    is_turned: bool,
}

/// A command that has been sent to an address, or waits there for its turn.
pub(super) struct UnderWay {
    number: u64,
    command: Command,
    addr: NodeAddr,
    task: AbortHandle,
}

impl Bridge<'_> {
    /// Takes a user's command to write a property.
    pub(super) fn command(&mut self, topic: &str, payload: &str) -> Result<(), String> {
        let place = topic.strip_suffix("/set").and_then(|topic| topic.rsplit_once('/'));
        let (base, property) = place.ok_or("no topic of a property")?;
        let (name, eoj) = self.topics.get(base).cloned().ok_or("there is no such object")?;
        let thing = self.things.get(&(name.clone(), eoj)).ok_or("there is no such object")?;
        let writes = match thing.class.property_by_name(property) {
            Some(spec) if thing.maps.writable.contains(spec.epc) => {
                let mut edt = [0; 255];
                let written = match spec.data {
                    Data::Text { .. } => spec.encode(Value::Text(payload), &mut edt),
                    _ => spec.parse(&rounded(spec, shown::meant(payload)), &mut edt),
                };
                let length = written.map_err(|error| error.to_string())?;
                vec![(spec.epc, edt[..length].to_vec())]
            }
            Some(_) => return Err("it cannot be written".to_owned()),
            None if property == composite::MODE => {
                let writes = composite::mode_writes(thing.class, payload).ok_or("there is no such mode")?;
                if !writes.iter().all(|(epc, _)| thing.maps.writable.contains(*epc)) {
                    return Err("its mode cannot be written".to_owned());
                }
                writes
            }
            None => return Err("there is no such property".to_owned()),
        };
        let said = [property, payload].map(str::to_owned);
        self.carry_out(Command { name, eoj, writes, until: Instant::now() + FOUND, said, is_turned: false });
        Ok(())
    }

    /// Writes to the node that a command is for, where it is now; if that is not known, when it has been found.
    fn carry_out(&mut self, command: Command) {
        let Some((addr, id)) = self.certain_place(&command.name) else { return self.wait_for_node(command) };
        let Some(thing) = self.things.get(&(command.name.clone(), command.eoj)) else { return };
        let batches = asking::batches(&thing.quirks, &command.writes, thing.maps.readable);
        let (endpoint, told, place) = (self.endpoint.clone(), self.told.clone(), (addr, self.directory.doubts(addr)));
        self.carried_out += 1;
        let (number, carried) = (self.carried_out, command.clone());
        let has_other = !command.is_turned && self.directory.has_other(&command.name);
        let task = tokio::spawn(async move {
            let command = carried;
            let lent: Vec<_> = command.writes.iter().map(|(epc, edt)| (*epc, edt.as_slice())).collect();
            let request = Request::set(command.eoj, &lent).only_to(id);
            let failure = if has_other && !answers_at(&endpoint, addr, id).await {
                Some(WriteFailure::Elsewhere("the node does not answer at this address".to_owned()))
            } else {
                match endpoint.request(addr, &request).await {
                    Ok(answer) if answer.is_ok() => None,
                    Ok(_) => Some(WriteFailure::Refused("the device refuses it".to_owned())),
                    Err(error @ Error::Failed(Ended::OtherNode | Ended::NodeSilent { .. })) => {
                        Some(WriteFailure::Elsewhere(error.to_string()))
                    }
                    Err(error) => Some(WriteFailure::Unanswered(error.to_string())),
                }
            };
            let values = match failure {
                Some(WriteFailure::Elsewhere(_)) => Vec::new(),
                Some(WriteFailure::Refused(_) | WriteFailure::Unanswered(_)) | None => {
                    asking::read(&endpoint, addr, command.eoj, batches).await
                }
            };
            let reading = Reading { name: command.name.clone(), eoj: command.eoj, group: None, values, place };
            // The bridge has ended.
            let _ = told.send(Told::Written { number, failure, reading });
        });
        self.under_way.push(UnderWay { number, command, addr, task: task.abort_handle() });
    }

    /// A command was carried out at an address, or not.
    pub(super) fn written(&mut self, number: u64, failure: Option<WriteFailure>) {
        // Another one was sent instead of it.
        let Some(at) = self.under_way.iter().position(|other| other.number == number) else { return };
        let UnderWay { mut command, addr, .. } = self.under_way.swap_remove(at);
        match failure {
            Some(WriteFailure::Elsewhere(_)) if !command.is_turned && self.has_turned(&command.name, addr) => {
                command.is_turned = true;
                let name = command.name.clone();
                self.carry_out(command);
                // Its other commands need not find out the same.
                return self.carry_out_waiting(&name);
            }
            Some(WriteFailure::Elsewhere(_)) if Instant::now() < command.until => {
                self.search_missing();
                return self.wait_for_node(command);
            }
            // It may have been lost on the way to an address that the node has left.
            Some(WriteFailure::Unanswered(_))
                if Instant::now() < command.until
                    && self.certain_place(&command.name).is_none_or(|(at, _)| at != addr)
                    && self.writes_a_state(&command) =>
            {
                self.search_missing();
                return self.carry_out(command);
            }
            Some(WriteFailure::Elsewhere(why) | WriteFailure::Unanswered(why)) => {
                self.not_written(&command, "unanswered", &why);
            }
            Some(WriteFailure::Refused(why)) => self.not_written(&command, "refused", &why),
            None => self.tell_written(&command),
        }
        self.ask_soon(&command.name, SETTLED);
    }

    /// A node that is not at an address may have another one, or may have been found at another one since: true if so.
    fn has_turned(&mut self, name: &Name, addr: NodeAddr) -> bool {
        self.directory.use_next(name, addr) || self.certain_place(name).is_some_and(|(at, _)| at != addr)
    }

    /// Whether a command writes properties that can be read: a state, which can be written twice.
    fn writes_a_state(&self, command: &Command) -> bool {
        let thing = self.things.get(&(command.name.clone(), command.eoj));
        thing.is_some_and(|thing| command.writes.iter().all(|(epc, _)| thing.maps.readable.contains(*epc)))
    }

    /// The user sees what is true, even if it is what was true before.
    fn tell_written(&mut self, command: &Command) {
        let Some(thing) = self.things.get(&(command.name.clone(), command.eoj)) else { return };
        let topics: Vec<_> = command.writes.iter().flat_map(|(epc, _)| thing.topics(*epc)).collect();
        topics.into_iter().for_each(|(topic, payload)| self.broker.publish_anew(topic, payload));
    }

    /// The user sees the reason, as an event of the device, and the current value.
    fn not_written(&mut self, command: &Command, kind: &str, why: &str) {
        self.out.remark(format_args!("{} {}: not written: {why}", command.name, render::object(command.eoj)));
        if let Some(thing) = self.things.get(&(command.name.clone(), command.eoj)) {
            let [property, value] = &command.said;
            let event = json!({ "event_type": kind, "property": property, "value": value, "why": why });
            self.broker.tell_once(thing.trouble_topic(), event.to_string());
        }
        self.tell_written(command);
    }

    fn wait_for_node(&mut self, command: Command) {
        if self.waiting.len() < WAITING {
            self.waiting.push(command);
        } else {
            self.not_written(&command, "unanswered", "too many commands wait for nodes that are not found");
        }
    }

    /// Commands whose node was not found in time.
    pub(super) fn give_commands_up(&mut self) {
        let now = Instant::now();
        let late: Vec<_> = self.waiting.extract_if(.., |command| command.until <= now).collect();
        late.iter().for_each(|command| self.not_written(command, "unanswered", "the node is not found at any address"));
    }

    /// Carries out the commands that wait for a node that was found. Commands that were sent to an address that the
    /// node has no more are sent again if they write a state, as a state can be written twice. A property that cannot
    /// be read is no state, and its command ends as it ends.
    pub(super) fn carry_out_waiting(&mut self, name: &Name) {
        let mut found: Vec<_> = self.waiting.extract_if(.., |command| command.name == *name).collect();
        if let Some((addr, _)) = self.certain_place(name) {
            let under_way = std::mem::take(&mut self.under_way);
            let is_astray =
                |of: &UnderWay| of.command.name == *name && of.addr != addr && self.writes_a_state(&of.command);
            let (astray, others): (Vec<_>, Vec<_>) = under_way.into_iter().partition(is_astray);
            self.under_way = others;
            for UnderWay { command, task, .. } in astray {
                task.abort();
                found.push(command);
            }
        }
        found.into_iter().for_each(|command| self.carry_out(command));
    }
}

/// A number rounded to the steps of a property: a home in degrees Fahrenheit sets 22.2 °C. Anything else is as it was.
fn rounded(spec: &PropertySpec, payload: &str) -> String {
    let (Some(number), Ok(wanted)) = (spec.number(), payload.trim().parse::<f64>()) else { return payload.to_owned() };
    let steps = (wanted / 10_f64.powi(number.exponent.into())).round();
    if !wanted.is_finite() || steps.abs() > f64::from(i32::MAX) || !number.coefficients.is_empty() {
        return payload.to_owned();
    }
    Scaled { raw: steps as i64, exponent: number.exponent, unit: Unit::None }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class;

    #[test]
    fn numbers_are_rounded_to_steps() {
        let of = |class: &str, name: &str| class::by_name(class).unwrap().property_by_name(name).unwrap();
        let target = of("homeAirConditioner", "targetTemperature");
        for (payload, expected) in [
            ("22.2222", "22"),
            ("22.5", "23"),
            (" 25.0", "25"),
            ("-0.4", "0"),
            ("1e300", "1e300"),
            ("undefined", "undefined"),
            ("NaN", "NaN"),
        ] {
            assert_eq!(rounded(target, payload), expected, "{payload}");
        }
        assert_eq!(rounded(of("temperatureSensor", "value"), "22.2222"), "22.2");
        assert_eq!(rounded(of("generalLighting", "operationStatus"), "on"), "on");
    }
}

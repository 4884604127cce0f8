//! Commands: what users want devices to do.

use std::time::{Duration, Instant};

use echonet_lite::controller::{Failure as Ended, Request};
use echonet_lite::net::Error;
use echonet_lite::wire::Eoj;

use super::asking::{self, Reading, SETTLED, Told, WriteFailure};
use super::{Bridge, composite};
use crate::directory::Name;
use crate::render;

/// How long a command waits for a node that is not found at its address: it can be found at another one.
const FOUND: Duration = Duration::from_secs(5);
/// Commands that wait for nodes.
const WAITING: usize = 256;

/// What is to be written to an object.
pub(super) struct Command {
    name: Name,
    eoj: Eoj,
    writes: Vec<(u8, Vec<u8>)>,
    /// When it is given up if the node is not found.
    pub(super) until: Instant,
}

impl Bridge<'_> {
    /// Somebody wants a property to have a value.
    pub(super) fn command(&mut self, topic: &str, payload: &str) -> Result<(), String> {
        let place = topic.strip_suffix("/set").and_then(|topic| topic.rsplit_once('/'));
        let (base, property) = place.ok_or("no topic of a property")?;
        let (name, eoj) = self.topics.get(base).cloned().ok_or("there is no such object")?;
        let thing = self.things.get(&(name.clone(), eoj)).ok_or("there is no such object")?;
        let writes = match thing.class.property_by_name(property) {
            Some(spec) if thing.maps.writable.contains(spec.epc) => {
                let mut edt = [0; 255];
                let length = spec.parse(payload, &mut edt).map_err(|error| error.to_string())?;
                vec![(spec.epc, edt[..length].to_vec())]
            }
            Some(_) => return Err("it cannot be written".to_owned()),
            None if property == composite::MODE => composite::mode_writes(payload).ok_or("there is no such mode")?,
            None => return Err("there is no such property".to_owned()),
        };
        self.carry_out(Command { name, eoj, writes, until: Instant::now() + FOUND });
        Ok(())
    }

    /// Writes to the node that a command is for, where it is now; if that is not known, when it has been found.
    fn carry_out(&mut self, command: Command) {
        let Some((addr, id)) = self.certain_place(&command.name) else { return self.wait_for_node(command) };
        let Some(thing) = self.things.get(&(command.name.clone(), command.eoj)) else { return };
        let batches = asking::batches(&thing.quirks, &command.writes, thing.maps.readable);
        let (endpoint, told, place) = (self.endpoint.clone(), self.told.clone(), (addr, self.directory.doubts(addr)));
        tokio::spawn(async move {
            let lent: Vec<_> = command.writes.iter().map(|(epc, edt)| (*epc, edt.as_slice())).collect();
            let request = Request::set(command.eoj, &lent).only_to(id);
            let failure = match endpoint.request(addr, &request).await {
                Ok(answer) if answer.is_ok() => None,
                Ok(_) => Some(WriteFailure::Other("the device refuses it".to_owned())),
                Err(error @ Error::Failed(Ended::OtherNode | Ended::NodeSilent { .. })) => {
                    Some(WriteFailure::Elsewhere(error.to_string()))
                }
                Err(error) => Some(WriteFailure::Other(error.to_string())),
            };
            let values = match failure {
                Some(WriteFailure::Elsewhere(_)) => Vec::new(),
                Some(WriteFailure::Other(_)) | None => asking::read(&endpoint, addr, command.eoj, batches).await,
            };
            let reading = Reading { name: command.name.clone(), eoj: command.eoj, group: None, values, place };
            // The bridge has ended.
            let _ = told.send(Told::Written { command, failure, reading });
        });
    }

    /// A command was carried out, or not.
    pub(super) fn written(&mut self, command: Command, failure: Option<WriteFailure>) {
        match failure {
            Some(WriteFailure::Elsewhere(_)) if Instant::now() < command.until => {
                self.search_missing();
                return self.wait_for_node(command);
            }
            Some(WriteFailure::Elsewhere(why) | WriteFailure::Other(why)) => self.not_written(&command, &why),
            None => self.tell_written(&command),
        }
        self.ask_soon(&command.name, SETTLED);
    }

    /// The user sees what is true, even if it is what was true before.
    fn tell_written(&mut self, command: &Command) {
        let Some(thing) = self.things.get(&(command.name.clone(), command.eoj)) else { return };
        let topics: Vec<_> = command.writes.iter().flat_map(|(epc, _)| thing.topics(*epc)).collect();
        topics.into_iter().for_each(|(topic, payload)| self.broker.publish_anew(topic, payload));
    }

    fn not_written(&mut self, command: &Command, why: &str) {
        self.out.remark(format_args!("{} {}: not written: {why}", command.name, render::object(command.eoj)));
        self.tell_written(command);
    }

    fn wait_for_node(&mut self, command: Command) {
        if self.waiting.len() < WAITING {
            self.waiting.push(command);
        } else {
            self.not_written(&command, "too many commands wait for nodes that are not found");
        }
    }

    /// Commands whose node was not found in time.
    pub(super) fn give_commands_up(&mut self) {
        let now = Instant::now();
        let late: Vec<_> = self.waiting.extract_if(.., |command| command.until <= now).collect();
        late.iter().for_each(|command| self.not_written(command, "the node is not found at any address"));
    }

    /// A node was found: what waits for it is carried out.
    pub(super) fn carry_out_waiting(&mut self, name: &Name) {
        let found: Vec<_> = self.waiting.extract_if(.., |command| command.name == *name).collect();
        found.into_iter().for_each(|command| self.carry_out(command));
    }
}

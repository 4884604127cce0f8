//! Replaying a transcript with one server.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::expect::fits;
use super::render::render;
use super::script::{Action, Script, Step, expand, words};
use super::wire::{Peer, Wire};
use crate::support::PATIENCE;
use crate::support::resp::{Value, parse, request};

/// Most failures of one file that are told: what follows the first ones is mostly their consequence.
const MAX_FAILURES: usize = 8;

/// How a file is replayed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mode {
    /// Everything up to the next place that needs an answer is sent at once.
    pub(crate) pipelined: bool,
    /// Version of the genuine server; none for ours.
    pub(crate) genuine: Option<[u32; 2]>,
    /// Take every reply, expect none.
    pub(crate) recording: bool,
}

/// The result of a replay.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The reply of each step that had one.
    pub(crate) replies: BTreeMap<usize, Value>,
    /// Steps with another reply than written: number of the line, and the text.
    pub(crate) failures: Vec<(usize, String)>,
}

/// Replays a transcript.
pub(crate) fn replay(script: &Script, peer: &mut dyn Peer, mode: Mode) -> Outcome {
    let clients = BTreeMap::new();
    let (began, learnt, outcome) = (Instant::now(), HashMap::new(), Outcome::default());
    let mut replay = Replay { peer, mode, began, clients, resp3: false, learnt, outcome };
    let mut at = 0;
    while at < script.steps.len() && replay.outcome.failures.len() < MAX_FAILURES {
        let batch = replay.batch(&script.steps[at..]);
        if let Err((line, reason)) = replay.run(&script.steps[at..at + batch], at) {
            replay.outcome.failures.push((line, reason));
            break;
        }
        at += batch;
    }
    replay.outcome
}

struct Replay<'p> {
    peer: &'p mut dyn Peer,
    mode: Mode,
    began: Instant,
    clients: BTreeMap<u8, Client>,
    resp3: bool,
    learnt: HashMap<String, String>,
    outcome: Outcome,
}

struct Client {
    wire: Box<dyn Wire>,
    input: Vec<u8>,
    /// Replies that came before they were asked for.
    early: VecDeque<Value>,
}

/// A message on its way to us.
enum Arrival {
    Reply(Value),
    Nothing,
    End,
}

impl Client {
    /// The next message, if it is here or comes within a moment.
    fn look(&mut self) -> Result<Arrival, String> {
        if let Some(value) = self.early.pop_front() {
            return Ok(Arrival::Reply(value));
        }
        loop {
            if let Some((value, len)) = parse(&self.input).map_err(|malformed| malformed.to_string())? {
                self.input.drain(..len);
                return Ok(Arrival::Reply(value));
            }
            match self.wire.receive() {
                None => return Ok(Arrival::Nothing),
                Some(bytes) if bytes.is_empty() => return Ok(Arrival::End),
                Some(bytes) => self.input.extend_from_slice(&bytes),
            }
        }
    }

    fn reply(&mut self) -> Result<Value, String> {
        let start = Instant::now();
        loop {
            match self.look()? {
                Arrival::Reply(value) => return Ok(value),
                Arrival::End => return Err("the server has closed the connection".into()),
                Arrival::Nothing if start.elapsed() > PATIENCE => return Err("no reply comes".into()),
                Arrival::Nothing => {}
            }
        }
    }
}

type Failed = (usize, String);

impl Replay<'_> {
    /// How many of these steps are sent at once: one, but for pipelines.
    fn batch(&self, steps: &[Step]) -> usize {
        let joins = |step: &&Step| {
            let knows_its_text = matches!(&step.action, Action::Command(text) if !text.contains("%{"));
            knows_its_text && step.client == steps[0].client && !step.rules.wait && self.is_asked(step)
        };
        if !self.mode.pipelined {
            return 1;
        }
        let run = steps.iter().take_while(joins).count();
        let until_one_blocks = steps[..run].iter().position(blocks).map_or(run, |at| at + 1);
        until_one_blocks.max(1)
    }

    fn is_asked(&self, step: &Step) -> bool {
        self.mode.genuine.is_none_or(|version| step.rules.since.is_none_or(|since| since <= version))
    }

    fn run(&mut self, steps: &[Step], first: usize) -> Result<(), Failed> {
        let step = &steps[0];
        let failed = |reason| (step.line, reason);
        match &step.action {
            Action::Resp3(on) => self.switch(*on).map_err(failed),
            Action::Close => self.close(step.client).map_err(failed),
            Action::Closed => self.closed(step.client).map_err(failed),
            Action::Receive => self.receive(step, first).map_err(failed),
            Action::Command(_) | Action::Raw(_) if !self.is_asked(step) => Ok(()),
            Action::Command(_) | Action::Raw(_) => self.send_all(steps, first),
        }
    }

    fn client(&mut self, number: u8) -> Result<&mut Client, String> {
        if !self.clients.contains_key(&number) {
            let mut client = Client { wire: self.peer.connect(), input: Vec::new(), early: VecDeque::new() };
            if self.resp3 {
                hello(&mut client, true)?;
            }
            self.clients.insert(number, client);
        }
        self.clients.get_mut(&number).ok_or_else(|| "just inserted".into())
    }

    fn switch(&mut self, resp3: bool) -> Result<(), String> {
        self.resp3 = resp3;
        self.clients.values_mut().try_for_each(|client| hello(client, resp3))
    }

    /// Ends a connection, and waits until the server has noticed: what comes next may depend on it.
    fn close(&mut self, number: u8) -> Result<(), String> {
        let connected = self.peer.connected();
        if self.clients.remove(&number).is_none() {
            return Err("this client is not connected".into());
        }
        let start = Instant::now();
        while self.peer.connected() >= connected {
            if start.elapsed() > PATIENCE {
                return Err("the server does not notice the end of the connection".into());
            }
        }
        Ok(())
    }

    fn closed(&mut self, number: u8) -> Result<(), String> {
        let Some(mut client) = self.clients.remove(&number) else { return Ok(()) };
        let start = Instant::now();
        loop {
            match client.look()? {
                Arrival::End => return Ok(()),
                Arrival::Reply(value) => return Err(format!("before the end came\n{}", render(&value).join("\n"))),
                Arrival::Nothing if start.elapsed() > PATIENCE => return Err("the connection is not closed".into()),
                Arrival::Nothing => {}
            }
        }
    }

    fn receive(&mut self, step: &Step, index: usize) -> Result<(), String> {
        if self.mode.recording {
            let blocked = self.blocked();
            return self.record(step, index, blocked);
        }
        let client = self.client(step.client)?;
        if step.expected.is_empty() && !step.rules.any {
            return match client.look()? {
                Arrival::Reply(value) => Err(format!("unexpected\n{}", render(&value).join("\n"))),
                Arrival::Nothing | Arrival::End => Ok(()),
            };
        }
        let value = client.reply()?;
        self.judge(step, index, value)
    }

    fn blocked(&mut self) -> i64 {
        self.peer.blocked()
    }

    fn send_all(&mut self, steps: &[Step], first: usize) -> Result<(), Failed> {
        let mut bytes = Vec::new();
        for step in steps {
            bytes.extend(self.bytes(step).map_err(|reason| (step.line, reason))?);
        }
        let may_block = self.mode.recording || steps.last().is_some_and(blocks);
        let blocked = if may_block { self.blocked() } else { 0 };
        let send = |this: &mut Self| {
            let _: () = this.client(steps[0].client)?.wire.send(&bytes);
            Ok(())
        };
        send(self).map_err(|reason: String| (steps[0].line, reason))?;
        for (index, step) in steps.iter().enumerate() {
            self.take(step, first + index, &bytes, blocked).map_err(|reason| (step.line, reason))?;
        }
        Ok(())
    }

    fn bytes(&self, step: &Step) -> Result<Vec<u8>, String> {
        let learnt = |name: &str| self.learnt.get(name).cloned();
        match &step.action {
            Action::Command(text) => Ok(request(&words(&expand(text, &learnt)?)?)),
            Action::Raw(text) => Ok(words(&expand(text, &learnt)?)?.concat()),
            _ => Err("this is nothing to be sent".into()),
        }
    }

    /// Takes the reply of a step that has been sent.
    fn take(&mut self, step: &Step, index: usize, request: &[u8], blocked: i64) -> Result<(), String> {
        if step.rules.silent {
            return Ok(());
        }
        if self.mode.recording && !step.rules.wait {
            return self.record(step, index, blocked);
        }
        if blocks(step) {
            return self.until_blocked(step, blocked);
        }
        let mut value = self.client(step.client)?.reply()?;
        let start = Instant::now();
        while step.rules.wait
            && start.elapsed() < PATIENCE
            && !fits(&value, &step.expected, &step.rules, Duration::ZERO)
        {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let client = self.client(step.client)?;
            client.wire.send(request);
            value = client.reply()?;
        }
        self.judge(step, index, value)
    }

    fn until_blocked(&mut self, step: &Step, before: i64) -> Result<(), String> {
        let start = Instant::now();
        while self.blocked() <= before {
            let client = self.client(step.client)?;
            if let Arrival::Reply(value) = client.look()? {
                if step.answered_later {
                    // A short timeout is over already.
                    client.early.push_back(value);
                    return Ok(());
                }
                return Err(format!("it was expected to wait, and replied\n{}", render(&value).join("\n")));
            }
            // Some servers do not count a client that CLIENT PAUSE holds back as blocked.
            if start.elapsed().as_millis() > 300 {
                break;
            }
        }
        Ok(())
    }

    /// Notes a reply, or that none comes.
    fn record(&mut self, step: &Step, index: usize, blocked: i64) -> Result<(), String> {
        let start = Instant::now();
        loop {
            if let Arrival::Reply(value) = self.client(step.client)?.look()? {
                if let Some(name) = &step.rules.name {
                    self.learnt.insert(name.clone(), value.text());
                }
                self.outcome.replies.insert(index, value);
                return Ok(());
            }
            if start.elapsed().as_millis() > 300 || self.blocked() > blocked {
                return Ok(());
            }
        }
    }

    fn judge(&mut self, step: &Step, index: usize, value: Value) -> Result<(), String> {
        if let Some(name) = &step.rules.name {
            self.learnt.insert(name.clone(), value.text());
        }
        let learnt = |name: &str| self.learnt.get(name).cloned();
        let expected: Result<Vec<_>, _> = step.expected.iter().map(|line| expand(line, &learnt)).collect();
        let expected = expected?;
        if !fits(&value, &expected, &step.rules, self.began.elapsed()) {
            let command = match &step.action {
                Action::Command(text) | Action::Raw(text) => text,
                _ => "message",
            };
            let expected = if step.rules.any { "anything but an error".into() } else { expected.join("\n") };
            let actual = render(&value).join("\n");
            self.outcome.failures.push((step.line, format!("{command}\nexpected:\n{expected}\ngot:\n{actual}")));
        }
        self.outcome.replies.insert(index, value);
        Ok(())
    }
}

/// Whether the step is a command that gets no reply yet.
fn blocks(step: &Step) -> bool {
    let sends = matches!(step.action, Action::Command(_) | Action::Raw(_));
    sends && step.expected.is_empty() && !step.rules.any && !step.rules.silent && step.rules.name.is_none()
}

fn hello(client: &mut Client, resp3: bool) -> Result<(), String> {
    client.wire.send(&request(&["HELLO", if resp3 { "3" } else { "2" }]));
    let value = client.reply()?;
    if value.is_error() { Err(render(&value).join("\n")) } else { Ok(()) }
}

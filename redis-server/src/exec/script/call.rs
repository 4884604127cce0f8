//! The server's side of a script's API: `redis.call` and the rest, without Lua.

use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::raw;
use super::shebang::ScriptFlags;
use super::status::Slow;
use crate::clients::acl;
use crate::clients::client::{Client, ReplyMode};
use crate::cluster::slot_of;
use crate::command::{Args, Flags, OwnedArgs};
use crate::config::{Level, settings};
use crate::exec::core::clock::Tick;
use crate::exec::core::{Call, Ctx, Ready, Worker, resolve};
use crate::exec::run::{admission, invoke, judge, panics, permission, tracking};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// How long the code of a library may run when it is loaded.
const LOAD_TIME: Duration = Duration::from_millis(500);

/// The kind of script that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// EVAL and its like.
    #[default]
    Eval,
    /// FCALL and its like.
    Function,
    /// The code of a library, which calls no commands.
    Load,
}

/// A script that runs.
pub(super) struct Running {
    worker: Worker,
    /// The client that runs it, while it runs; a stand-in otherwise.
    client: Client,
    /// The client's own choices.
    chosen: Chosen,
    pub(super) args: OwnedArgs,
    reply: Reply,
    /// The reply in one piece, where it holds shared values.
    flat: Vec<u8>,
    ready: Vec<Ready>,
    kind: Kind,
    read_only: bool,
    allow_oom: bool,
    is_dirty: bool,
    is_slow: bool,
    has_read: bool,
    /// The slot of the keys so far, where this is a node of a cluster.
    slot: Option<u16>,
    /// Whether its commands may have keys of different slots.
    crosses_slots: bool,
    began: Tick,
    name: String,
    command: OwnedArgs,
}

/// A client's choices that do not hold for the commands of its script, and which they must not change.
#[derive(Clone, Copy, Debug, Default)]
struct Chosen {
    db: usize,
    resp3: bool,
    reply_mode: ReplyMode,
}

thread_local! {
    /// The script of this thread.
    static CURRENT: RefCell<Option<Box<Running>>> = const { RefCell::new(None) };
}

/// Why a call of the API is refused, before any command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// No script runs: a library is being loaded.
    NoScript,
    /// No argument.
    Nothing,
    /// An argument that is neither string nor number.
    Type,
    /// Arguments that are too long together.
    TooLong,
}

/// The outcome of a command.
#[derive(Clone, Debug)]
pub(super) enum Ran {
    /// The reply is in RESP, with its errors.
    Replied,
    /// It was not run; the text is an error's, code first.
    Refused(String),
    /// The script must end: it was killed.
    Killed,
}

/// Makes `running` the script of this thread.
pub(super) fn enter(running: Box<Running>) {
    CURRENT.set(Some(running));
}

/// Ends the script of this thread.
pub(super) fn leave() -> Option<Box<Running>> {
    CURRENT.take()
}

/// Calls `work` with the script of this thread, if there is one. `work` must not call Lua.
pub(super) fn with<R>(work: impl FnOnce(Option<&mut Running>) -> R) -> R {
    CURRENT.with_borrow_mut(|running| work(running.as_deref_mut()))
}

/// Whether a script runs that may call commands.
pub(super) fn is_script() -> bool {
    with(|running| running.is_some_and(|running| running.kind != Kind::Load))
}

/// The result of the hook, every so many instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// It goes on.
    GoOn,
    /// It must end, with this error.
    End(&'static str),
}

const KILLED: Interrupt = Interrupt::End("ERR Script killed by user with SCRIPT KILL...");

/// Looks whether the script of this thread takes too long; if it does, others have their turn.
pub(super) fn interrupt() -> Interrupt {
    let (interrupt, deputy) = with(|running| running.map_or((Interrupt::GoOn, None), Running::interrupt));
    if let Some(deputy) = deputy {
        raw::suspend(deputy);
        if with(|running| running.is_some_and(|running| running.is_killed())) {
            return with(|running| running.map_or(KILLED, |running| running.killed()));
        }
    }
    interrupt
}

impl Running {
    /// A place for scripts of a worker.
    pub(super) fn new(worker: &Worker) -> Self {
        Self {
            worker: worker.alone(),
            client: worker.unconnected_client(),
            chosen: Chosen::default(),
            args: OwnedArgs::default(),
            reply: Reply::default(),
            flat: Vec::new(),
            ready: Vec::new(),
            kind: Kind::Eval,
            read_only: false,
            allow_oom: false,
            is_dirty: false,
            is_slow: false,
            has_read: false,
            slot: None,
            crosses_slots: false,
            began: Tick::now(),
            name: String::new(),
            command: OwnedArgs::default(),
        }
    }

    /// The kept object for a script's commands, or a new one.
    pub(super) fn take(worker: &Worker) -> Box<Self> {
        let kept =
            worker.script.borrow_mut().take().map(|kept| kept.downcast().expect("`store` alone puts something there"));
        kept.unwrap_or_else(|| Box::new(Self::new(worker)))
    }

    /// Keeps it for the next script.
    pub(super) fn store(worker: &Worker, running: Box<Self>) {
        *worker.script.borrow_mut() = Some(running);
    }

    /// A script begins for the client of `cx`, which is nobody until it ends.
    pub(super) fn begin(
        &mut self,
        cx: &mut Ctx<'_>,
        kind: Kind,
        name: &str,
        flags: Option<ScriptFlags>,
        read_only: bool,
    ) {
        self.worker.same_time_as(cx.worker);
        self.worker.goes_on.set(cx.worker.goes_on.get());
        mem::swap(&mut self.client, cx.client);
        let Client { db, resp3, reply_mode, .. } = &mut self.client;
        self.chosen = Chosen { db: *db, resp3: mem::take(resp3), reply_mode: mem::take(reply_mode) };
        self.kind = kind;
        self.read_only = read_only || flags.is_some_and(|flags| flags.has(ScriptFlags::NO_WRITES));
        self.allow_oom = flags.is_some_and(|flags| flags.has(ScriptFlags::ALLOW_OOM));
        (self.is_dirty, self.is_slow, self.has_read) = (false, false, false);
        (self.slot, self.crosses_slots) = (None, flags.is_none_or(|flags| flags.has(ScriptFlags::ALLOW_CROSS_SLOT)));
        self.began = cx.worker.ticked();
        self.name.clear();
        self.name.push_str(name);
        cx.instance.scripts.status.begin(kind == Kind::Function);
    }

    /// Remembers the command that runs the script, for FUNCTION STATS.
    pub(super) fn called_by(&mut self, args: Args<'_>) {
        self.command.copy_from(args);
        if self.worker.instance.cluster.is_enabled() {
            let row = resolve::find(&self.worker.instance, args);
            let first = row.and_then(|row| row.command.key_positions(args).first().map(|(at, _)| args.at(*at)));
            self.slot = first.map(slot_of);
        }
    }

    /// Puts the client back in its place, with what it has chosen.
    pub(super) fn give_back(&mut self, client: &mut Client) {
        mem::swap(&mut self.client, client);
        (client.db, client.resp3, client.reply_mode) = (self.chosen.db, self.chosen.resp3, self.chosen.reply_mode);
    }

    /// The script has ended: the client of `cx` is itself again. Whether a command has read is returned.
    pub(super) fn end(&mut self, cx: &mut Ctx<'_>) -> bool {
        self.give_back(cx.client);
        tracking::broadcast(&self.worker);
        cx.ready.append(&mut self.ready);
        if self.is_slow {
            self.worker.instance.scripts.status.end();
        }
        self.reply.clear();
        self.args.clear();
        self.flat = Vec::new();
        self.has_read
    }

    /// Whether the script reads replies in RESP3.
    pub(super) fn is_resp3(&self) -> bool {
        self.client.resp3
    }

    /// `redis.setresp`.
    pub(super) fn set_resp3(&mut self, resp3: bool) {
        self.client.resp3 = resp3;
    }

    /// The kind of script: EVAL, a function, a library that is loaded.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Which server's words it is told.
    pub(super) fn level(&self) -> Level {
        self.worker.instance.config.level()
    }

    /// Whether the script's caller may run a command; `None` if there is no such command.
    pub(super) fn may(&mut self, args: Args<'_>) -> Option<bool> {
        let instance = &self.worker.instance;
        let row = resolve::find(instance, args)?;
        Some(permission::may(instance, &mut self.client, row, args))
    }

    /// Keeps the text of an error until the next command.
    pub(super) fn keep(&mut self, error: String) -> &[u8] {
        self.flat = error.into_bytes();
        &self.flat
    }

    /// The reply of the last command, in RESP.
    pub(super) fn reply(&mut self) -> &[u8] {
        let (bytes, blobs) = self.reply.parts();
        if blobs.is_empty() {
            return bytes;
        }
        self.flat = self.reply.to_vec();
        &self.flat
    }

    fn is_killed(&self) -> bool {
        self.worker.instance.scripts.status.is_killed()
    }

    /// How a script ends that was killed; of a function Valkey names the command by which it is.
    fn killed(&self) -> Interrupt {
        if self.kind == Kind::Function && self.worker.instance.config.level().is_valkey() {
            return Interrupt::End("ERR Script killed by user with FUNCTION KILL.");
        }
        KILLED
    }

    /// The result of the hook. If the script is to be interrupted first, also a stand-in for its client meanwhile.
    fn interrupt(&mut self) -> (Interrupt, Option<Client>) {
        if self.is_killed() {
            return (self.killed(), None);
        }
        let elapsed = self.began.elapsed();
        if self.kind == Kind::Load {
            let late = elapsed > LOAD_TIME;
            return (if late { Interrupt::End("ERR FUNCTION LOAD timeout") } else { Interrupt::GoOn }, None);
        }
        let instance = &self.worker.instance;
        let limit = instance.config.uint(settings::BUSY_REPLY_THRESHOLD);
        if limit == 0 || elapsed.as_millis() < u128::from(limit) {
            return (Interrupt::GoOn, None);
        }
        if !self.is_slow {
            self.is_slow = true;
            let ms = elapsed.as_millis() as u64;
            let how = if self.kind == Kind::Function { "FUNCTION KILL" } else { "SCRIPT KILL" };
            tracing::warn!(script = self.name, ms, "slow script, it can be ended by {how}");
            let slow = Slow { name: self.name.clone(), command: self.command.clone(), began: self.began };
            instance.scripts.status.is_slow(slow);
            instance.exclusive.make_busy();
        }
        let deputy = || Client::new(Arc::clone(&self.client.shared), self.client.identity.clone());
        (Interrupt::GoOn, self.worker.goes_on.get().then(deputy))
    }

    /// Runs the command in [`Running::args`]; its reply is in [`Running::reply`].
    pub(super) fn call(&mut self) -> Ran {
        match catch_unwind(AssertUnwindSafe(|| self.try_call())) {
            Ok(Ok(ran)) => ran,
            Ok(Err(error)) => Ran::Refused(error.to_string()),
            // It is alone with the data, and cannot take back what it has done.
            Err(_) => panics::end_process(&self.worker, &self.client.shared),
        }
    }

    fn try_call(&mut self) -> Result<Ran, Error> {
        let args = mem::take(&mut self.args);
        let ran = self.call_with(args.args());
        self.args = args;
        ran
    }

    fn call_with(&mut self, args: Args<'_>) -> Result<Ran, Error> {
        let instance = &self.worker.instance;
        let level = instance.config.level();
        let row = resolve::resolve(instance, args).map_err(|error| match error {
            Error::WrongArity(_) if level.is_valkey() => {
                Error::Static("ERR Wrong number of args calling command from script")
            }
            Error::WrongArity(_) => Error::Static("ERR Wrong number of args calling Redis command from script"),
            _ if level.is_valkey() => Error::Static("ERR Unknown command called from script"),
            _ => Error::Static("ERR Unknown Redis command called from script"),
        });
        let flags = match row {
            Ok(row) => row.command.flags,
            Err(error) => {
                self.worker.refused(None, &error);
                return Err(error);
            }
        };
        let row = row?;
        let writes = flags.has(Flags::WRITE);
        // A command that would wait does not in a script. Redis 7.0 refuses it all the same.
        let is_refused = flags.has(Flags::NOSCRIPT) && !(flags.has(Flags::BLOCKING) && level.is_72());
        let refusal = if is_refused && !instance.scripts.allows_all() {
            let server = if level.is_valkey() { "Valkey" } else { "Redis" };
            Some(Error::Message(format!("ERR This {server} command is not allowed from script")))
        } else if let Err(denied) =
            permission::check(instance, &mut self.client, row, args, acl::Context::Lua, self.worker.now_ms())
        {
            Some(permission::script_error(instance, &self.client, denied, row))
        } else if self.read_only && (writes || flags.has(Flags::MAY_REPLICATE)) {
            Some(Error::Static("ERR Write commands are not allowed from read-only scripts."))
        } else if !flags.has(Flags::STALE) && instance.replication.is_stale(&instance.config) {
            Some(Error::Static("ERR Can not execute the command on a stale replica"))
        } else if writes && instance.replication.is_read_only(&instance.config) {
            Some(Error::READ_ONLY)
        } else if writes
            && !self.is_dirty
            && instance.replication.limits_writes(&instance.config)
            && instance.replication.refuses_writes(&instance.config, self.worker.now_ms())
        {
            Some(Error::TOO_FEW_REPLICAS)
        } else if self.client.out_of_memory && !self.allow_oom && !self.is_dirty && flags.has(Flags::DENYOOM) {
            Some(Error::OutOfMemory)
        } else {
            admission::disk_failure(instance).filter(|_| writes && !self.is_dirty)
        };
        if let Some(error) = refusal {
            self.worker.refused(Some(row), &error);
            return Err(error);
        }
        if instance.cluster.is_enabled() && !self.worker.loads {
            let call = Call { row, args };
            let judged = judge::judge_script_call(instance, &self.client, &call, self.slot, self.crosses_slots);
            self.slot = judged.inspect_err(|error| self.worker.refused(Some(row), error))?;
        }
        if writes && !self.is_dirty {
            if !instance.scripts.status.begin_write() {
                return Ok(Ran::Killed);
            }
            self.is_dirty = true;
        }
        self.has_read |= flags.has(Flags::READONLY);
        self.reply.clear();
        self.reply.set_resp3(self.client.resp3);
        let ready = invoke::run_among_others(&self.worker, &mut self.client, row, args, &mut self.reply);
        self.ready.extend(ready);
        Ok(Ran::Replied)
    }
}

/// Appends a number as an argument: by C's `%.17g`, which keeps every bit.
pub(super) fn push_number(args: &mut OwnedArgs, value: f64) {
    const EXACT: f64 = 1e17;
    if value.trunc() == value && value.abs() < EXACT && (value != 0.0 || value.is_sign_positive()) {
        return args.push(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    args.push(general(value).as_bytes());
}

/// A double by C's `%.17g`.
fn general(value: f64) -> String {
    const DIGITS: i32 = 17;
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return if value.is_sign_negative() { format!("-{name}") } else { name.to_owned() };
    }
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("this format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    if (-4..DIGITS).contains(&exponent) {
        return trim(&format!("{value:.*}", (DIGITS - 1 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_arguments() {
        let cases = [
            (3.0, "3"),
            (-0.0, "-0"),
            (0.1, "0.10000000000000001"),
            (1e20, "1e+20"),
            (-2.5, "-2.5"),
            (1e-5, "1.0000000000000001e-05"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (f64::INFINITY, "inf"),
        ];
        for (value, expected) in cases {
            let mut args = OwnedArgs::default();
            push_number(&mut args, value);
            assert_eq!(String::from_utf8_lossy(args.args().at(0)), expected);
        }
    }
}

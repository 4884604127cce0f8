//! The commands of indexes in a cluster: what other nodes do of each, and the commands that nodes send each other.
//!
//! A call that [gathers](crate::command::Command::gathers) runs twice on the node that a client asks. First [`gather`] has each node do its part, on
//! a thread that waits for them outside of the execution gate. Then the handler makes the answer of the parts.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::Keep;

use super::find::{self, Watch};
use super::gathered::changed;
use super::load::Loader;
use super::lookup;
use super::wire::{Reader, Writer};
use super::words::Words;
use super::{aggregate, catalog, hybrid, info, legacy, pipeline, profile, scope, spell};
use crate::clients::acl::Context;
use crate::clients::client::{Client, Part};
use crate::command::{Args, Flags, OwnedArgs, Result, Row};
use crate::exec::core::resolve::resolve;
use crate::exec::core::{Call, Ctx, Instance, RunHere, Worker};
use crate::exec::run::permission;
use crate::exec::run::slow::call::send;
use crate::exec::search::definitions;
use crate::exec::search::shards::{self, Share};
use crate::protocol::error::Error;
use crate::search::Words as Command;

/// How much longer than its own time a query waits for the parts of other nodes, in milliseconds.
const GRACE: u64 = 1000;

/// Has the nodes of the cluster do their parts of a call.
pub(in crate::commands) fn gather(
    worker: &Worker,
    client: &mut Client,
    call: &Call<'_>,
    run_here: &mut RunHere<'_>,
) -> Result<Vec<Vec<u8>>> {
    let instance = &worker.instance;
    let words: Vec<&[u8]> = call.args.iter().collect();
    match call.row.name().as_str() {
        "ft._sync" => definitions::compare(instance, run_here),
        "ft._propose" => {
            inner(instance, client, call.args.from(1), worker.now_ms())?;
            definitions::lead(instance, &words[1..], run_here)
        }
        "ft.config|set" => {
            shards::tell_all(instance, &[&[b"FT._SHARD".as_slice(), b"2"], words.as_slice()].concat(), run_here)
        }
        _ if call.row.command.flags.has(Flags::WRITE) => definitions::change(instance, &words, run_here),
        _ => {
            // The form of values depends on the protocol.
            let request = [&[b"FT._SHARD".as_slice(), b"3"], words.as_slice()].concat();
            if instance.config.level().is_valkey() && scope::is_local(&call.row.name(), call.args) {
                return shards::own(&request, run_here);
            }
            let default = instance.search.options.timeout_ms.load(Relaxed);
            let parts = shards::ask(instance, &request, time(call.args, default), run_here);
            parts.map_err(|error| unreachable(instance, error))
        }
    }
}

/// The error of a node that does not answer, in the words of valkey-search if it is imitated.
fn unreachable(instance: &Instance, error: Error) -> Error {
    let is_valkey = instance.config.level().is_valkey();
    match error {
        Error::Message(text) if is_valkey && text.starts_with(shards::UNREACHABLE) => {
            Error::Static("Unable to contact all cluster members")
        }
        error => error,
    }
}

/// The time that a query has to wait for indexes and then to run, and some more; `None` is without end.
fn time(args: Args<'_>, default: u64) -> Option<u64> {
    let given = (2..args.len().saturating_sub(1)).rev().find(|at| args.is(*at, "TIMEOUT"));
    let given = given.and_then(|at| args.int(at + 1).ok()).and_then(|ms| u64::try_from(ms).ok());
    let ms = given.unwrap_or(default);
    (ms > 0).then(|| ms.saturating_mul(2).saturating_add(GRACE))
}

/// Compares the definitions with those of other nodes, now and then.
pub(crate) fn look_around(worker: &Worker) {
    if definitions::is_due(&worker.instance)
        && let Some(row) = worker.instance.registry.lookup(b"FT._SYNC")
    {
        let args = [b"FT._SYNC".as_slice()].into_iter().collect::<OwnedArgs>();
        // The answer has no reader.
        drop(send(worker, &mut worker.unconnected_client(), Call { row, args: args.args() }));
    }
}

/// `FT._SYNC`: compares the definitions with those of other nodes.
pub(super) fn sync(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    changed(cx, args, |cx, _| {
        cx.reply.ok();
        Ok(())
    })
}

/// `FT._PROPOSE command …`: changes definitions as the leader of the cluster.
pub(super) fn propose(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    changed(cx, args, |_, _| Err(Error::Static("TRYAGAIN This node does not lead the cluster")))
}

/// The row of a call that stands inside of another one.
///
/// # Errors
/// The client must not run the call, or it has no parts.
fn inner(instance: &Instance, client: &mut Client, args: Args<'_>, now: u64) -> Result<&'static Row> {
    let row = resolve(instance, args)?;
    if !row.command.gathers || !row.command.accepts(args.len()) {
        return Err(Error::Static("ERR Such a command has no parts"));
    }
    // The user of a part was judged at the node that was asked.
    let is_judged = matches!(client.part, Part::Own);
    if !is_judged && permission::check(instance, client, row, args, Context::Toplevel, now).is_err() {
        let name = row.name();
        return Err(Error::Message(format!("NOPERM User has no permissions to run the '{name}' command")));
    }
    Ok(row)
}

/// [`inner`] of a handler's call. A file and a primary are not judged.
fn permitted(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<&'static Row> {
    let (instance, now) = (cx.instance(), cx.now());
    if cx.is_told_by_others() { resolve(instance, args) } else { inner(instance, cx.client, args, now) }
}

/// [`permitted`] of a call that changes definitions.
fn definition(cx: &mut Ctx<'_>, args: Args<'_>) -> Result<&'static Row> {
    let row = permitted(cx, args)?;
    let is_definition = row.command.flags.has(Flags::WRITE) && row.command.gathers && row.command.accepts(args.len());
    if is_definition { Ok(row) } else { Err(Error::Static("ERR Such a command defines nothing")) }
}

/// Runs a call inside of another one, which is this node's part.
fn run_own(cx: &mut Ctx<'_>, row: &Row, args: Args<'_>) -> Result {
    let part = std::mem::replace(&mut cx.client.part, Part::Own);
    let result = (cx.instance().handlers[usize::from(row.id)])(cx, args);
    cx.client.part = part;
    result
}

/// `FT._DEFINE APPLY from to command …`, `FT._DEFINE ALL catalog`, or `FT._DEFINE VERSION version`: definitions of the cluster.
pub(super) fn define(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let version = |at: usize| args.int(at).ok().and_then(|number| u64::try_from(number).ok()).ok_or(Error::Syntax);
    let is_told = cx.is_told_by_others();
    // A file is loaded by one thread, which may have locked shards.
    let instance = std::sync::Arc::clone(cx.instance());
    let _turn = (!is_told && !instance.search.is_restoring()).then(|| instance.search.defining());
    match () {
        () if args.is(1, "APPLY") && args.len() > 4 => {
            let (from, to) = (version(2)?, version(3)?);
            let known = cx.instance().search.version();
            if !is_told && known != from {
                return Err(Error::Message(format!("BEHIND The definitions of this node have the version {known}")));
            }
            let row = definition(cx, args.from(4))?;
            run_own(cx, row, args.from(4))?;
            cx.instance().search.set_version(to);
            cx.count_changes(1);
            if row.name().contains("drop") {
                // The journal has the removal of the index and of each document.
                cx.instead(&[b"FT._DEFINE", b"VERSION", args.at(3)]);
            }
            Ok(())
        }
        () if args.is(1, "ALL") && args.len() == 3 => {
            let mut reader = Reader::new(args.at(2));
            let newer = reader.number()?;
            let mut commands: Vec<Command> =
                reader.list(|reader| reader.list(|reader| Ok(Box::from(reader.text()?))))?;
            commands.retain(|words| words.len() > 1);
            if newer > cx.instance().search.version() || is_told {
                become_equal(cx, commands);
                cx.instance().search.set_version(newer);
                cx.verbatim(args);
                cx.count_changes(1);
            }
            cx.reply.ok();
            Ok(())
        }
        () if args.is(1, "VERSION") && args.len() == 3 => {
            cx.instance().search.set_version(version(2)?);
            cx.count_changes(1);
            cx.reply.ok();
            Ok(())
        }
        () => Err(Error::Syntax),
    }
}

/// Has the catalog become that of these commands. Indexes that are the same stay as they are.
fn become_equal(cx: &mut Ctx<'_>, wanted: Vec<Command>) {
    let is = |words: &Command, name: &[u8]| words[0].eq_ignore_ascii_case(name);
    let is_of_index =
        |words: &Command| ![&b"FT.ALIASADD"[..], b"FT.DICTADD", b"FT.SUGADD"].iter().any(|name| is(words, name));
    let (mut run, mut kept) = (Vec::<Command>::new(), Vec::new());
    for index in cx.instance().search.indexes() {
        let mut of_index = Vec::new();
        for words in wanted.iter().filter(|words| *words[1] == *index.name()) {
            of_index.extend(is_of_index(words).then(|| words.clone()));
        }
        let has = index.definition().commands.clone();
        if of_index.starts_with(&has) {
            run.extend_from_slice(&of_index[has.len()..]);
            kept.push(Box::<[u8]>::from(index.name()));
        } else {
            run.push(vec![
                Box::from(b"FT._DROPINDEXIFX".as_slice()),
                index.name().into(),
                Box::from(b"_FORCEKEEPDOCS".as_slice()),
            ]);
        }
        for alias in cx.instance().search.aliases(index.name()) {
            run.push(vec![Box::from(b"FT.ALIASDEL".as_slice()), alias]);
        }
    }
    for name in cx.instance().search.dictionary_names() {
        let words = cx.instance().search.dictionary(&name).map(|words| words.iter().cloned().collect::<Vec<_>>());
        run.push([vec![Box::from(b"FT.DICTDEL".as_slice()), name], words.unwrap_or_default()].concat());
    }
    cx.instance().search.with_suggestions(std::collections::BTreeMap::clear);
    let is_kept = |words: &&Command| {
        let is_of_index = is_of_index(words);
        !(is_of_index && kept.contains(&words[1]))
    };
    // Aliases go before the index that they name, and come behind it.
    run.sort_by_key(|words| !is(words, b"FT.ALIASDEL"));
    run.extend(wanted.iter().filter(is_kept).cloned());
    for words in run {
        let args: OwnedArgs = words.iter().map(|word| &**word).collect();
        let mark = cx.reply.mark();
        let made = definition(cx, args.args()).and_then(|row| run_own(cx, row, args.args()));
        if let Err(error) = made {
            tracing::warn!("a definition of the cluster: {error}");
        }
        cx.reply.truncate(mark);
    }
}

/// `FT._CATALOG VERSION` or `FT._CATALOG ALL`: the definitions of this node.
pub(super) fn catalog(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.is(1, "VERSION") {
        cx.reply.int(cx.instance().search.version() as i64);
        return Ok(());
    }
    if !args.is(1, "ALL") {
        return Err(Error::Syntax);
    }
    let instance = std::sync::Arc::clone(cx.instance());
    let _turn = instance.search.defining();
    let kept = instance.search.kept();
    let mut commands: Vec<Command> = Vec::new();
    kept.definitions(|words| commands.push(words.iter().map(|word| Box::from(*word)).collect()));
    let mut writer = Writer::default();
    writer.number(kept.version());
    writer.list(&commands, |writer, words| writer.list(words, |writer, word| writer.text(word)));
    cx.reply.bulk(&writer.0);
    Ok(())
}

/// `FT._SHARD protocol command …`: this node's part of a call.
pub(super) fn shard(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let is_resp3 = args.is(1, "3");
    let (own, share) = (args.from(2), Share::of(cx.instance()));
    let row = permitted(cx, own)?;
    let had_resp3 = cx.reply.is_resp3();
    let mut writer = Writer::default();
    let mark = cx.reply.mark();
    cx.reply.set_resp3(is_resp3);
    let result = part(cx, row, own, &share, &mut writer);
    cx.reply.truncate(mark);
    cx.reply.set_resp3(had_resp3);
    result?;
    let mut bytes = share.head(cx.instance());
    bytes.append(&mut writer.0);
    cx.reply.bulk(&bytes);
    Ok(())
}

fn part(cx: &mut Ctx<'_>, row: &Row, args: Args<'_>, share: &Share, writer: &mut Writer) -> Result {
    let has = |id: &[u8]| share.has(id);
    let keeps: Option<&Keep<'_>> = if share.has_foreign_keys { Some(&has) } else { None };
    match row.name().as_str() {
        "ft.search" => searched(cx, args, keeps, writer),
        "ft.aggregate" => {
            let index = lookup::found(cx, args)?;
            let request = pipeline::Request::parse(cx, args.at(2), Words::new(args, 3))?;
            writer.part(&aggregate::part(cx, &index, &request, Watch { profiler: None, keeps })?);
            Ok(())
        }
        "ft.hybrid" => {
            let index = lookup::found(cx, args)?;
            hybrid::part(cx, &index, Words::new(args, 2), keeps, writer)
        }
        "ft.tagvals" => catalog::tag_part(cx, args, writer),
        "ft.spellcheck" => spell::part(cx, args, writer),
        "ft.info" => info::part(cx, args, writer),
        "ft.profile" => profile::part(cx, args, keeps, writer),
        "ft.get" | "ft.mget" => legacy::part(cx, args, writer),
        _ => run_own(cx, row, args),
    }
}

/// The best hits of this node, as many as the answer may have.
fn searched(cx: &Ctx<'_>, args: Args<'_>, keeps: Option<&Keep<'_>>, writer: &mut Writer) -> Result {
    let index = lookup::found(cx, args)?;
    let mut request = find::Request::parse(cx, args.at(2), Words::new(args, 3))?;
    request.become_part(&index.engine())?;
    let deadline = lookup::current(cx, &request.common);
    let hits = find::run(cx, &index, &request, deadline, Watch { profiler: None, keeps })?;
    let definition = index.definition();
    let loader = Loader::new(cx, cx.instance(), &definition, request.common.dialect, deadline);
    writer.loaded(&loader.load(&index, &request, hits));
    Ok(())
}

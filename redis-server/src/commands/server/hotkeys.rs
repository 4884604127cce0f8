//! `HOTKEYS`: which keys cost most while somebody wants to know (<https://redis.io/docs/latest/commands/hotkeys/>).

use std::ops::RangeInclusive;

use super::flags::ANY_TIME;
use super::info::cpu_seconds;
use crate::cluster::SLOTS;
use crate::command::{Args, Flags, Result};
use crate::commands::definition::{Definition, container, sub};
use crate::commands::help::help;
use crate::exec::core::{Ctx, Instance};
use crate::observe::hotkeys::{COUNT, MAX_COUNT, NotNow, Report, Used, Wanted};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// The longest time after which it may be told to end, in seconds: some twelve days.
const MAX_DURATION: u64 = 1_000_000;
/// Of how many calls one may be looked at.
const MAX_SAMPLE: u64 = i32::MAX as u64;

/// `HOTKEYS START METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio] [SLOTS count slot [slot …]]`
fn start(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let wanted = wanted(cx, args)?;
    let instance = cx.instance();
    let used = used(instance);
    instance.observers.hot_keys.start(wanted, cx.now(), used).map_err(refusal)?;
    instance.observers.refresh(&instance.config);
    cx.reply.ok();
    Ok(())
}

/// The options of START.
fn wanted(cx: &Ctx<'_>, args: Args<'_>) -> Result<Wanted> {
    let mut metrics = None;
    let mut wanted =
        Wanted { cpu: false, net: false, count: COUNT as usize, duration_ms: None, sample: 1, slots: Vec::new() };
    let mut at = 2;
    while at < args.len() {
        let value = |within: RangeInclusive<u64>, text: &'static str| {
            let value = args.int(at + 1).ok().and_then(|value| u64::try_from(value).ok());
            value.filter(|value| within.contains(value)).ok_or(Error::Static(text))
        };
        let more = at + 1 < args.len();
        if more && args.is(at, "METRICS") && metrics.is_none() {
            let count = value(1..=2, "ERR METRICS count must be between 1 and 2")? as usize;
            (wanted.cpu, wanted.net) = named(args.from(at + 2), count)?;
            metrics = Some(count);
            at += count;
        } else if more && args.is(at, "COUNT") {
            wanted.count = value(1..=MAX_COUNT, "ERR COUNT must be between 1 and 64")? as usize;
        } else if more && args.is(at, "DURATION") {
            let seconds = value(0..=MAX_DURATION, "ERR DURATION must be between 0 and 1000000 seconds")?;
            wanted.duration_ms = Some(seconds * 1000).filter(|&ms| ms > 0);
        } else if more && args.is(at, "SAMPLE") {
            wanted.sample = value(1..=MAX_SAMPLE, "ERR SAMPLE ratio must be positive")?;
        } else if more && args.is(at, "SLOTS") {
            if !cx.instance().cluster.is_enabled() {
                return Err(Error::Static("ERR SLOTS parameter cannot be used in non-cluster mode"));
            }
            if !wanted.slots.is_empty() {
                return Err(Error::Static("ERR SLOTS parameter already specified"));
            }
            let count = value(1..=SLOTS as u64, "ERR SLOTS count must be between 1 and 16384")? as usize;
            wanted.slots = slots(args.from(at + 2), count)?;
            at += count;
        } else {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    metrics.map(|_| wanted).ok_or(Error::Static("ERR METRICS parameter is required"))
}

/// Whether the first `count` words name processor time, and bytes. Others are metrics of servers to come.
fn named(words: Args<'_>, count: usize) -> Result<(bool, bool)> {
    if words.len() < count {
        return Err(Error::Static("ERR METRICS count does not match number of metric types provided"));
    }
    let times = |name| (0..count).filter(|&at| words.is(at, name)).count();
    match (times("CPU"), times("NET")) {
        (2.., _) => Err(Error::Static("ERR METRICS CPU specified more than once")),
        (_, 2..) => Err(Error::Static("ERR METRICS NET specified more than once")),
        (0, 0) => Err(Error::Static("ERR METRICS no valid metrics passed: CPU and NET are known")),
        (cpu, net) => Ok((cpu > 0, net > 0)),
    }
}

/// The slots that the first `count` words are, ascending.
fn slots(words: Args<'_>, count: usize) -> Result<Vec<u16>> {
    if words.len() < count {
        return Err(Error::Static("ERR not enough slot numbers provided"));
    }
    let mut slots = Vec::with_capacity(count);
    for at in 0..count {
        let slot =
            words.int(at).ok().and_then(|slot| u16::try_from(slot).ok()).filter(|&slot| usize::from(slot) < SLOTS);
        slots.push(slot.ok_or(Error::Static("ERR Invalid or out of range slot"))?);
    }
    slots.sort_unstable();
    if slots.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::Static("ERR duplicate slot number"));
    }
    Ok(slots)
}

fn refusal(reason: NotNow) -> Error {
    Error::Static(match reason {
        NotNow::Active => "ERR hotkey tracking session already in progress",
        NotNow::Inactive => "ERR hotkey tracking session is not in progress",
    })
}

/// The CPU time and network traffic of the process so far.
fn used(instance: &Instance) -> Used {
    let [user, system, ..] = cpu_seconds().unwrap_or_default().map(|seconds| (seconds * 1000.0) as u64);
    let net_bytes = instance.stats.sum(|worker| worker.input.get() + worker.output.get());
    Used { user_ms: user, system_ms: system, net_bytes }
}

/// Ends what was to take only so long: to be called now and then. `now` in milliseconds of Unix time.
pub(crate) fn end_if_due(instance: &Instance, now: u64) {
    if instance.observers.hot_keys.end_if_due(now, || used(instance)) {
        instance.observers.refresh(&instance.config);
    }
}

/// HOTKEYS STOP
fn stop(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let instance = cx.instance();
    let used = used(instance);
    instance.observers.hot_keys.stop(cx.now(), used).map_err(refusal)?;
    instance.observers.refresh(&instance.config);
    cx.reply.ok();
    Ok(())
}

/// HOTKEYS RESET
fn reset(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let hot_keys = &cx.instance().observers.hot_keys;
    hot_keys
        .reset(cx.now())
        .map_err(|_| Error::Static("ERR hotkey tracking session in progress, stop tracking first"))?;
    cx.reply.ok();
    Ok(())
}

/// HOTKEYS GET
fn get(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let Some(report) = cx.instance().observers.hot_keys.report(cx.now(), used(cx.instance())) else {
        cx.reply.null();
        return Ok(());
    };
    // Of each node of a cluster there is one.
    cx.reply.array(1);
    show(cx.reply, &report);
    Ok(())
}

fn show(reply: &mut Reply, report: &Report) {
    let Wanted { cpu, net, sample, ref slots, .. } = report.wanted;
    let micros = |nanos: u64| nanos / 1000;
    let sums = [
        ("sampled-commands-selected-slots-us", !slots.is_empty() && sample > 1, micros(report.cpu.sampled)),
        ("all-commands-selected-slots-us", !slots.is_empty(), micros(report.cpu.selected)),
        ("all-commands-all-slots-us", true, micros(report.cpu.all)),
        ("net-bytes-sampled-commands-selected-slots", !slots.is_empty() && sample > 1, report.net.sampled),
        ("net-bytes-all-commands-selected-slots", !slots.is_empty(), report.net.selected),
        ("net-bytes-all-commands-all-slots", true, report.net.all),
        ("collection-start-time-unix-ms", true, report.began),
        ("collection-duration-ms", true, report.duration_ms),
        ("total-cpu-time-user-ms", cpu, report.used.user_ms),
        ("total-cpu-time-sys-ms", cpu, report.used.system_ms),
        ("total-net-bytes", net, report.used.net_bytes),
    ];
    let shown = sums.iter().filter(|(_, is_shown, _)| *is_shown);
    reply.map(3 + shown.clone().count() + usize::from(cpu) + usize::from(net));
    reply.bulk(b"tracking-active");
    reply.int(report.is_active.into());
    reply.bulk(b"sample-ratio");
    reply.int(sample as i64);
    reply.bulk(b"selected-slots");
    let ranges = ranges(slots);
    reply.array(ranges.len());
    for (first, last) in ranges {
        let ends = if first == last { &[first][..] } else { &[first, last] };
        reply.array(ends.len());
        ends.iter().for_each(|&slot| reply.int(slot.into()));
    }
    for (name, _, value) in shown {
        reply.bulk(name.as_bytes());
        reply.int(*value as i64);
    }
    let keys = [("by-cpu-time-us", cpu, &report.by_cpu, 1000), ("by-net-bytes", net, &report.by_net, 1)];
    for (name, _, keys, unit) in keys.iter().filter(|(_, is_shown, ..)| *is_shown) {
        reply.bulk(name.as_bytes());
        reply.array(keys.len() * 2);
        for (key, cost) in *keys {
            reply.bulk(key);
            reply.int((cost / unit) as i64);
        }
    }
}

/// Runs of slots; without any, all of them.
fn ranges(slots: &[u16]) -> Vec<(u16, u16)> {
    if slots.is_empty() {
        return vec![(0, SLOTS as u16 - 1)];
    }
    slots.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run[run.len() - 1])).collect()
}

/// HOTKEYS HELP
fn hotkeys_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(
        cx,
        "HOTKEYS",
        &[
            "START METRICS <count> [CPU] [NET] [COUNT <k>] [DURATION <seconds>] [SAMPLE <ratio>]",
            "      [SLOTS <count> <slot> [<slot> ...]]",
            "    Begin to find the keys that cost most processor time, or bytes from and to clients.",
            "STOP",
            "    End it, and keep what was found.",
            "GET",
            "    Return what was found.",
            "RESET",
            "    Forget what was found.",
        ],
    );
    Ok(())
}

const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT);
const ONE_NODE: &[&str] = &["request_policy:special", "response_policy:special"];

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = container("hotkeys", -2, &[
    sub("get",    2, get,          ADMIN,    &[]).tips(ONE_NODE),
    sub("help",   2, hotkeys_help, ANY_TIME, &[]),
    sub("reset",  2, reset,        ADMIN,    &[]).tips(ONE_NODE),
    sub("start", -2, start,        ADMIN,    &[]).tips(ONE_NODE),
    sub("stop",   2, stop,         ADMIN,    &[]).tips(ONE_NODE),
]);

//! `LATENCY`: events that took longer than `latency-monitor-threshold`, and how long commands take.

use super::flags::{ADMIN, ANY_TIME};
use super::info;
use crate::command::{Args, Result, Row};
use crate::commands::definition::{Definition, container, sub};
use crate::commands::help::help;
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::observe::Series;
use crate::protocol::error::{Error, shown};

/// Height of a graph, in lines.
const GRAPH_ROWS: usize = 4;
/// Most samples that a graph shows, one per column.
const GRAPH_COLUMNS: usize = 80;

/// LATENCY LATEST
fn latest(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let is_valkey = cx.config().level().is_valkey();
    let events = cx.instance().observers.events();
    cx.reply.array(events.len());
    for (event, series) in events {
        let (time, last) = series.samples.back().copied().unwrap_or_default();
        cx.reply.array(if is_valkey { 6 } else { 4 });
        cx.reply.bulk(event.as_bytes());
        cx.reply.int(time as i64);
        cx.reply.int(last as i64);
        cx.reply.int(series.max as i64);
        if is_valkey {
            cx.reply.int(series.sum as i64);
            cx.reply.int(series.count as i64);
        }
    }
    Ok(())
}

/// LATENCY HISTORY event
fn history(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let series = series(cx, args.at(2)).unwrap_or_default();
    cx.reply.array(series.samples.len());
    for (time, ms) in series.samples {
        cx.reply.array(2);
        cx.reply.int(time as i64);
        cx.reply.int(ms as i64);
    }
    Ok(())
}

fn series(cx: &Ctx<'_>, event: &[u8]) -> Option<Series> {
    cx.instance().observers.events().into_iter().find(|(name, _)| name.as_bytes() == event).map(|(_, series)| series)
}

/// `LATENCY RESET [event …]`
fn reset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let named = args.from(2);
    let wanted = |event: &str| named.is_empty() || named.iter().any(|name| name == event.as_bytes());
    let count = cx.instance().observers.reset_events(wanted);
    cx.reply.count(count);
    Ok(())
}

/// LATENCY GRAPH event
fn graph(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let event = shown(args.at(2)).into_owned();
    let Some(series) = series(cx, args.at(2)).filter(|series| !series.samples.is_empty()) else {
        return Err(Error::Message(format!("ERR No samples available for event '{event}'")));
    };
    let text = draw(&event, &series, cx.now() / 1000);
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// A bar per sample, and below it the sample's age, read downwards.
fn draw(event: &str, series: &Series, now: u64) -> String {
    let skipped = series.samples.len().saturating_sub(GRAPH_COLUMNS);
    let samples: Vec<(u64, u64)> = series.samples.iter().skip(skipped).copied().collect();
    let high = samples.iter().map(|(_, ms)| *ms).max().unwrap_or(0);
    let low = samples.iter().map(|(_, ms)| *ms).min().unwrap_or(0);
    let mut text = format!("{event} - high {high} ms, low {low} ms (all time high {} ms)\n", series.max);
    text.push_str(&"-".repeat(GRAPH_COLUMNS));
    text.push('\n');
    // Each line stands for two steps, drawn as `_` and `o`; full ones below as `|`.
    let steps = (GRAPH_ROWS * 2) as u64;
    let span = (high - low).max(1);
    for row in (0..GRAPH_ROWS as u64).rev() {
        for (_, ms) in &samples {
            let level = (ms - low) * (steps - 1) / span;
            text.push(match level.checked_sub(row * 2) {
                None => ' ',
                Some(0) => '_',
                Some(1) => 'o',
                Some(_) => '|',
            });
        }
        text.push('\n');
    }
    let ages: Vec<String> = samples.iter().map(|(time, _)| age(now.saturating_sub(*time))).collect();
    let height = ages.iter().map(String::len).max().unwrap_or(0);
    for line in 0..height {
        text.extend(ages.iter().map(|age| age.chars().nth(line).unwrap_or(' ')));
        text.push('\n');
    }
    text
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// LATENCY DOCTOR
fn doctor(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let config = cx.config();
    let events = cx.instance().observers.events();
    let text = if config.int(settings::LATENCY_MONITOR_THRESHOLD) == 0 {
        "Latency monitoring is off. Turn it on with CONFIG SET latency-monitor-threshold <milliseconds>.\n".to_owned()
    } else if events.is_empty() {
        "No latency spike was observed since the monitoring began or was reset.\n".to_owned()
    } else {
        let mut text = String::from("Latency spikes were observed:\n\n");
        for (number, (event, series)) in (1..).zip(&events) {
            text.push_str(&diagnosis(number, event, series));
        }
        text.push_str("\nSLOWLOG GET shows which commands were slow.\n");
        text
    };
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

fn diagnosis(number: usize, event: &str, series: &Series) -> String {
    let count = series.samples.len().max(1) as u64;
    let mean = series.samples.iter().map(|(_, ms)| ms).sum::<u64>() / count;
    let deviation = series.samples.iter().map(|(_, ms)| ms.abs_diff(mean)).sum::<u64>() / count;
    format!(
        "{number}. {event}: {count} latency spikes (average {mean}ms, mean deviation {deviation}ms). \
         Worst all time event {}ms.\n",
        series.max
    )
}

/// `LATENCY HISTOGRAM [command …]`
fn histogram(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let registry = cx.instance().registry;
    let rows: Vec<&'static Row> = match args.len() {
        2 => registry.rows().iter().collect(),
        // A command with subcommands stands for all of them.
        _ => args
            .from(2)
            .iter()
            .filter_map(|name| registry.lookup_full(name))
            .flat_map(|row| std::iter::once(row).chain(registry.subcommands(row)))
            .collect(),
    };
    let mark = cx.reply.mark();
    let mut count = 0;
    for row in rows {
        let durations = info::durations(cx.instance(), row);
        let calls: u64 = durations.iter().sum();
        if calls == 0 {
            continue;
        }
        count += 1;
        cx.reply.bulk(row.name().as_bytes());
        cx.reply.map(2);
        cx.reply.bulk(b"calls");
        cx.reply.int(calls as i64);
        cx.reply.bulk(b"histogram_usec");
        let buckets = durations.iter().enumerate().filter(|(_, count)| **count > 0);
        cx.reply.map(buckets.clone().count());
        let mut sum = 0;
        for (at, count) in buckets {
            sum += count;
            cx.reply.int(1 << at);
            cx.reply.int(sum as i64);
        }
    }
    cx.reply.map_at(mark, count);
    Ok(())
}

/// LATENCY HELP
fn latency_help(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    help(cx, "LATENCY", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
    "    If no commands are specified then all histograms are replied.",
];

const MERGED: &[&str] = &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = container("latency", -2, &[
    sub("doctor",     2, doctor,       ADMIN,    &[]).tips(MERGED),
    sub("graph",      3, graph,        ADMIN,    &[]).tips(MERGED),
    sub("help",       2, latency_help, ANY_TIME, &[]),
    sub("histogram", -2, histogram,    ADMIN,    &[]).tips(MERGED),
    sub("history",    3, history,      ADMIN,    &[]).tips(MERGED),
    sub("latest",     2, latest,       ADMIN,    &[]).tips(MERGED),
    sub("reset",     -2, reset,        ADMIN,    &[]).tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
]);

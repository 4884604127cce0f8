//! FT.CONFIG: the settings of queries.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use query_engine::MAX_WINDOW;

use crate::command::{Args, Result};
use crate::commands::help as help_of;
use crate::exec::Ctx;
use crate::protocol::error::Error;
use crate::search::Options;

/// A setting: its name, its place, its least and its greatest value.
type Setting = (&'static str, fn(&Options) -> &AtomicU64, u64, u64);

/// A number that stands for no limit.
const UNLIMITED: u64 = u64::MAX;

#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    ("MINPREFIX",           |options| &options.min_prefix,     1, 1024),
    ("MAXSEARCHRESULTS",    |options| &options.max_results,    0, MAX_WINDOW as u64),
    ("MAXAGGREGATERESULTS", |options| &options.max_rows,       0, UNLIMITED),
    ("MAXEXPANSIONS",       |options| &options.max_expansions, 1, 65_536),
    ("MAXPREFIXEXPANSIONS", |options| &options.max_expansions, 1, 65_536),
    ("TIMEOUT",             |options| &options.timeout_ms,     0, 1 << 40),
    ("ON_TIMEOUT",          |options| &options.fails_late,     0, 1),
    ("CURSOR_MAX_IDLE",     |options| &options.cursor_idle_ms, 1, 1 << 40),
    ("DEFAULT_DIALECT",     |options| &options.dialect,        1, 4),
];

/// The words for ON_TIMEOUT's values.
const LATE: [&str; 2] = ["return", "fail"];

fn shown(name: &str, value: u64) -> String {
    match name {
        "ON_TIMEOUT" => LATE[usize::from(value != 0)].to_owned(),
        _ if value == UNLIMITED => "unlimited".to_owned(),
        _ => value.to_string(),
    }
}

/// `FT.CONFIG GET option`
pub(super) fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = &cx.instance().search.options;
    let named: Vec<&Setting> = SETTINGS.iter().filter(|(name, ..)| args.is(2, "*") || args.is(2, name)).collect();
    let is_map = cx.reply.is_resp3();
    if is_map {
        cx.reply.map(named.len());
    } else {
        cx.reply.array(named.len());
    }
    for (name, place, ..) in named {
        if !is_map {
            cx.reply.array(2);
        }
        cx.reply.simple(name);
        cx.reply.bulk(shown(name, place(options).load(Relaxed)).as_bytes());
    }
    Ok(())
}

/// `FT.CONFIG SET option value`
pub(super) fn set(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let setting = SETTINGS.iter().find(|(name, ..)| args.is(2, name)).ok_or(Error::Static("Invalid option"))?;
    let (name, place, least, greatest) = *setting;
    let value = match () {
        () if name == "ON_TIMEOUT" => LATE.iter().position(|word| args.is(3, word)).map(|at| at as u64),
        () if greatest == UNLIMITED && args.is(3, "unlimited") => Some(UNLIMITED),
        () => args.int(3).ok().and_then(|value| {
            // −1 is no limit, as in RediSearch.
            if value == -1 && greatest == UNLIMITED { Some(UNLIMITED) } else { u64::try_from(value).ok() }
        }),
    };
    let value = value.filter(|value| (least..=greatest).contains(value)).ok_or_else(|| {
        let expected =
            if name == "ON_TIMEOUT" { "return or fail".to_owned() } else { format!("{least} to {greatest}") };
        Error::Message(format!("Invalid value for {name}: expected {expected}"))
    })?;
    place(&cx.instance().search.options).store(value, Relaxed);
    cx.reply.ok();
    Ok(())
}

/// `FT.CONFIG HELP option`
pub(super) fn help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help_of(
        cx,
        "FT.CONFIG",
        &["GET <option>", "    Return the value of an option.", "SET <option> <value>", "    Set it."],
    );
    Ok(())
}

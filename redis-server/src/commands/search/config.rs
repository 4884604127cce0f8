//! FT.CONFIG: the settings of queries.

use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::search::{SETTINGS, Setting};

/// The settings that an argument names: one, or all of them.
fn named(args: Args<'_>) -> Vec<&'static Setting> {
    if args.is(2, "*") { SETTINGS.iter().collect() } else { Setting::find(args.at(2)).into_iter().collect() }
}

/// `FT.CONFIG GET option`
pub(super) fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let named = named(args);
    let is_map = cx.reply.is_resp3();
    if is_map {
        cx.reply.map(named.len());
    } else {
        cx.reply.array(named.len());
    }
    for setting in named {
        if !is_map {
            cx.reply.array(2);
        }
        cx.reply.simple(setting.name);
        shown(cx, setting);
    }
    Ok(())
}

fn shown(cx: &mut Ctx<'_>, setting: &Setting) {
    match cx.instance().search.options.shown(setting) {
        Some(text) => cx.reply.bulk(text.as_bytes()),
        None => cx.reply.null(),
    }
}

/// `FT.CONFIG SET option value`
pub(super) fn set(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 4 {
        cx.reply.simple("EXCESSARGS");
        return Ok(());
    }
    let set = cx.instance().search.options.set(args.at(2), args.get(3));
    set.map_err(|error| Error::Message(error.to_string()))?;
    cx.reply.ok();
    Ok(())
}

/// `FT.CONFIG HELP option`
pub(super) fn help(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let named = named(args);
    let is_map = cx.reply.is_resp3();
    if is_map {
        cx.reply.map(named.len());
    } else {
        cx.reply.array(named.len());
    }
    for setting in named {
        if is_map {
            cx.reply.simple(setting.name);
            cx.reply.map(2);
        } else {
            cx.reply.array(5);
            cx.reply.simple(setting.name);
        }
        cx.reply.simple("Description");
        cx.reply.simple(setting.help);
        cx.reply.simple("Value");
        shown(cx, setting);
    }
    Ok(())
}

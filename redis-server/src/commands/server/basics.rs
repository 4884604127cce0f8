//! The small ones: time, role, MONITOR.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clients::client::flag;
use crate::command::{Args, Categories, Result};
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// ACL categories of what tells about the server's place among others.
pub(super) const ADMINISTRATIVE: Categories = Categories::ADMIN.and(Categories::DANGEROUS);

/// TIME
pub(super) fn time(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let mut now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if !cx.may_wait() && cx.config().level().is_72() {
        // In a transaction or a script time stands still.
        now = Duration::from_millis(cx.now());
    }
    cx.reply.array(2);
    cx.reply.bulk_int(now.as_secs() as i64);
    cx.reply.bulk_int(now.subsec_micros().into());
    Ok(())
}

/// `LOLWUT [VERSION version]: rust, spreading over a plate.`
pub(super) fn lolwut(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    const COLUMNS: usize = 48;
    const ROWS: usize = 8;
    let mut text = String::new();
    for row in 0..ROWS {
        for _ in 0..COLUMNS {
            let shades: Vec<char> = " .:*#".chars().collect();
            let most = (row * shades.len()).div_ceil(ROWS).max(1);
            text.push(shades[cx.random().below(most)]);
        }
        text.push('\n');
    }
    let level = cx.config().level();
    let (server, version) = match level.server() {
        ("valkey", version) if !cx.config().is_on(settings::EXTENDED_REDIS_COMPATIBILITY) => ("Valkey", version),
        _ => ("Redis", level.redis_version()),
    };
    let own = env!("CARGO_PKG_VERSION");
    text.push_str(&format!("\nIron does rust, slowly. {server} ver. {version} (redis-server {own})\n"));
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// MONITOR. As in Redis, a client that monitors already gets no reply.
pub(super) fn monitor(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    if !cx.may_wait() {
        return Err(Error::Static("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    let client = &cx.client.shared;
    if !client.has_flag(flag::MONITOR) {
        client.set_flag(flag::MONITOR, true);
        cx.instance().observers.add_monitor(cx.config(), client);
        cx.reply.ok();
    }
    Ok(())
}

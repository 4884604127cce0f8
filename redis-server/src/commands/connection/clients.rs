//! CLIENT LIST, INFO and KILL: the other connections.

use std::sync::Arc;

use super::filters::{Filters, IdRule};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::run::client_list::describe;
use crate::protocol::error::Error;

/// `CLIENT LIST [filter value [filter value …]]`
pub(super) fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let invalid = Error::Static("ERR Invalid client ID");
    let ids = IdRule { least: i64::MIN, error: invalid.clone(), behind: invalid };
    let filters = Filters::parse(cx, args, 2, &ids)?;
    let clients = match filters.only_ids() {
        Some(ids) => ids.iter().filter_map(|&id| cx.instance().client(u64::try_from(id).ok()?)).collect(),
        None => cx.instance().clients(),
    };
    let mut text = String::new();
    for client in clients.iter().filter(|client| filters.select(client, cx.now())) {
        let asks = Arc::ptr_eq(client, &cx.client.shared).then_some(args);
        if asks.is_none() || filters.skip_me != Some(true) {
            text.push_str(&describe(cx.instance(), client, cx.now(), asks));
        }
    }
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// CLIENT INFO
pub(super) fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let text = describe(cx.instance(), &cx.client.shared, cx.now(), Some(args));
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// `CLIENT KILL ip:port | filter value [filter value …]`
pub(super) fn kill(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let old_form = args.len() == 3;
    let too_small = Error::Static("ERR client-id should be greater than 0");
    let ids = IdRule { least: 1, error: too_small, behind: Error::Syntax };
    let filters = if old_form { Filters::of_addr(args.at(2)) } else { Filters::parse(cx, args, 2, &ids)? };
    let (mut killed, now) = (0, cx.now());
    for client in cx.instance().clients().iter().filter(|client| filters.select(client, now)) {
        if !Arc::ptr_eq(client, &cx.client.shared) {
            cx.instance().kill_client(client);
        } else if filters.skip_me == Some(false) {
            cx.client.end_with_reply();
        } else {
            continue;
        }
        killed += 1;
    }
    match (old_form, killed) {
        (true, 0) => return Err(Error::Static("ERR No such client")),
        (true, _) => cx.reply.ok(),
        (false, _) => cx.reply.int(killed),
    }
    Ok(())
}

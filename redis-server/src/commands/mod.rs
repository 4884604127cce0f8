//! What each command does: one file per family, ending in its table.

mod bitmap;
mod cluster;
mod connection;
mod databases;
mod function;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod limits;
mod list;
mod pubsub;
mod random;
pub mod registry;
mod scan;
mod script;
mod server;
mod set;
mod sort;
mod sorted_set;
mod store;
mod stream;
mod string;
mod transaction;
mod wait;

pub(crate) use connection::describe as describe_client;

use crate::clients::client::Client;
use crate::clients::tracking;
use crate::command::{Ctx, Family};
use crate::commands::registry::Row;
use crate::exec::instance::Instance;
use crate::protocol::error::Error;

/// Every family.
pub const FAMILIES: &[&Family] = &[
    &string::FAMILY,
    &bitmap::FAMILY,
    &generic::FAMILY,
    &databases::FAMILY,
    &hash::FAMILY,
    &list::FAMILY,
    &set::FAMILY,
    &sorted_set::FAMILY,
    &stream::FAMILY,
    &hyperloglog::FAMILY,
    &geo::FAMILY,
    &sort::FAMILY,
    &wait::FAMILY,
    &pubsub::FAMILY,
    &transaction::FAMILY,
    &script::FAMILY,
    &connection::FAMILY,
    &cluster::FAMILY,
    &server::FAMILY,
];

/// Undoes what a session has left behind, at its end or at RESET: the transaction and its watched keys, subscriptions.
pub fn leave(instance: &Instance, client: &mut Client) {
    transaction::discard_transaction(instance, client);
    pubsub::unsubscribe_all(instance, client);
    tracking::stop(instance, client);
    server::stop_monitoring(instance, client);
}

/// What a refused command does to the transaction that is being put together: it will fail, and a refused EXEC ends it
/// at once. Returns the error to be sent.
pub fn refused(instance: &Instance, client: &mut Client, row: Option<&Row>, error: Error) -> Error {
    if row.is_some_and(|row| row.command.name == "exec") {
        transaction::discard_transaction(instance, client);
        let text = error.to_string();
        let text = text.strip_prefix("ERR ").unwrap_or(&text);
        return Error::Message(format!("EXECABORT Transaction discarded because of: {text}"));
    }
    if let Some(multi) = &mut client.multi {
        multi.aborted = true;
    } else if let Some(tracking) = &mut client.tracking {
        // What CLIENT CACHING has said was about this command.
        tracking.caching = false;
    }
    error
}

/// Writes a HELP reply: how to call the command, its subcommands, and HELP itself.
fn help(cx: &mut Ctx<'_>, name: &str, lines: &[&str]) {
    cx.reply.array(lines.len() + 3);
    cx.reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| cx.reply.simple(line));
    cx.reply.simple("HELP");
    cx.reply.simple("    Prints this help.");
}

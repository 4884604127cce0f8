//! ACL checks, their errors, and the effect of changed users on connected clients.

use std::sync::Arc;

use crate::clients::acl::{self, Account, Asked, Change, Context, Denied, Entry, Identity, NameField, Place, Reason};
use crate::clients::client::{Client, ClientShared};
use crate::clients::pubsub::Kind;
use crate::command::{Args, Flags, Row};
use crate::config::settings;
use crate::exec::core::{Ctx, Instance, Worker, resolve};
use crate::exec::run::client_list;
use crate::protocol::error::{Error, shown};

/// Asks for a client that is not known to need no permission.
#[cold]
pub(crate) fn check_command(
    worker: &Worker,
    client: &mut Client,
    row: &'static Row,
    args: Args<'_>,
) -> Result<(), Error> {
    let instance = &*worker.instance;
    client.identity.refresh(&instance.acl);
    if client.identity.is_cleared(&instance.acl) {
        return Ok(());
    }
    if !client.identity.may_enter(&instance.acl) {
        // A user that is gone: the client goes too, if its connection has not been told yet.
        client.close |= client.identity.is_gone();
        return if row.command.flags.has(Flags::NO_AUTH) { Ok(()) } else { Err(Error::NoAuth) };
    }
    let context = if client.multi.is_some() { Context::Multi } else { Context::Toplevel };
    let checked = check(instance, client, row, args, context, worker.now_ms());
    checked.map_err(|denied| refusal(instance, client, denied, row))
}

/// Makes a client that has just come the user whom its certificate, in DER, names, if `tls-auth-clients-user` says so and that user
/// is on. `now` in milliseconds of Unix time.
pub fn identify(instance: &Instance, client: &mut Client, certificate: &[u8], now: u64) {
    let field = match instance.config.word(settings::TLS_AUTH_CLIENTS_USER) {
        "CN" => NameField::CommonName,
        "URI" => NameField::Uri,
        _ => return,
    };
    let names = acl::certificate_names(certificate, field);
    let enabled = |name: &Vec<u8>| instance.acl.account(name).filter(|account| account.user().is_enabled());
    if let Some(account) = names.iter().find_map(enabled) {
        client.become_user(Identity::new(&instance.acl, account, true));
        return;
    }
    // It stays what it is: the default user, who may have to authenticate.
    let Some(user) = names.into_iter().next_back() else { return };
    let line = client_list::describe(instance, &client.shared, now, None);
    let (reason, context) = (Reason::Certificate, Context::Toplevel);
    let entry = Entry { reason, context, object: Vec::new(), user, client: line, count: 1, time: now };
    instance.acl.log(entry, &instance.config);
}

/// Where a client's next call is made: in a transaction that is being put together, in the database that it has chosen so far.
pub fn place(instance: &Instance, client: &Client) -> Place {
    let chosen = client.multi.as_ref().and_then(|multi| multi.db);
    Place { db: chosen.unwrap_or(client.db), databases: instance.databases().len() }
}

/// Checks whether a client may run a call now, and logs a denial. `now` in milliseconds of Unix time.
///
/// # Errors
/// The part of the call that is denied.
pub fn check(
    instance: &Instance,
    client: &mut Client,
    row: &'static Row,
    args: Args<'_>,
    context: Context,
    now: u64,
) -> Result<(), Denied> {
    if client.identity.is_cleared(&instance.acl) {
        return Ok(());
    }
    client.identity.refresh(&instance.acl);
    let place = place(instance, client);
    let result = client.identity.user().allow(&Asked::new(row, args, place));
    if let Err(denied) = result {
        let (reason, object) = match denied {
            Denied::Command => (Reason::Command, row.name().into_bytes()),
            Denied::Database(0) => (Reason::Database, row.name().into_bytes()),
            Denied::Database(at) => (Reason::Database, args.at(at).to_vec()),
            Denied::Key(at) => (Reason::Key, args.at(at).to_vec()),
            Denied::Channel(at) => (Reason::Channel, args.at(at).to_vec()),
        };
        let user = client.identity.account().name().to_vec();
        let client = client_list::describe(instance, &client.shared, now, Some(args));
        let entry = Entry { reason, context, object, user, client, count: 1, time: now };
        instance.acl.log(entry, &instance.config);
    }
    result
}

/// Asks again when EXEC runs a call that was allowed when it was queued.
///
/// # Errors
/// The error for the client.
pub fn recheck(cx: &mut Ctx<'_>, row: &'static Row, args: Args<'_>) -> Result<(), Error> {
    let now = cx.now();
    check(cx.instance, cx.client, row, args, Context::Multi, now).map_err(|denied| {
        let reason = match denied {
            Denied::Command => "no permission to execute the command or subcommand",
            Denied::Key(_) => "no permission to touch the specified keys",
            Denied::Channel(_) => "no permission to access one of the channels used as arguments",
            Denied::Database(_) => "no permission to access one of the databases that the command uses",
        };
        Error::Message(format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command \
             is no longer allowed for the following reason: {reason}"
        ))
    })
}

/// The denial in the words of Redis 7.2 and later.
fn words_since_72(client: &Client, denied: Denied, row: &Row) -> String {
    match denied {
        Denied::Command => {
            let user = client.identity.account();
            format!("User {} has no permissions to run the '{}' command", shown(user.name()), row.name())
        }
        Denied::Key(_) => "No permissions to access a key".to_owned(),
        Denied::Channel(_) => "No permissions to access a channel".to_owned(),
        Denied::Database(_) => "No permissions to access database".to_owned(),
    }
}

/// The error for a client at top level.
fn refusal(instance: &Instance, client: &Client, denied: Denied, row: &Row) -> Error {
    if instance.config.level().is_72() {
        return Error::Message(format!("NOPERM {}", words_since_72(client, denied, row)));
    }
    match denied {
        Denied::Command => {
            Error::Message(format!("NOPERM this user has no permissions to run the '{}' command", row.name()))
        }
        Denied::Key(_) => {
            Error::Static("NOPERM this user has no permissions to access one of the keys used as arguments")
        }
        Denied::Channel(_) => {
            Error::Static("NOPERM this user has no permissions to access one of the channels used as arguments")
        }
        Denied::Database(_) => {
            Error::Static("NOPERM this user has no permissions to access one of the databases that the command uses")
        }
    }
}

/// Asks again for a call that has waited for its keys, when it is served.
///
/// # Errors
/// The error for the client.
pub fn serve(cx: &mut Ctx<'_>, row: &'static Row, args: Args<'_>) -> Result<(), Error> {
    let now = cx.now();
    let checked = check(cx.instance, cx.client, row, args, Context::Toplevel, now);
    checked.map_err(|denied| refusal(cx.instance, cx.client, denied, row))
}

/// Whether the client may read every key by this call.
pub fn reads_all_keys(cx: &Ctx<'_>, args: Args<'_>) -> bool {
    let identity = &cx.client.identity;
    if identity.is_cleared(&cx.instance.acl) {
        return true;
    }
    let row = resolve::resolve(cx.instance, args);
    let place = place(cx.instance, cx.client);
    row.is_ok_and(|row| identity.user().reads_all_keys(&Asked::new(row, args, place)))
}

/// Whether a client may run a call, without a word in the log: `redis.acl_check_cmd`.
pub fn may(instance: &Instance, client: &mut Client, row: &'static Row, args: Args<'_>) -> bool {
    client.identity.refresh(&instance.acl);
    let place = place(instance, client);
    client.identity.is_cleared(&instance.acl) || client.identity.user().allow(&Asked::new(row, args, place)).is_ok()
}

/// The error for a script.
pub fn script_error(instance: &Instance, client: &Client, denied: Denied, row: &Row) -> Error {
    if instance.config.level().is_72() {
        return Error::Message(format!("ERR ACL failure in script: {}", words_since_72(client, denied, row)));
    }
    Error::Static(match denied {
        Denied::Command => "ERR The user executing the script can't run this command or subcommand",
        Denied::Key(_) => {
            "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
        }
        Denied::Channel(_) => {
            "ERR The user executing the script can't access at least one of the channels mentioned in the command arguments"
        }
        Denied::Database(_) => {
            "ERR The user executing the script can't access one of the databases that the command uses"
        }
    })
}

/// Cuts off the clients of accounts that are gone; the one that asks when its reply is sent.
pub fn disconnect(instance: &Instance, me: &mut Client, gone: &[Arc<Account>]) {
    let is_theirs = |client: &Arc<ClientShared>| gone.iter().any(|account| client.acts_for(account));
    let clients = instance.clients().into_iter().filter(is_theirs);
    clients.for_each(|client| cut_off(instance, me, &client));
}

/// Cuts off subscribers of a user that has lost the right to what they have subscribed to.
pub fn withdraw(instance: &Instance, me: &mut Client, change: &Change) {
    let Change { account, after } = change;
    if after.uses_all_channels() {
        return;
    }
    for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
        let lost = |name: &[u8]| !after.may_listen(name, kind == Kind::Pattern);
        for client in instance.pubsub.subscribers_where(kind, lost) {
            if client.acts_for(account) {
                cut_off(instance, me, &client);
            }
        }
    }
}

fn cut_off(instance: &Instance, me: &mut Client, client: &Arc<ClientShared>) {
    if Arc::ptr_eq(client, &me.shared) {
        me.end_with_reply();
    } else {
        instance.kill_client(client);
    }
}

#[cfg(test)]
mod tests {
    use crate::clients::acl::{Asked, Place};
    use crate::command::OwnedArgs;
    use crate::commands::REGISTRY;

    /// Words that mean something to one command or another, numbers of keys among them.
    const WORDS: &[&str] = &[
        "0",
        "1",
        "2",
        "3",
        "-1",
        "a",
        "b",
        "STREAMS",
        "STORE",
        "STOREDIST",
        "GET",
        "BY",
        "KEYS",
        "LIMIT",
        "COUNT",
        "x*",
        ">",
    ];

    /// A handler can touch every key that is locked, so the check must cover each of them.
    #[test]
    fn every_key_that_is_locked_is_asked_for() {
        let mut seed = 7_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for row in REGISTRY.rows().iter().filter(|row| !row.command.keys.is_empty()) {
            for _ in 0..2000 {
                let mut words = vec![row.parent.map_or(row.command.name, |parent| parent.name)];
                words.extend(row.parent.map(|_| row.command.name));
                let least = usize::from(row.command.arity.unsigned_abs()).saturating_sub(words.len());
                let more = if row.command.arity < 0 { random(6) } else { 0 };
                words.extend((0..least + more).map(|_| WORDS[random(WORDS.len())]));
                let owned: OwnedArgs = words.iter().map(|word| word.as_bytes()).collect();
                let args = owned.args();
                let asked = Asked::new(row, args, Place { db: 0, databases: 1 });
                let is_channel = row.command.keys[0].usage.flags == "not_key";
                for (at, _) in row.command.key_positions(args).into_iter().filter(|_| !is_channel) {
                    let is_asked = asked.keys().iter().any(|(asked, _)| *asked == at);
                    assert!(is_asked, "{words:?}: argument {at} is not asked for");
                }
            }
        }
    }
}

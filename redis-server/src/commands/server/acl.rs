//! `ACL`: users and what they may do.

use ring::rand::{SecureRandom as _, SystemRandom};

use super::flags::{ADMIN, ANY_TIME};
use crate::clients::acl::{self, Asked, Denied, Logged, PasswordHash, Selector, Table};
use crate::command::{Args, Categories, Flags, Reach, Result, Role, Row};
use crate::commands::definition::{Definition, container, sub};
use crate::commands::help::help;
use crate::exec::core::{Ctx, resolve};
use crate::exec::run::permission;
use crate::protocol::error::{Error, c_string, shown};

/// Most bits that ACL GENPASS makes.
const MAX_BITS: usize = 4096;
/// Bits that it makes unless told otherwise.
const BITS: usize = 256;
/// Entries that ACL LOG shows unless told otherwise.
const LOG_ENTRIES: usize = 10;

/// ACL WHOAMI
fn whoami(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.reply.bulk(cx.client.identity.account().name());
    Ok(())
}

/// ACL LIST
fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let accounts = cx.instance().acl.accounts();
    cx.reply.array(accounts.len());
    let level = cx.config().level();
    accounts.iter().for_each(|account| cx.reply.bulk(&Table::line(account, level)));
    Ok(())
}

/// ACL USERS
fn users(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let accounts = cx.instance().acl.accounts();
    cx.reply.array(accounts.len());
    accounts.iter().for_each(|account| cx.reply.bulk(account.name()));
    Ok(())
}

/// ACL GETUSER username
fn getuser(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(account) = cx.instance().acl.account(args.at(2)) else {
        cx.reply.null();
        return Ok(());
    };
    let user = account.user();
    // At other levels it is told where it says something: Redis has no such field.
    let with_databases = cx.config().level().is_valkey() || user.is_kept_out_of_databases();
    cx.reply.map(6 + usize::from(with_databases));
    cx.reply.bulk(b"flags");
    let level = cx.config().level();
    cx.reply.set(user.flags(level).count());
    user.flags(level).for_each(|flag| cx.reply.bulk(flag.as_bytes()));
    cx.reply.bulk(b"passwords");
    cx.reply.array(user.passwords().len());
    user.passwords().iter().map(PasswordHash::to_string).for_each(|hash| cx.reply.bulk(hash.as_bytes()));
    let (root, selectors) = user.selectors();
    describe(cx, root, with_databases);
    cx.reply.bulk(b"selectors");
    cx.reply.array(selectors.len());
    for selector in selectors {
        cx.reply.map(3 + usize::from(with_databases));
        describe(cx, selector, with_databases);
    }
    Ok(())
}

fn describe(cx: &mut Ctx<'_>, selector: &Selector, with_databases: bool) {
    let parts = [("commands", selector.commands()), ("keys", selector.keys()), ("channels", selector.channels())];
    for (name, rules) in parts {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(&rules);
    }
    if with_databases {
        cx.reply.bulk(b"databases");
        cx.reply.bulk(selector.databases().as_bytes());
    }
}

/// `ACL SETUSER username [rule …]`
fn setuser(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let name = args.at(2);
    if acl::has_spaces(name) {
        return Err(Error::Static("ERR Usernames can't contain spaces or null characters"));
    }
    let rules: Vec<&[u8]> = args.from(3).iter().collect();
    let change = cx.instance().acl.change(name, &rules, cx.config());
    let change = change.map_err(|error| Error::Message(format!("ERR {error}")))?;
    permission::withdraw(cx.instance(), cx.client, &change);
    cx.reply.ok();
    Ok(())
}

/// `ACL DELUSER username [username …]`
fn deluser(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let gone = cx.instance().acl.remove(args.from(2).iter());
    let gone = gone.ok_or(Error::Static("ERR The 'default' user cannot be removed"))?;
    permission::disconnect(cx.instance(), cx.client, &gone);
    cx.reply.count(gone.len());
    Ok(())
}

/// `ACL CAT [category]`
fn cat(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let categories = Categories::NAMES;
    match (args.get(2), args.len()) {
        (None, _) => {
            cx.reply.array(categories.len());
            categories.iter().for_each(|(_, name)| cx.reply.bulk(&name.as_bytes()[1..]));
        }
        (Some(wanted), 3) => {
            let is_it = |(_, name): &&(Categories, &str)| name.as_bytes()[1..].eq_ignore_ascii_case(wanted);
            let Some((category, _)) = categories.iter().find(is_it) else {
                let name = shown(wanted);
                return Err(Error::Message(format!("ERR Unknown category '{name}'")));
            };
            let belongs = |row: &&Row| row.categories().0 & category.0 != 0;
            let mark = cx.reply.mark();
            let rows = cx.instance().registry.rows();
            let count = rows.iter().filter(belongs).map(|row| cx.reply.bulk(row.name().as_bytes())).count();
            cx.reply.array_at(mark, count);
        }
        (Some(_), _) => return Err(Error::subcommand_syntax(args)),
    }
    Ok(())
}

/// `ACL GENPASS [bits]`
fn genpass(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let bits = match args.len() {
        2 => BITS,
        3 => {
            let bits = usize::try_from(args.int(2)?).ok().filter(|bits| (1..=MAX_BITS).contains(bits));
            bits.ok_or_else(|| {
                Error::Message(format!(
                    "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to {MAX_BITS}"
                ))
            })?
        }
        _ => return Err(Error::subcommand_syntax(args)),
    };
    let digits = bits.div_ceil(4);
    let mut random = [0; MAX_BITS / 8];
    let failed = |_| Error::Static("ERR no random numbers to be had");
    SystemRandom::new().fill(&mut random).map_err(failed)?;
    let mut password: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    cx.reply.bulk(password.as_bytes());
    Ok(())
}

/// `ACL LOG [count | RESET]`
fn log(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let most = match args.get(2) {
        _ if args.len() > 3 => return Err(Error::subcommand_syntax(args)),
        None => LOG_ENTRIES,
        Some(_) if args.is(2, "reset") => {
            cx.instance().acl.lock_log().clear();
            cx.reply.ok();
            return Ok(());
        }
        Some(_) => usize::try_from(args.int(2)?).unwrap_or(0),
    };
    let entries = cx.instance().acl.lock_log().latest(most);
    let (now, is_72) = (cx.now(), cx.config().level().is_72());
    cx.reply.array(entries.len());
    for Logged { entry, id, created } in entries {
        cx.reply.map(if is_72 { 10 } else { 7 });
        cx.reply.bulk(b"count");
        cx.reply.int(entry.count as i64);
        let texts: [(&str, &[u8]); 4] = [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.context.name().as_bytes()),
            ("object", &entry.object),
            ("username", &entry.user),
        ];
        for (name, text) in texts {
            cx.reply.bulk(name.as_bytes());
            cx.reply.bulk(text);
        }
        cx.reply.bulk(b"age-seconds");
        cx.reply.double(now.saturating_sub(entry.time) as f64 / 1000.0);
        cx.reply.bulk(b"client-info");
        cx.reply.bulk(entry.client.trim_end().as_bytes());
        let since_72 =
            [("entry-id", id), ("timestamp-created", created), ("timestamp-last-updated", entry.time)].into_iter();
        for (name, number) in since_72.filter(|_| is_72) {
            cx.reply.bulk(name.as_bytes());
            cx.reply.int(number as i64);
        }
    }
    Ok(())
}

/// `ACL DRYRUN username command [arg …]`
fn dryrun(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let account = cx.instance().acl.account(args.at(2));
    let account = account.ok_or_else(|| Error::Message(format!("ERR User '{}' not found", shown(args.at(2)))))?;
    let call = args.from(3);
    let row = resolve::resolve(cx.instance(), call).map_err(|error| match error {
        Error::WrongArity(_) => error,
        _ => Error::Message(format!("ERR Command '{}' not found", shown(args.at(3)))),
    })?;
    let name = row.name();
    let who = if cx.config().level().is_72() { [b"User ", account.name()].concat() } else { b"This user".to_vec() };
    let denied = match account.user().allow(&Asked::new(row, call, permission::place(cx.instance(), cx.client))) {
        Ok(()) => {
            cx.reply.ok();
            return Ok(());
        }
        Err(Denied::Database(at)) => {
            let which = match at {
                0 if matches!(row.command.reach, Reach::All) => "all databases".to_owned(),
                0 => format!("database {}", cx.client.db),
                at => format!("database {}", shown(args.at(at + 3))),
            };
            cx.reply.bulk(&[&who, format!(" has no permissions to access {which}").as_bytes()].concat());
            return Ok(());
        }
        Err(Denied::Command) => ("run", name.as_bytes(), "command"),
        Err(Denied::Key(at)) => ("access", args.at(at + 3), "key"),
        Err(Denied::Channel(at)) => ("access", args.at(at + 3), "channel"),
    };
    let (verb, name, kind) = denied;
    // Bytes as they are, but for what follows a zero byte.
    let name = c_string(name);
    let begin = format!(" has no permissions to {verb} the '");
    cx.reply.bulk(&[&who, begin.as_bytes(), name, b"' ", kind.as_bytes()].concat());
    Ok(())
}

/// ACL LOAD
fn load(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let loaded = cx.instance().acl.load(cx.config());
    let (gone, changes) = loaded.map_err(|error| Error::Message(format!("ERR {error}")))?;
    permission::disconnect(cx.instance(), cx.client, &gone);
    changes.iter().for_each(|change| permission::withdraw(cx.instance(), cx.client, change));
    cx.reply.ok();
    Ok(())
}

/// ACL SAVE
fn save(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.instance().acl.save(cx.config()).map_err(|error| match error {
        acl::FileError::None => Error::Message(format!("ERR {error}")),
        error => {
            tracing::warn!("ACL SAVE: {error}");
            Error::Static(
                "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
            )
        }
    })?;
    cx.reply.ok();
    Ok(())
}

/// ACL HELP
fn acl_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(cx, "ACL", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries.",
    "SAVE",
    "    Save the current config to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
];

const OWN: Flags = ANY_TIME.and(Flags::NOSCRIPT);

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = container("acl", -2, &[
    sub("cat",     -2, cat,      OWN,      &[]),
    sub("deluser", -3, deluser,  ADMIN,    &[]).role(Role::Users),
    sub("dryrun",  -4, dryrun,   ADMIN,    &[]),
    sub("genpass", -2, genpass,  OWN,      &[]),
    sub("getuser",  3, getuser,  ADMIN,    &[]).role(Role::Users),
    sub("help",     2, acl_help, ANY_TIME, &[]),
    sub("list",     2, list,     ADMIN,    &[]),
    sub("load",     2, load,     ADMIN,    &[]),
    sub("log",     -2, log,      ADMIN,    &[]),
    sub("save",     2, save,     ADMIN,    &[]),
    sub("setuser", -3, setuser,  ADMIN,    &[]).role(Role::Users),
    sub("users",    2, users,    ADMIN,    &[]),
    sub("whoami",   2, whoami,   OWN,      &[]),
]);

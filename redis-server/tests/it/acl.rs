//! Users: what a change does to clients that are there, ways around a rule, and the file of users.

use std::fs;
use std::path::PathBuf;

use redis_server::clients::acl::Table;
use redis_server::commands::REGISTRY;
use redis_server::config::{Config, Launch};

use crate::support::resp::Value;
use crate::support::server::{Client, Server, until_blocked};
use crate::support::until;

const NO_COMMAND: &str = "NOPERM this user has no permissions to run";
const NO_KEY: &str = "NOPERM this user has no permissions to access one of the keys";
const NO_DATABASE: &str = "NOPERM this user has no permissions to access one of the databases";
const NO_CHANNEL: &str = "NOPERM this user has no permissions to access one of the channels";

/// A client that acts for a user who has just been made by these rules.
fn user(server: &Server, name: &str, rules: &str) -> Client {
    let mut admin = server.connect();
    assert_eq!(admin.ask(&format!("ACL SETUSER {name} reset on nopass {rules}")).text(), "OK", "{rules}");
    let mut client = server.connect();
    assert_eq!(client.ask(&format!("AUTH {name} x")).text(), "OK");
    client
}

/// Calls that a user's rules must deny, and the errors.
#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn there_is_no_way_around_a_rule() {
    let server = Server::start();
    let check = |rules: &str, lines: &[&str], refused: &str| {
        let mut client = user(&server, "mallory", rules);
        for line in lines {
            let said = client.ask(line).text();
            assert!(said.starts_with(refused), "{rules} / {line}: {said}");
        }
    };
    check("+@all -get", &["GET k", "get k", "GeT k"], NO_COMMAND);
    check("+@all -config", &["CONFIG GET x", "config get x", "CONFIG HELP"], NO_COMMAND);
    check("-@all +config|get", &["CONFIG SET maxmemory 0", "CONFIG REWRITE", "PING"], NO_COMMAND);
    check("-@all +select|0", &["SELECT 1", "SELECT 00", "PING"], NO_COMMAND);
    check(
        "+@all -@dangerous",
        &["FLUSHALL", "KEYS *", "ACL SETUSER mallory +@all", "SORT l", "DEBUG JMAP"],
        NO_COMMAND,
    );
    // Keys wherever they may stand.
    let elsewhere = [
        "GET b",
        "MGET a b",
        "MSET a 1 b 2",
        "DEL a b",
        "EXISTS a b",
        "COPY a b",
        "COPY b a",
        "RENAME b a",
        "RENAME a b",
        "SINTERSTORE b a a",
        "SINTERSTORE a a b",
        "SINTERCARD 2 a b",
        "LMPOP 2 a b LEFT",
        "BLMPOP 0 2 a b LEFT",
        "BLPOP a b 0",
        "BZMPOP 0 2 a b MIN",
        "ZUNION 2 a b",
        "ZUNIONSTORE b 1 a",
        "ZUNIONSTORE a 2 a b",
        "ZRANGESTORE b a 0 1",
        "LMOVE a b LEFT LEFT",
        "BLMOVE b a LEFT LEFT 0",
        "SMOVE a b x",
        "SORT b",
        "SORT a STORE b",
        "SORT a BY nosort STORE b",
        "SORT a LIMIT 0 1 STORE a STORE b",
        "BITOP AND a b a",
        "BITOP AND b a a",
        "PFMERGE a b",
        "PFCOUNT a b",
        "XREAD COUNT 1 STREAMS a b 0 0",
        "XREAD STREAMS b 0",
        "XREADGROUP GROUP g c STREAMS b >",
        "XGROUP CREATE b g $ MKSTREAM",
        "XINFO STREAM b",
        "GEOSEARCHSTORE b a FROMLONLAT 0 0 BYRADIUS 1 m",
        "GEORADIUS a 0 0 1 m STORE b",
        "GEORADIUS a 0 0 1 m STORE a STORE b",
        "GEORADIUS a 0 0 1 m STOREDIST b",
        "GEORADIUSBYMEMBER a x 1 m STORE b",
        "OBJECT ENCODING b",
        "MEMORY USAGE b",
        "LCS a b",
        "DUMP b",
        "RESTORE b 0 x",
        "WATCH b",
        "TOUCH b",
        "MOVE b 1",
        "SET a 1 GET b",
        "BITFIELD b GET u4 0",
    ];
    let (keyless, wrong) = ("ERR ", &["SET a 1 GET b"]);
    let others: Vec<&str> = elsewhere.into_iter().filter(|line| !wrong.contains(line)).collect();
    check("+@all ~a", &others, NO_KEY);
    // An argument that is no key needs no permission: the command itself refuses it.
    check("+@all ~a", wrong, keyless);
    // A key that may be read may not be written, and the other way round.
    check(
        "+@all %R~a",
        &["SET a 1", "DEL a", "SET a 1 GET", "GETDEL a", "GETEX a EX 1", "COPY a a", "EXPIRE a 1"],
        NO_KEY,
    );
    check("+@all %W~a", &["GET a", "SET a 1 GET", "GETDEL a", "INCR a", "COPY a a", "LPOP a", "DUMP a"], NO_KEY);
    // Two selectors do not add up.
    check("(+@all %R~a) (+@all %W~b)", &["COPY a b", "SINTERSTORE b a"], NO_KEY);
    check("(+get ~a) (+set ~b)", &["GET b", "SET a 1"], NO_KEY);
    // BY and GET name keys that nobody has declared.
    let denied = "ERR BY option of SORT denied";
    check("+@all ~a ~v*", &["SORT a BY v*", "SORT_RO a BY v*", "SORT a BY v* STORE a"], denied);
    check("+@all ~a (+sort ~a %W~*)", &["SORT a BY v*"], denied);
    check("+@all ~a", &["SORT a GET v*", "SORT a GET #"], "ERR GET option of SORT denied");
    check("+@all &a", &["PUBLISH b x", "SUBSCRIBE a b", "PSUBSCRIBE a*", "PSUBSCRIBE *", "SSUBSCRIBE b"], NO_CHANNEL);
    check("+@all &a*", &["PSUBSCRIBE a", "PSUBSCRIBE ab*", "PSUBSCRIBE *", "SPUBLISH b x"], NO_CHANNEL);
    // Where a client is when it comes it may have to leave before it can do anything with keys.
    let inside =
        ["GET a", "SET a 1", "MOVE a 1", "COPY a b DB 1", "KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "FLUSHDB"];
    check("+@all ~* db=1", &inside, NO_DATABASE);
    check("+@all ~* db=1", &["FCALL_RO f 0", "EVAL_RO x 0", "SORT a", "MIGRATE h 1 a 1 10", "WATCH a"], NO_DATABASE);
    let elsewhere = ["SELECT 1", "MOVE a 1", "COPY a b DB 1", "COPY a b DB 1 DB 0", "COPY a b REPLACE db 1"];
    check("+@all ~* db=0", &elsewhere, NO_DATABASE);
    check("+@all ~* db=0", &["SWAPDB 0 1", "SWAPDB 1 0", "FLUSHALL", "FLUSHALL ASYNC"], NO_DATABASE);
    check("+@all ~* resetdbs", &["GET a", "SELECT 0", "SWAPDB 0 0", "FLUSHALL"], NO_DATABASE);
    check("+@all ~* db=0 (+@all ~* db=1)", &["SWAPDB 0 1", "MOVE a 1", "FLUSHALL"], NO_DATABASE);
}

/// At a level that knows no rights by database, users are told as there, unless there is something to tell.
#[test]
fn databases_are_told_where_not_all_are_allowed() {
    let server = Server::start();
    let mut admin = server.connect();
    let mut told = |rules: &str| {
        assert_eq!(admin.ask(&format!("ACL SETUSER bob reset {rules}")).text(), "OK");
        let Value::Array(said) = admin.ask("ACL GETUSER bob") else { panic!("a user") };
        let at = said.iter().position(|field| field.text() == "databases");
        at.map(|at| said[at + 1].text())
    };
    assert_eq!(told(""), None);
    assert_eq!(told("db=3,1"), Some("db=1,3".to_owned()));
    assert_eq!(told("(+get db=1)"), Some("alldbs".to_owned()));
    assert_eq!(told("resetdbs"), Some(String::new()));
    assert_eq!(told("db=1 alldbs"), None);
}

#[test]
fn blocked_commands_fail_after_database_access_is_revoked() {
    let server = Server::start();
    let mut admin = server.connect();
    let mut client = user(&server, "bob", "+@all ~* db=1");
    assert_eq!(client.ask("SELECT 1").text(), "OK");
    client.send(&["BLPOP", "l", "0"]);
    until_blocked(&server.instance, 1);
    assert_eq!(admin.ask("ACL SETUSER bob db=0").text(), "OK");
    assert_eq!(admin.ask("SELECT 1").text(), "OK");
    assert_eq!(admin.ask("RPUSH l a").text(), "1");
    assert!(client.reply().text().starts_with(NO_DATABASE));
}

#[test]
fn blocked_commands_recheck_permissions_when_served() {
    let server = Server::start();
    let mut admin = server.connect();
    let mut client = user(&server, "bob", "+@all ~*");
    client.send(&["BLPOP", "l", "0"]);
    until_blocked(&server.instance, 1);
    assert_eq!(admin.ask("ACL SETUSER bob -blpop").text(), "OK");
    assert_eq!(admin.ask("RPUSH l a").text(), "1");
    assert!(client.reply().text().starts_with(NO_COMMAND));
    assert_eq!(admin.ask("LLEN l").text(), "1", "the element stays");
    // And is taken by one that still may.
    let mut other = user(&server, "anna", "+@all ~*");
    assert_eq!(other.ask("BLPOP l 0"), Value::Array(vec![Value::Bulk(b"l".into()), Value::Bulk(b"a".into())]));
}

#[test]
fn clients_of_a_user_that_goes_go_too() {
    let server = Server::start();
    let mut admin = server.connect();
    let mut clients: Vec<_> = (0..3).map(|_| user(&server, "bob", "+@all ~*")).collect();
    clients[1].send(&["BLPOP", "l", "0"]);
    until_blocked(&server.instance, 1);
    let mut bystander = user(&server, "anna", "+@all ~*");
    assert_eq!(admin.ask("ACL DELUSER bob").text(), "1");
    // A later user of the same name inherits nothing.
    assert_eq!(admin.ask("ACL SETUSER bob on nopass +@all ~*").text(), "OK");
    clients.iter_mut().for_each(|client| assert_eq!(client.until_closed(), ""));
    until("unblocked", || server.instance.blocked_clients(0) == 0);
    assert_eq!(bystander.ask("PING").text(), "PONG");
}

#[test]
fn a_change_holds_for_the_next_command_in_a_pipeline() {
    let server = Server::start();
    let mut client = user(&server, "bob", "+@all ~*");
    for words in [&["SET", "k", "v"][..], &["ACL", "SETUSER", "bob", "-get"], &["GET", "k"], &["SET", "k", "w"]] {
        client.send(words);
    }
    let said: Vec<String> = (0..4).map(|_| client.reply().text()).collect();
    assert_eq!((said[0].as_str(), said[1].as_str(), said[3].as_str()), ("OK", "OK", "OK"));
    assert!(said[2].starts_with(NO_COMMAND), "{}", said[2]);
}

/// A folder of its own with a file of users in it, and a configuration that names both.
fn with_file(name: &str, text: &str) -> (PathBuf, Vec<(String, String)>) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("acl-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("users.acl"), text).unwrap();
    let settings =
        vec![("dir".to_owned(), folder.display().to_string()), ("aclfile".to_owned(), "users.acl".to_owned())];
    (folder, settings)
}

fn start(settings: &[(String, String)]) -> Server {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Server::with(&settings)
}

#[test]
fn users_are_written_to_their_file_and_read_again() {
    const USERS: &str = "user alice on #ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad %R~a* resetchannels -@all +@read (~b resetchannels -@all +set)\n\
        user default on nopass ~* &* +@all\n";
    let (folder, settings) = with_file("again", USERS);
    let server = start(&settings);
    let mut admin = server.connect();
    let mut alice = server.connect();
    assert_eq!(alice.ask("AUTH alice abc").text(), "OK");
    assert_eq!(admin.ask("ACL SAVE").text(), "OK");
    assert_eq!(fs::read_to_string(folder.join("users.acl")).unwrap(), USERS);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");

    assert_eq!(admin.ask("ACL SETUSER bob on nopass").text(), "OK");
    assert_eq!(admin.ask("ACL LOAD").text(), "OK");
    assert_eq!(alice.until_closed(), "", "all users but the default one are made anew");
    assert_eq!(admin.ask("ACL GETUSER bob"), Value::NullBulk);
    assert_eq!(admin.ask("PING").text(), "PONG");

    // A file that is wrong changes nothing.
    fs::write(folder.join("users.acl"), "user alice on\n\nuser bob +nonesuch <p\nfoo\nuser alice\n").unwrap();
    let before = admin.ask("ACL LIST");
    assert_eq!(
        admin.ask("ACL LOAD").text(),
        "ERR users.acl:3: Unknown command or category name in ACL, in '+nonesuch'. \
         users.acl:4 should start with user keyword followed by the username. \
         WARNING: Duplicate user 'alice' found on line 5. \
         WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
    );
    assert_eq!(admin.ask("ACL LIST"), before);
    fs::remove_dir_all(&folder).unwrap();
    assert!(admin.ask("ACL LOAD").text().starts_with("ERR Error loading ACLs, opening file 'users.acl': No such file"));
    assert!(admin.ask("ACL SAVE").text().starts_with("ERR There was an error trying to save the ACLs."));
}

/// Since level 7.2 who is in the file stays, with what it says from now on, but for subscribers of what they may not listen to any more.
#[test]
fn a_reloaded_acl_file_ends_only_affected_subscribers() {
    let (folder, mut settings) =
        with_file("concerns", "user alice on nopass +@all ~* &*\nuser carol on nopass +@all &c*\n");
    settings.push(("compatibility".to_owned(), "7.2".to_owned()));
    let server = start(&settings);
    let mut admin = server.connect();
    assert_eq!(admin.ask("ACL SETUSER bob on nopass +@all").text(), "OK");
    let [mut alice, mut bob, mut carol, mut listener] = ["alice", "bob", "carol", "carol"].map(|name| {
        let mut client = server.connect();
        assert_eq!(client.ask(&format!("AUTH {name} x")).text(), "OK");
        client
    });
    listener.ask("SUBSCRIBE c1");
    carol.ask("SUBSCRIBE c2");
    fs::write(folder.join("users.acl"), "user alice on nopass -@all +acl|whoami\nuser carol on nopass +@all &c2\n")
        .unwrap();
    assert_eq!(admin.ask("ACL LOAD").text(), "OK");
    assert_eq!(alice.ask("ACL WHOAMI").text(), "alice");
    assert!(alice.ask("GET k").text().starts_with("NOPERM"));
    assert_eq!(bob.until_closed(), "");
    assert_eq!(listener.until_closed(), "");
    assert_eq!(admin.ask("PUBLISH c2 x"), Value::Int(1));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_default_user_in_the_file_locks_the_door() {
    let (folder, settings) = with_file("default", "user default off\nuser root on >pw +@all ~* &*\n");
    let server = start(&settings);
    let mut client = server.connect();
    assert_eq!(client.ask("PING").text(), "NOAUTH Authentication required.");
    assert_eq!(client.ask("AUTH root pw").text(), "OK");
    assert_eq!(client.ask("ACL WHOAMI").text(), "root");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn users_of_a_configuration_that_are_wrong_are_told_with_their_line() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("acl-conf-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let check = |text: &str, expected: &str| {
        let path = folder.join("redis.conf");
        fs::write(&path, text).unwrap();
        let (config, _) = Config::load(&Launch::from_file(&path), std::iter::empty()).unwrap();
        let error = Table::from_config(&config, REGISTRY).unwrap_err().to_string();
        let head = format!("*** FATAL CONFIG FILE ERROR ***\nReading {}, ", path.display());
        assert_eq!(error.strip_prefix(&head), Some(expected), "{error}");
    };
    check(
        "port 0\nuser bob on >secret +nonesuch\n",
        "at line 2\n>>> 'user bob (rules hidden)'\nError in ACL SETUSER modifier '+nonesuch': Unknown command or category name in ACL",
    );
    check(
        "user bob on\nuser bob off\n",
        "at line 2\n>>> 'user bob (rules hidden)'\nDuplicate user found. A user can only be defined once in config files",
    );
    check(
        "user bob (+get\n",
        "at line 1\n>>> 'user bob (rules hidden)'\nUnmatched parenthesis in acl selector starting at '(+get'.",
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn config_rewrite_keeps_the_users() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("acl-rewrite-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("redis.conf");
    fs::write(&path, format!("# ours\nuser bob on >x\ndir {}\nuser anna off\n", folder.display())).unwrap();
    let server = Server::configured(Config::load(&Launch::from_file(&path), std::iter::empty()).unwrap().0);
    let mut admin = server.connect();
    assert_eq!(admin.ask("ACL DELUSER anna").text(), "1");
    assert_eq!(admin.ask("ACL SETUSER bob resetpass ~a +get").text(), "OK");
    assert_eq!(admin.ask("ACL SETUSER default -flushall").text(), "OK");
    assert_eq!(admin.ask("CONFIG REWRITE").text(), "OK");
    let text = fs::read_to_string(&path).unwrap();
    let users: Vec<&str> = text.lines().filter(|line| line.starts_with("user ")).collect();
    let expected = ["user bob on ~a resetchannels -@all +get", "user default on nopass ~* &* +@all -flushall"];
    assert_eq!(users, expected);
    assert!(text.starts_with("# ours\nuser bob"), "{text}");
    drop(server);
    let server = Server::configured(Config::load(&Launch::from_file(&path), std::iter::empty()).unwrap().0);
    assert!(server.connect().ask("FLUSHALL").text().starts_with(NO_COMMAND));
    fs::remove_dir_all(folder).unwrap();
}

//! Tests of the configuration, as tables.

use std::ffi::OsString;
use std::path::Path;

use super::{Caller, Config, Flags, Id, Launch, Request, help, settings};

/// Runs the command line `words` with these environment variables.
fn start(words: &[&str], environment: &[(&str, &str)]) -> Result<(Config, Vec<String>), String> {
    let request = Request::parse(words.iter().map(OsString::from)).map_err(|error| error.to_string())?;
    let (Request::Serve(launch) | Request::CheckConfig(launch)) = request else { return Err("no start".to_owned()) };
    let environment = environment.iter().map(|(name, text)| (OsString::from(name), OsString::from(text)));
    let loaded = Config::load(&launch, environment);
    let (config, warnings) = loaded.map_err(|error| error.to_string())?;
    Ok((config, warnings.iter().map(ToString::to_string).collect()))
}

fn get(config: &Config, name: &str) -> String {
    let found = config.get(&[name]);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    String::from_utf8_lossy(&found[0].1).into_owned()
}

/// A file of this text, in a directory of its own that goes with it.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("config-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that stays behind in the temporary directory harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_default_is_a_value() {
    for id in Id::all() {
        let setting = id.setting();
        if !setting.default.is_empty() {
            let parsed = super::store::from_text(id, setting.default.as_bytes(), &super::value::empty(setting.kind));
            assert!(parsed.is_ok(), "{}: {parsed:?}", setting.name);
        }
    }
}

#[test]
fn the_distribution_s_file_is_accepted() {
    let path = Path::new("/etc/redis/redis.conf");
    // Its directory belongs to a user of its own, so `dir` may not be reachable: the test reads a copy without it.
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return println!("skipped: {}: {error}", path.display()),
    };
    let scratch = Scratch::new("debian");
    let text: String = text.lines().filter(|line| !line.starts_with("dir ")).map(|line| format!("{line}\n")).collect();
    let (config, warnings) = start(&[&scratch.write("redis.conf", &text)], &[]).unwrap();
    assert_eq!(get(&config, "bind"), "127.0.0.1 -::1");
    assert!(warnings.len() < 5, "{warnings:?}");
}

#[test]
fn flags_win_over_environment_over_file() {
    let scratch = Scratch::new("precedence");
    let file = scratch.write("a.conf", "port 1\nMaxClients 2\ntimeout 3\n");
    let environment = [("REDIS_MAXCLIENTS", "20"), ("REDIS_TIMEOUT", "30"), ("REDIS_URL", "x"), ("HOME", "/")];
    let (config, warnings) = start(&[&file, "--timeout", "300"], &environment).unwrap();
    assert_eq!([settings::PORT, settings::MAXCLIENTS, settings::TIMEOUT].map(|id| config.int(id)), [1, 20, 300]);
    assert_eq!(warnings, [""; 0]);
    let (config, _) = start(&[], &[("REDIS_BIND", "127.0.0.1 ::1"), ("REDIS_SERVER_CPULIST", "")]).unwrap();
    assert_eq!(get(&config, "bind"), "127.0.0.1 ::1");
}

#[test]
fn the_command_line_is_the_genuine_one() {
    #[track_caller]
    fn check(words: &[&str], name: &str, expected: &str) {
        let (config, _) = start(words, &[]).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert_eq!(get(&config, name), expected, "{words:?}");
    }
    check(&["--port", "7000", "--maxclients", "100"], "port", "7000");
    check(&["--bind", "127.0.0.1", "::1", "--port", "1"], "bind", "127.0.0.1 ::1");
    check(&["--save", "", "--port", "1"], "save", "");
    check(&["--save", "--port", "1"], "save", "");
    check(&["--save", "60", "1", "--save", "30", "2"], "save", "60 1 30 2");
    check(&["--save 60 1"], "save", "60 1");
    check(&["--save", "60 1 30 2"], "save", "60 1 30 2");
    check(&["--save", "", "--save", "60", "1"], "save", "60 1");
    check(&["--shutdown-on-sigint", "nosave now"], "shutdown-on-sigint", "nosave now");
    check(&["--maxmemory=1gb"], "maxmemory", "1073741824");
    check(&["--list-max-listpack-size", "-1"], "list-max-listpack-size", "-1");
    check(&["--hash-max-ziplist-entries", "9"], "hash-max-listpack-entries", "9");
    check(&["--shutdown-on-sigint", "nosave", "now"], "shutdown-on-sigint", "nosave now");
}

#[test]
fn a_directive_may_stand_behind_the_file() {
    let scratch = Scratch::new("behind");
    let file = scratch.write("a.conf", "save 900 1\nsave\n");
    let (config, _) = start(&[&file, "loglevel", "verbose", "--maxmemory '700mb'"], &[]).unwrap();
    assert_eq!([get(&config, "loglevel"), get(&config, "maxmemory")], ["verbose", "734003200"]);
    assert_eq!(get(&config, "save"), "900 1");
    let (config, _) = start(&[&scratch.write("b.conf", "save\n")], &[]).unwrap();
    assert_eq!(get(&config, "save"), "", "as in the genuine server");
}

#[test]
fn bad_configurations_are_explained() {
    #[track_caller]
    fn check(words: &[&str], expected: &[&str]) {
        let error = start(words, &[]).map(|_| ()).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{words:?}: no {part:?} in:\n{error}");
        }
    }
    check(&["--portt", "1"], &["the command line", "'portt \"1\"'", "did you mean 'port'?"]);
    check(&["--port", "abc"], &["integer", "not abc", "from 0 to 65535"]);
    check(&["--port"], &["'port'", "wrong number of arguments"]);
    check(&["--shutdown-on-sigint"], &["'shutdown-on-sigint'", "one of the following"]);
    check(&["--port", "1", "2"], &["wrong number of arguments", "not 1 2"]);
    check(&["missing.conf"], &["missing.conf", "No such file"]);
    check(&["--appendfsync", "foo"], &["everysec, always, no"]);
    check(&["--shards", "3"], &["power of two"]);
    let scratch = Scratch::new("bad");
    let file = |text: &str| scratch.write("bad.conf", text);
    check(&[&file("# fine\n\nmaxmemory 1x\n")], &["bad.conf, at line 3", ">>> 'maxmemory 1x'", "100mb"]);
    check(&[&file("logfile \"a\n")], &["Unbalanced quotes"]);
    check(&[&file("include bad.conf\n").replace("bad.conf", "circle.conf")], &["circle.conf"]);
    check(&[&file("include nothing.conf\n")], &["at line 1", "nothing.conf"]);
    check(&[&file("requirepass a b\n")], &["(hidden)"]);
}

#[test]
fn files_include_files() {
    let scratch = Scratch::new("include");
    scratch.write("1.part", "port 1\nmaxclients 7\n");
    scratch.write("2.part", "port 2\n");
    let parts = scratch.0.join("*.part");
    let file = scratch.write("all.conf", &format!("include {}\ninclude /nonexistent/*.conf\n", parts.display()));
    let (config, _) = start(&[&file], &[]).unwrap();
    assert_eq!([config.int(settings::PORT), config.int(settings::MAXCLIENTS)], [2, 7]);

    let circle = scratch.0.join("circle.conf");
    scratch.write("circle.conf", &format!("include {}\n", circle.display()));
    let error = start(&[circle.to_str().unwrap()], &[]).map(|_| ()).unwrap_err();
    assert!(error.contains("include each other"), "{error}");
}

#[test]
fn ignored_settings_cause_warnings() {
    let words = ["--activedefrag", "yes", "--rdbcompression", "yes", "--tls-key-file-pass", "secret"];
    let (_, warnings) = start(&words, &[("REDIS_MAXCLIENT", "1"), ("REDIS_PORT", "tcp://10.0.0.1:6379")]).unwrap();
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings[0].contains("REDIS_MAXCLIENTS"), "{warnings:?}");
    assert!(warnings[1].contains("another server"), "{warnings:?}");
    assert!(warnings[2].contains("activedefrag"), "{warnings:?}");
    assert!(!warnings[3].contains("secret"), "{warnings:?}");
    let (_, warnings) = start(&["--shards", "64", "--cluster-enabled", "yes"], &[]).unwrap();
    assert!(warnings[0].starts_with("'shards 64' has no effect with 'cluster-enabled yes'"), "{warnings:?}");
    for words in [["--shards", "0", "--cluster-enabled", "yes"], ["--shards", "64", "--cluster-enabled", "no"]] {
        assert_eq!(start(&words, &[]).unwrap().1, [""; 0], "{words:?}");
    }
}

#[test]
fn several_settings_change_together_or_not_at_all() {
    let config = Config::default();
    let error = config.set(&[("maxclients", "5"), ("timeout", "x")], Caller::Local).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer"
    );
    assert_eq!(config.int(settings::MAXCLIENTS), 10_000);

    let refuse = |_: &[Id]| Err((settings::PORT.id(), "Unable to listen on this port".to_owned()));
    assert!(config.set_and(&[("port", "5")], Caller::Local, refuse).is_err());
    assert_eq!(config.int(settings::PORT), 6379);

    let before = config.generation();
    assert_eq!(config.set(&[("maxclients", "10000")], Caller::Local), Ok(vec![]));
    assert_eq!(config.generation(), before);
    let changed = config.set(&[("save", "60 1"), ("timeout", "1")], Caller::Local).unwrap();
    assert_eq!(changed, [settings::TIMEOUT.id(), settings::SAVE.id()]);
    assert_eq!(config.generation(), before + 1);
}

#[test]
fn settings_are_found_by_patterns_once() {
    #[track_caller]
    fn check(patterns: &[&str], expected: &[&str]) {
        let names: Vec<&str> = Config::default().get(patterns).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, expected, "{patterns:?}");
    }
    check(&["port", "p?rt", "PORT", "por*"], &["port"]);
    check(&["*lave-prio*", "replica-priority"], &["replica-priority", "slave-priority"]);
    check(&["rename-command", "user", "include", "nothing", ""], &[]);
    check(&["*-max-ziplist-value"], &["hash-max-ziplist-value", "zset-max-ziplist-value"]);
    check(&["********************hz"], &["hz", "dynamic-hz"]);
}

#[test]
fn protected_settings_ask_for_permission() {
    #[track_caller]
    fn check(permission: &str, caller: Caller, allowed: bool) {
        let launch = Launch::from_flags(&["--enable-protected-configs", permission]).unwrap();
        let (config, _) = Config::load(&launch, []).unwrap();
        let set = config.set(&[("dbfilename", "other.rdb")], caller).map_err(|error| error.to_string());
        let refused = "CONFIG SET failed (possibly related to argument 'dbfilename') - can't set protected config";
        assert_eq!(set.map(|_| ()), if allowed { Ok(()) } else { Err(refused.to_owned()) });
    }
    check("no", Caller::Local, false);
    check("yes", Caller::Remote, true);
    check("local", Caller::Local, true);
    check("local", Caller::Remote, false);
}

#[test]
fn secrets_are_marked() {
    let secrets: Vec<_> = Id::all().map(Id::setting).filter(|row| row.flags.has(Flags::SENSITIVE)).collect();
    let named: Vec<_> = Id::all().map(Id::setting).filter(|row| row.name.ends_with("pass")).collect();
    assert!(named.iter().all(|row| row.flags.has(Flags::SENSITIVE)), "{named:?}");
    assert_eq!(secrets.len(), named.len() + 1, "and masterauth");
}

#[test]
fn rewriting_keeps_what_holds() {
    #[track_caller]
    fn check(before: &str, pairs: &[(&str, &str)], after: &str) {
        let scratch = Scratch::new("rewrite");
        let directory = scratch.0.canonicalize().unwrap();
        let directory = directory.to_str().unwrap();
        let file = scratch.write("redis.conf", &before.replace("DIR", directory));
        let (config, _) = start(&[&file], &[]).unwrap();
        config.set(pairs, Caller::Local).unwrap();
        config.rewrite(&[]).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, after.replace("DIR", directory));
        let (again, _) = start(&[&file], &[]).unwrap();
        assert_eq!(again.get(&["*"]), config.get(&["*"]));
        assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 1, "nothing else is left behind");
    }
    check("# mine\n\nDir DIR\nmaxmemory 1024mb", &[], "# mine\n\nDir DIR\nmaxmemory 1024mb\n");
    check("dir DIR\n# mine\nport 1\n# end", &[("port", "2")], "dir DIR\n# mine\nport 2\n# end\n");
    check(
        "dir DIR\nsave 1 1\n# mine\nsave 2 2\nslave-priority 5\n",
        &[("save", "3 3 4 4"), ("maxmemory", "3145728"), ("requirepass", "a \"b\"")],
        "dir DIR\nsave 3 3\nsave 4 4\n# mine\nslave-priority 5\n# Generated by CONFIG REWRITE\n\
         requirepass \"a \\\"b\\\"\"\nmaxmemory 3mb\n",
    );
    check("dir DIR\nsave 1 1\n", &[("save", "")], "dir DIR\nsave \"\"\n");
    check(
        "dir DIR\nrename-command A B\nclient-output-buffer-limit replica 1 2 3\n",
        &[("client-output-buffer-limit", "normal 1024 0 0"), ("bind", "::1 -127.0.0.1")],
        "dir DIR\nrename-command A B\nclient-output-buffer-limit normal 1kb 0 0\n\
         client-output-buffer-limit replica 1 2 3\nclient-output-buffer-limit pubsub 32mb 8mb 60\n\
         # Generated by CONFIG REWRITE\nbind ::1 -127.0.0.1\n",
    );
    assert_eq!(Config::default().rewrite(&[]).unwrap_err().to_string(), "The server is running without a config file");
}

#[test]
fn typed_values() {
    let config = Config::default();
    assert_eq!(config.save_points()[1], super::SavePoint { seconds: 300, changes: 100 });
    let slave = super::OutputLimit { hard: 256 << 20, soft: 64 << 20, soft_seconds: 60 };
    assert_eq!(config.output_limits()[1], slave);
    assert!(config.is_on(settings::PROTECTED_MODE));
    assert_eq!(config.string(settings::REQUIREPASS), None);
    assert_eq!(config.word(settings::MAXMEMORY_POLICY), "noeviction");
}

#[test]
fn help_knows_every_setting() {
    assert!(help::overview("gritstone-redis").contains("--maxclients"));
    assert!(help::overview("gritstone-redis").starts_with("Usage: gritstone-redis ["));
    assert!(help::page("maxmemory").unwrap().contains("REDIS_MAXMEMORY"));
    assert!(help::page("maxmemroy").unwrap_err().contains("did you mean 'maxmemory'"));
    assert!(
        matches!(Request::parse(["--help".into(), "port".into()]), Ok(Request::Help(Some(name))) if name == "port")
    );
}

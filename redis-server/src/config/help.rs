//! `--help`, made from the table.

use std::fmt::{self, Write as _};

use super::error::nearest;
use super::setting::{Flags, Group, Id, Kind, Setting};

/// The form of a value, for people.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("yes or no"),
            Self::Int { min, max: i64::MAX } => write!(f, "a whole number from {min}"),
            Self::Int { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Clamped { min, max } => write!(f, "a whole number, used within {min} and {max}"),
            Self::Memory { min: 0, .. } => f.write_str("bytes, like 100mb or 1gb"),
            Self::Memory { min, .. } => write!(f, "bytes, like 100mb or 1gb, at least {min}"),
            Self::MemoryOrPercent => f.write_str("bytes, like 100mb, or a percentage, like 5%"),
            Self::Octal { max } => write!(f, "octal permissions up to {max:o}, like 700"),
            Self::Enum(choices) => write!(f, "one of {}", choices.join(", ")),
            Self::FlagWords(table) => {
                write!(f, "any of {}", table.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", "))
            }
            Self::Events => f.write_str("letters out of Ag$lshzxeKEtmdn"),
            Self::Text => f.write_str("one text, in quotes if it has spaces"),
            Self::Title => f.write_str(
                "a text with {title}, {listen-addr}, {server-mode}, {port}, {tls-port}, {unixsocket}, {config-file}",
            ),
            Self::Hostname => f.write_str("letters, digits, hyphens and dots"),
            Self::FileName => f.write_str("the name of a file, without a directory"),
            Self::Directory => f.write_str("a directory that exists"),
            Self::Words { max, .. } => write!(f, "up to {max} words"),
            Self::Percentiles => f.write_str("numbers from 0 to 100"),
            Self::OomScores => f.write_str("three whole numbers from -2000 to 2000"),
            Self::SavePoints => f.write_str("pairs of seconds and changes, or \"\""),
            Self::OutputLimits => {
                f.write_str("a class (normal, replica, pubsub), a hard and a soft limit in bytes, and seconds")
            }
            Self::HostPort => f.write_str("a host and a port, or no one"),
            Self::Lines { min, max } if min == max => write!(f, "{min} argument(s)"),
            Self::Lines { min, .. } => write!(f, "at least {min} argument(s)"),
        }
    }
}

/// The program's name in [`USAGE`].
const PROGRAM: &str = "redis-server";

const USAGE: &str = "\
Usage: redis-server [/path/to/redis.conf] [--name value ...] ... [-]
       redis-server --check-config ...   load the configuration, report, and end
       redis-server --check FILE         read an RDB file, an append-only file or its manifest, say whether it is sound, and end
       redis-server --fix FILE [--yes]   cut off what is damaged at the end of an append-only file, and end
       redis-server --help [SETTING]     this page, or all about one setting
       redis-server --version

Examples:
  redis-server                                        defaults: port 6379, every core
  redis-server --port 7000 --maxmemory 1gb --maxmemory-policy allkeys-lru
  redis-server /etc/redis/redis.conf --bind 127.0.0.1 ::1 --requirepass secret
  echo 'maxclients 100' | redis-server -              '-' reads the configuration from standard input
  REDIS_PORT=7000 redis-server                        REDIS_<NAME>, dashes as underscores

A flag wins over the environment, the environment over the file.
";

/// All settings that do something, by group, with their defaults. `program` is the name by which this one was started.
pub fn overview(program: &str) -> String {
    let mut page = USAGE.replace(PROGRAM, program);
    for group in Group::ALL {
        let listed = |setting: &&Setting| {
            setting.group == group && !setting.flags.has(Flags::NO_EFFECT) && !setting.flags.has(Flags::HIDDEN)
        };
        let rows: Vec<_> = Id::all().map(Id::setting).filter(listed).collect();
        if rows.is_empty() {
            continue;
        }
        line(&mut page, format_args!("\n{}", group.title()));
        for setting in rows {
            let default = if setting.default.is_empty() || setting.default.len() > LONG_DEFAULT {
                String::new()
            } else {
                format!(" [{}]", setting.default)
            };
            line(&mut page, format_args!("  --{:<34} {}{default}", setting.name, setting.help));
        }
    }
    let inert = Id::all().filter(|id| id.setting().flags.has(Flags::NO_EFFECT)).count();
    line(
        &mut page,
        format_args!("\nAnother {inert} settings of Redis 7.2 are accepted without effect, with a warning."),
    );
    page
}

/// A default that is longer than this is shown on the setting's own page only.
const LONG_DEFAULT: usize = 34;

/// The page of one setting.
///
/// # Errors
/// If there is no setting of that name: the text to print.
pub fn page(name: &str) -> Result<String, String> {
    let Some(id) = Id::find(name.as_bytes()) else {
        let near = nearest(name).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
        return Err(format!("no setting is called '{name}'{near}"));
    };
    let setting = id.setting();
    let mut page = format!("{} - {}\n\n", setting.name, setting.help);
    let mut fact = |title: &str, text: &str| line(&mut page, format_args!("  {title:<10} {text}"));
    fact("value", &setting.kind.to_string());
    fact("default", if setting.default.is_empty() { "none" } else { setting.default });
    if !setting.alias.is_empty() {
        fact("also", setting.alias);
    }
    fact("changes", changes(setting.flags));
    if setting.is_readable() {
        let variable = setting.name.to_ascii_uppercase().replace('-', "_");
        fact("set by", &format!("redis.conf, --{}, REDIS_{variable}", setting.name));
    } else {
        fact("set by", &format!("redis.conf, --{}; may be given several times", setting.name));
    }
    if setting.flags.has(Flags::NO_EFFECT) {
        fact("note", "accepted for compatibility, without effect in this server");
    }
    Ok(page)
}

fn changes(flags: Flags) -> &'static str {
    if flags.has(Flags::IMMUTABLE) {
        "at start only"
    } else if flags.has(Flags::PROTECTED) {
        "at run time where enable-protected-configs allows it"
    } else {
        "at run time, by CONFIG SET"
    }
}

fn line(page: &mut String, text: fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("writing to a string cannot fail");
}

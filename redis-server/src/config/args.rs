//! The command line: `redis-server [/path/to/redis.conf] [--name value …] … [-]`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use bytes::Bytes;

use super::error::{ConfigError, Origin, Reason};
use super::load::Directive;
use super::parse;

/// A parsed command line.
#[derive(Clone, Debug)]
pub enum Request {
    /// Start the server.
    Serve(Launch),
    /// Load the configuration, say whether it is good, and end.
    CheckConfig(Launch),
    /// Read this file, say whether it is sound and what it holds, and end.
    CheckFile(PathBuf),
    /// Read this file of commands, and cut off what is damaged at its end.
    FixFile {
        /// The file, or the manifest of several.
        path: PathBuf,
        /// Whether nobody is asked before.
        yes: bool,
    },
    /// Print the help: all of it, or one setting's page.
    Help(Option<String>),
    /// Print the version.
    Version,
}

/// Where the configuration comes from, beside the environment.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    pub(super) file: Option<PathBuf>,
    pub(super) stdin: bool,
    pub(super) flags: Vec<Directive>,
}

impl Launch {
    /// The configuration of these arguments: `["--port", "7000"]`.
    ///
    /// # Errors
    /// Those of [`Request::parse`].
    pub fn from_flags(arguments: &[&str]) -> Result<Self, ConfigError> {
        let arguments: Vec<Bytes> =
            arguments.iter().map(|argument| Bytes::copy_from_slice(argument.as_bytes())).collect();
        Self::parse(&arguments)
    }

    /// The configuration of this file alone.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self { file: Some(path.into()), ..Self::default() }
    }
}

impl Request {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// An argument that is neither a file, a flag nor a flag's value. Names and values are checked by
    /// [`Config::load`](super::Config::load).
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, ConfigError> {
        let mut arguments: Vec<Bytes> =
            arguments.into_iter().map(|argument| Bytes::from(argument.into_vec())).collect();
        match arguments.first().map(AsRef::as_ref) {
            Some(b"-h" | b"--help") => {
                let setting = arguments.get(1).map(|name| String::from_utf8_lossy(name).into_owned());
                return Ok(Self::Help(setting.map(|name| name.trim_start_matches('-').to_owned())));
            }
            Some(b"-v" | b"--version") => return Ok(Self::Version),
            Some(b"--check") => {
                let [_, file] = arguments.as_slice() else {
                    return Err(misplaced(b"--check", Reason::CheckWhat));
                };
                return Ok(Self::CheckFile(PathBuf::from(OsString::from_vec(file.to_vec()))));
            }
            Some(b"--fix") => {
                let all = arguments.len();
                arguments.retain(|argument| argument != "--yes");
                let yes = arguments.len() < all;
                let [_, file] = arguments.as_slice() else {
                    return Err(misplaced(b"--fix", Reason::FixWhat));
                };
                return Ok(Self::FixFile { path: PathBuf::from(OsString::from_vec(file.to_vec())), yes });
            }
            _ => {}
        }
        let all = arguments.len();
        arguments.retain(|argument| argument != "--check-config");
        let checks = arguments.len() < all;
        let launch = Launch::parse(&arguments)?;
        Ok(if checks { Self::CheckConfig(launch) } else { Self::Serve(launch) })
    }
}

impl Launch {
    fn parse(arguments: &[Bytes]) -> Result<Self, ConfigError> {
        let mut launch = Self::default();
        let mut rest = arguments;
        if let [path, after @ ..] = rest
            && !path.starts_with(b"-")
        {
            launch.file = Some(PathBuf::from(OsString::from_vec(path.to_vec())));
            rest = after;
        }
        if let [before @ .., last] = rest
            && last == "-"
        {
            launch.stdin = true;
            rest = before;
        }
        // Like in the genuine server, what stands before all flags is a directive, and what follows a flag is its value,
        // whatever it begins with; but for `--save`.
        let mut wants_value = false;
        for argument in rest {
            if let Some(name) = argument.strip_prefix(b"--").filter(|_| !wants_value) {
                let flag = flag(name)?;
                wants_value = flag.words.is_empty() && !flag.name.eq_ignore_ascii_case(b"save");
                launch.flags.push(flag);
                continue;
            }
            wants_value = false;
            if let Some(flag) = launch.flags.last_mut() {
                flag.words.push(argument.clone());
            } else if launch.file.is_some() && !argument.starts_with(b"-") {
                launch.flags.push(Directive { origin: Origin::CommandLine, name: argument.clone(), words: Vec::new() });
            } else {
                return Err(misplaced(argument, Reason::Misplaced));
            }
        }
        for flag in &mut launch.flags {
            // Like in the genuine server, `--save` alone means that nothing is saved.
            if flag.words.is_empty() && flag.name.eq_ignore_ascii_case(b"save") {
                flag.words.push(Bytes::new());
            }
        }
        Ok(launch)
    }
}

/// A flag without its dashes: `name`, `name=value`, or both in one argument: `"name value"`.
fn flag(text: &[u8]) -> Result<Directive, ConfigError> {
    let (name, words) = match text.iter().position(|byte| *byte == b'=' || byte.is_ascii_whitespace()) {
        Some(at) if text[at] == b'=' => (&text[..at], vec![Bytes::copy_from_slice(&text[at + 1..])]),
        Some(at) => (&text[..at], parse::split(&text[at..]).map_err(|_| misplaced(text, Reason::Quotes))?),
        None => (text, Vec::new()),
    };
    Ok(Directive { origin: Origin::CommandLine, name: Bytes::copy_from_slice(name), words })
}

fn misplaced(argument: &[u8], reason: Reason) -> ConfigError {
    ConfigError { origin: Origin::CommandLine, directive: String::from_utf8_lossy(argument).into_owned(), reason }
}

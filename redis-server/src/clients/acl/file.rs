//! Users in files: the lines of redis.conf, and the file of users alone.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use bytes::Bytes;

use super::rule::{Defaults, SetError, has_spaces};
use super::user::User;
use crate::command::Registry;
use crate::config::{Config, ConfigError, replace_file, settings};

/// The longest file of users, bytes: a mistyped path to a data file must not fill the memory.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The error of a server without a file of users.
const NO_FILE: &str = "This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL \
    SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store \
    users in the Redis configuration.";

/// Why the file of users was not read.
#[derive(Debug)]
pub enum FileError {
    /// There is none in the configuration.
    None,
    /// It cannot be read: its name, and why.
    Unreadable(String, String),
    /// The faults in its lines.
    Lines(String),
    /// It cannot be written.
    Unwritable(io::Error),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str(NO_FILE),
            Self::Unreadable(name, why) => write!(f, "Error loading ACLs, opening file '{name}': {why}"),
            Self::Unwritable(error) => error.fmt(f),
            Self::Lines(text) => write!(
                f,
                "{text}WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
            ),
        }
    }
}

impl std::error::Error for FileError {}

/// Why a server cannot start with its users.
#[derive(Debug)]
pub enum LoadError {
    /// A line of the configuration.
    Line(ConfigError),
    /// The file of users.
    File(FileError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(error) => error.fmt(f),
            Self::File(error) => write!(f, "aclfile: {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<FileError> for LoadError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

type Users = BTreeMap<Box<[u8]>, User>;

/// The users of the configuration's own lines.
pub(super) fn from_lines(config: &Config, registry: &'static Registry) -> Result<Users, LoadError> {
    let users = parse_lines(&config.lines(settings::USER), Defaults::new(config, registry));
    users.map_err(|(at, text)| LoadError::Line(config.user_error(at, text)))
}

/// The users of lines of a configuration: name and rules.
///
/// # Errors
/// The place of the first line that is wrong, and what is wrong with it.
fn parse_lines(lines: &[Vec<Bytes>], defaults: Defaults) -> Result<Users, (usize, String)> {
    let mut users = Users::new();
    for (at, line) in lines.iter().enumerate() {
        let fail = |text: String| (at, text);
        let [name, rules @ ..] = line.as_slice() else { return Err(fail("a user needs a name".to_owned())) };
        if has_spaces(name) {
            return Err(fail("Spaces not allowed in ACL usernames".to_owned()));
        }
        let rules: Vec<&[u8]> = rules.iter().map(AsRef::as_ref).collect();
        let user = User::new(defaults).changed(&rules, defaults).map_err(|error| fail(error.to_string()))?;
        if users.insert(name.as_ref().into(), user).is_some() {
            return Err(fail("Duplicate user found. A user can only be defined once in config files".to_owned()));
        }
    }
    Ok(users)
}

/// The name of the file of users, as the configuration has it, and where it is.
fn place(config: &Config) -> Option<(String, PathBuf)> {
    let name = config.string(settings::ACLFILE)?;
    let path = Path::new(&config.string(settings::DIR).unwrap_or_default()).join(&name);
    Some((name, path))
}

/// The users of the file.
pub(super) fn load(config: &Config, registry: &'static Registry) -> Result<Users, FileError> {
    let (name, path) = place(config).ok_or(FileError::None)?;
    let text = read(&path).map_err(|error| FileError::Unreadable(name.clone(), error.to_string()))?;
    parse(&text, &name, Defaults::new(config, registry)).map_err(FileError::Lines)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(fs::File::open(path)?, MAX_FILE_BYTES), &mut text)?;
    if text.len() as u64 == MAX_FILE_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// The users of a file's text; all that is wrong with it, each with file and line.
fn parse(text: &[u8], name: &str, defaults: Defaults) -> Result<Users, String> {
    let mut users = Users::new();
    let mut wrong = String::new();
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if let Err(error) = parse_line(line.trim_ascii(), at + 1, name, defaults, &mut users) {
            // A String takes any write.
            let _ = write!(wrong, "{error} ");
        }
    }
    if wrong.is_empty() { Ok(users) } else { Err(wrong) }
}

fn parse_line(line: &[u8], at: usize, file: &str, defaults: Defaults, users: &mut Users) -> Result<(), String> {
    if line.is_empty() {
        return Ok(());
    }
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [b"user", name, rules @ ..] = words.as_slice() else {
        return Err(format!("{file}:{at} should start with user keyword followed by the username."));
    };
    let shown = String::from_utf8_lossy(name);
    if name.is_empty() || has_spaces(name) {
        return Err(format!("{file}:{at}: username '{shown}' contains invalid characters."));
    }
    let user = match User::new(defaults).changed(rules, defaults) {
        Ok(user) => user,
        Err(SetError::Unmatched(_)) => {
            return Err(format!("{file}:{at}: Unmatched parenthesis in selector definition."));
        }
        // A password is not for the log.
        Err(SetError::Rule(word, error)) if word.starts_with('<') => return Err(format!("{file}:{at}: {error}.")),
        Err(SetError::Rule(word, error)) => return Err(format!("{file}:{at}: {error}, in '{word}'.")),
    };
    if users.insert((*name).into(), user).is_some() {
        return Err(format!("WARNING: Duplicate user '{shown}' found on line {at}."));
    }
    Ok(())
}

/// Writes lines to the file, which is replaced as a whole.
pub(super) fn save(config: &Config, lines: &[Vec<u8>]) -> Result<(), FileError> {
    let (_, path) = place(config).ok_or(FileError::None)?;
    let text: Vec<u8> = lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
    replace_file(&path, &text).map_err(FileError::Unwritable)
}

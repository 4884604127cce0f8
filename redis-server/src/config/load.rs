//! From file, standard input, environment and flags, in this order, to the configuration in force.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::args::Launch;
use super::error::{ConfigError, HIDDEN_WORDS, Origin, Reason, Warning, nearest, shown};
use super::setting::{Flags, Id};
use super::store::{Config, Draft, default};
use super::value;
use super::{parse, settings};
use crate::protocol::glob;

/// How deep files may include each other: enough for any layout, little for a circle.
const MAX_INCLUDE_DEPTH: usize = 16;

/// The longest configuration file, bytes: a mistyped path to a data file must not fill the memory.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The prefix of environment variables.
const ENVIRONMENT_PREFIX: &str = "REDIS_";

impl Config {
    /// The configuration that file, standard input, environment and flags make, a later one over an earlier one,
    /// and what is to be said about it in the log. Settings that add up (`save`, `rename-command`) add up over all
    /// sources, like in the genuine server.
    ///
    /// # Errors
    /// The first directive that cannot be followed, with all that its writer needs to mend it.
    pub fn load(
        launch: &Launch,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<(Self, Vec<Warning>), ConfigError> {
        let mut loader = Loader::default();
        if let Some(path) = &launch.file {
            loader.file(path, &Origin::CommandLine, 0)?;
        }
        if launch.stdin {
            loader.stdin()?;
        }
        for (name, text) in environment {
            loader.variable(&name, &text)?;
        }
        for flag in &launch.flags {
            loader.directive(flag, 0)?;
        }
        loader.finish(launch.file.as_deref())
    }
}

/// A directive and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) origin: Origin,
    pub(super) name: Bytes,
    pub(super) words: Vec<Bytes>,
}

impl Directive {
    /// As its writer wrote it, but for secrets. `id` is the setting that it names, if it names one.
    fn written(&self, id: Option<Id>) -> String {
        let (name, words) = (String::from_utf8_lossy(&self.name), shown(id, &self.words));
        match &self.origin {
            Origin::File { .. } | Origin::Stdin { .. } => format!("{name} {words}"),
            Origin::Environment { variable } => format!("{variable}={words}"),
            // As if it stood in a file, each word in quotes, as the genuine server shows it.
            Origin::CommandLine if words == HIDDEN_WORDS => format!("{name} {words}"),
            Origin::CommandLine => {
                self.words.iter().fold(name.into_owned(), |line, word| format!("{line} {}", parse::quote_any(word)))
            }
        }
        .trim_end()
        .to_owned()
    }
}

#[derive(Default)]
struct Loader {
    draft: Draft,
    warnings: Vec<Warning>,
    /// The lines that define users.
    users: Vec<Directive>,
    /// Those that rename commands.
    renames: Vec<Directive>,
}

impl Loader {
    fn file(&mut self, path: &Path, included_at: &Origin, depth: usize) -> Result<(), ConfigError> {
        let fail = |reason| ConfigError {
            origin: included_at.clone(),
            directive: if depth == 0 { path.display().to_string() } else { format!("include {}", path.display()) },
            reason,
        };
        if depth > MAX_INCLUDE_DEPTH {
            return Err(fail(Reason::TooDeep));
        }
        let unreadable =
            |error: std::io::Error| fail(Reason::Unreadable(format!("can't read {}: {error}", path.display())));
        let text = std::fs::File::open(path).and_then(read_whole).map_err(unreadable)?;
        let path: Arc<Path> = path.into();
        self.lines(&text, |line| Origin::File { path: Arc::clone(&path), line }, depth)
    }

    fn stdin(&mut self) -> Result<(), ConfigError> {
        let text = read_whole(std::io::stdin().lock()).map_err(|error| ConfigError {
            origin: Origin::CommandLine,
            directive: "-".to_owned(),
            reason: Reason::Unreadable(format!("can't read standard input: {error}")),
        })?;
        self.lines(&text, |line| Origin::Stdin { line }, 0)
    }

    fn lines(&mut self, text: &[u8], origin: impl Fn(usize) -> Origin, depth: usize) -> Result<(), ConfigError> {
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            let origin = origin(at + 1);
            let words = parse::split(line).map_err(|_| ConfigError {
                origin: origin.clone(),
                directive: String::from_utf8_lossy(line).into_owned(),
                reason: Reason::Quotes,
            })?;
            if let [name, words @ ..] = words.as_slice() {
                self.directive(&Directive { origin, name: name.clone(), words: words.to_vec() }, depth)?;
            }
        }
        Ok(())
    }

    fn directive(&mut self, directive: &Directive, depth: usize) -> Result<(), ConfigError> {
        let Directive { origin, name, words } = directive;
        let fail = |id, reason| ConfigError { origin: origin.clone(), directive: directive.written(id), reason };
        let unknown = || fail(None, Reason::Unknown { name: String::from_utf8_lossy(name).into_owned() });
        let id = Id::find(name).ok_or_else(unknown)?;
        self.draft.apply(id, words).map_err(|expected| {
            fail(Some(id), Reason::BadValue { id, words: shown(Some(id), words), expected: expected.into_owned() })
        })?;
        if id.setting().name == INCLUDE {
            self.include(&words[0], origin, depth)?;
        }
        if id == settings::USER.id() {
            self.users.push(directive.clone());
        }
        if id == settings::RENAME_COMMAND.id() {
            self.renames.push(directive.clone());
        }
        self.warn_of_no_effect(id, origin);
        Ok(())
    }

    /// A pattern without a match is nothing, a plain name without a file is an error.
    fn include(&mut self, pattern: &[u8], origin: &Origin, depth: usize) -> Result<(), ConfigError> {
        let path = Path::new(OsStr::from_bytes(pattern));
        if !pattern.iter().any(|byte| b"*?[".contains(byte)) {
            return self.file(path, origin, depth + 1);
        }
        for path in expand(path) {
            self.file(&path, origin, depth + 1)?;
        }
        Ok(())
    }

    /// `REDIS_MAXCLIENTS=100` sets `maxclients`. An unknown name is ignored, as other programs use the prefix too.
    fn variable(&mut self, variable: &OsStr, text: &OsStr) -> Result<(), ConfigError> {
        let Some(variable) = variable.to_str() else { return Ok(()) };
        let Some(name) = variable.strip_prefix(ENVIRONMENT_PREFIX) else { return Ok(()) };
        let dashed = name.to_ascii_lowercase().replace('_', "-");
        let id = Id::all().find(|id| {
            let setting = id.setting();
            setting.is_readable() && [setting.name, setting.alias].iter().any(|known| known.replace('_', "-") == dashed)
        });
        let Some(id) = id else {
            self.warnings.extend(nearest(&dashed).map(|near| {
                let meant = near.to_ascii_uppercase().replace('-', "_");
                Warning(format!("{variable} is no setting; did you mean {ENVIRONMENT_PREFIX}{meant}?"))
            }));
            return Ok(());
        };
        // Kubernetes puts the address of a service called "redis" into REDIS_PORT.
        if id == settings::PORT.id() && text.as_bytes().starts_with(b"tcp://") {
            self.warnings.push(Warning(format!("{variable} is ignored: it names another server, not a port")));
            return Ok(());
        }
        let origin = Origin::Environment { variable: variable.to_owned() };
        let words = vec![Bytes::copy_from_slice(text.as_bytes())];
        self.directive(&Directive { origin, name: Bytes::from_static(id.setting().name.as_bytes()), words }, 0)
    }

    /// A setting without effect that asks for what the server does anyway needs no warning.
    fn warn_of_no_effect(&mut self, id: Id, origin: &Origin) {
        let setting = id.setting();
        let value = self.draft.value(id);
        if setting.flags.has(Flags::NO_EFFECT) && *value != default(id) {
            let words = [value::format(setting.kind, value)];
            let shown = shown(Some(id), &words);
            let name = setting.name;
            self.warnings.push(Warning(format!("'{name} {shown}' in {origin} has no effect in this server")));
        }
    }

    fn finish(mut self, file: Option<&Path>) -> Result<(Config, Vec<Warning>), ConfigError> {
        self.draft.take_level_defaults();
        // The server changes its directory; the file must be found again by CONFIG REWRITE.
        let file = file.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        let config = Config::new(self.draft.into_values(), file);
        let origins = |lines: &[Directive]| lines.iter().map(|line| line.origin.clone()).collect();
        let config = config.written_at(origins(&self.users), origins(&self.renames));
        let shards = config.int(settings::SHARDS);
        if shards != 0 && shards.count_ones() != 1 {
            return Err(ConfigError {
                origin: Origin::CommandLine,
                directive: format!("shards {shards}"),
                reason: Reason::BadValue {
                    id: settings::SHARDS.id(),
                    words: shards.to_string(),
                    expected: "argument must be a power of two".to_owned(),
                },
            });
        }
        if shards != 0 && config.is_on(settings::CLUSTER_ENABLED) {
            let why = "a node of a cluster has a table for each of its slots";
            self.warnings.push(Warning(format!("'shards {shards}' has no effect with 'cluster-enabled yes': {why}")));
        }
        if config.is_on(settings::CLUSTER_ENABLED) && !config.words(settings::REPLICAOF).is_empty() {
            return Err(ConfigError {
                origin: Origin::CommandLine,
                directive: "cluster-enabled yes".to_owned(),
                reason: Reason::BadValue {
                    id: settings::CLUSTER_ENABLED.id(),
                    words: "yes".to_owned(),
                    expected: "replicaof directive not allowed in cluster mode".to_owned(),
                },
            });
        }
        if !self.users.is_empty() && !config.text(settings::ACLFILE).is_empty() {
            return Err(config.user_error(0, TWO_PLACES.to_owned()));
        }
        Ok((config, self.warnings))
    }
}

const TWO_PLACES: &str = "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is \
    invalid. This setup is very likely to lead to configuration errors and security holes, please define either an ACL \
    file or declare users directly in your redis.conf, but not both.";

const INCLUDE: &str = "include";

/// The text of a file that is no longer than a configuration may be.
fn read_whole(file: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut text)?;
    if text.len() as u64 == MAX_FILE_BYTES { Err(std::io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

/// The files that a pattern with wildcards names, sorted. Wildcards stand for parts of one path component.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = component.as_os_str();
        if !name.as_bytes().iter().any(|byte| b"*?[".contains(byte)) {
            paths.iter_mut().for_each(|path| path.push(name));
            continue;
        }
        paths = paths.iter().flat_map(|directory| entries(directory, name)).collect();
    }
    paths.retain(|path| path.exists());
    paths
}

/// The entries of a directory that match, sorted, hidden ones only where the pattern says so.
fn entries(directory: &Path, pattern: &OsStr) -> Vec<PathBuf> {
    let listed = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(listing) = std::fs::read_dir(listed) else { return Vec::new() };
    let is_wanted = |name: &OsStr| {
        let hidden = name.as_bytes().starts_with(b".") && !pattern.as_bytes().starts_with(b".");
        !hidden && glob::matches(pattern.as_bytes(), name.as_bytes(), false)
    };
    let names = listing.filter_map(Result::ok).map(|entry| entry.file_name());
    let mut found: Vec<PathBuf> = names.filter(|name| is_wanted(name)).map(|name| directory.join(name)).collect();
    found.sort();
    found
}

//! The first line of a script: `#!lua name=mylib flags=no-writes,allow-oom`.

use crate::command::Flags;
use crate::protocol::error::shown;
use crate::protocol::split_words;

/// The flags that a script or a function has declared about itself
/// (<https://redis.io/docs/latest/develop/programmability/lua-api/#script_flags>).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags(pub u8);

impl ScriptFlags {
    /// It writes nothing.
    pub const NO_WRITES: Self = Self(1);
    /// It may run when memory is short.
    pub const ALLOW_OOM: Self = Self(1 << 1);
    /// It may run on a replica without current data.
    pub const ALLOW_STALE: Self = Self(1 << 2);
    /// It must not run in a cluster.
    pub const NO_CLUSTER: Self = Self(1 << 3);
    /// It may touch keys of several slots.
    pub const ALLOW_CROSS_SLOT: Self = Self(1 << 4);

    /// Every flag with its name, in the order of `FUNCTION LIST`.
    pub const NAMES: [(Self, &'static str); 5] = [
        (Self::NO_WRITES, "no-writes"),
        (Self::ALLOW_OOM, "allow-oom"),
        (Self::ALLOW_STALE, "allow-stale"),
        (Self::NO_CLUSTER, "no-cluster"),
        (Self::ALLOW_CROSS_SLOT, "allow-cross-slot-keys"),
    ];

    /// Whether every flag of `other` is set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flag of this name.
    pub fn named(name: &[u8], any_case: bool) -> Option<Self> {
        let is_it = |known: &str| match any_case {
            true => known.as_bytes().eq_ignore_ascii_case(name),
            false => known.as_bytes() == name,
        };
        Self::NAMES.iter().find(|(_, known)| is_it(known)).map(|(flag, _)| *flag)
    }

    /// Names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| *name)
    }

    /// The flags of the command that runs such a script.
    pub fn instead_of(self, command: Flags) -> Flags {
        let implied = Flags::STALE.and(Flags::DENYOOM).and(Flags::WRITE).and(Flags::MAY_REPLICATE);
        let mut flags = Flags(command.0 & !implied.0);
        if self.0 & (Self::ALLOW_OOM.0 | Self::NO_WRITES.0) == 0 {
            flags = flags.and(Flags::DENYOOM);
        }
        if !self.has(Self::NO_WRITES) {
            flags = flags.and(Flags::WRITE);
        }
        if self.has(Self::ALLOW_STALE) {
            flags = flags.and(Flags::STALE);
        }
        flags
    }
}

/// The contents of a script's first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shebang {
    /// The flags; none if there is no such line.
    pub(super) flags: Option<ScriptFlags>,
    /// Length of the line, without its end.
    pub(super) len: usize,
}

/// Reads the first line of a script for EVAL.
///
/// # Errors
/// The texts of the genuine server, code first.
pub(super) fn parse(body: &[u8]) -> Result<Shebang, String> {
    if !body.starts_with(b"#!") {
        return Ok(Shebang::default());
    }
    let len = memchr::memchr(b'\n', body).ok_or("ERR Invalid script shebang")?;
    let words = split_words(&body[..len]).filter(|words| !words.is_empty());
    let words = words.ok_or("ERR Invalid engine in script shebang")?;
    let text = shown;
    if words[0] != b"#!lua" {
        return Err(format!("ERR Unexpected engine in script shebang: {}", text(&words[0])));
    }
    let mut flags = ScriptFlags::default();
    for word in &words[1..] {
        let Some(names) = word.strip_prefix(b"flags=") else {
            return Err(format!("ERR Unknown lua shebang option: {}", text(word)));
        };
        for name in names.split(|&byte| byte == b',').filter(|name| !(names.is_empty() && name.is_empty())) {
            let unexpected = || format!("ERR Unexpected flag in script shebang: {}", text(name));
            flags.0 |= ScriptFlags::named(name, false).ok_or_else(unexpected)?.0;
        }
    }
    Ok(Shebang { flags: Some(flags), len })
}

/// The engine and the name that the first line of a library gives, and the length of that line.
///
/// # Errors
/// The texts of the genuine server, code first.
pub(super) fn parse_library(code: &[u8]) -> Result<(Vec<u8>, Vec<u8>, usize), String> {
    if !code.starts_with(b"#!") {
        return Err("ERR Missing library metadata".to_owned());
    }
    let invalid = || "ERR Invalid library metadata".to_owned();
    let len = memchr::memchr(b'\n', code).ok_or_else(invalid)?;
    let words = split_words(&code[..len]).filter(|words| !words.is_empty()).ok_or_else(invalid)?;
    let mut name = None;
    for word in &words[1..] {
        let Some(value) = word.get(..5).filter(|start| start.eq_ignore_ascii_case(b"name=")) else {
            return Err(format!("ERR Invalid metadata value given: {}", shown(word)));
        };
        if name.replace(word[value.len()..].to_vec()).is_some() {
            return Err("ERR Invalid metadata value, name argument was given multiple times".to_owned());
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    Ok((words[0][2..].to_vec(), name, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines() {
        let check = |body: &str, expected: Result<(Option<u8>, usize), &str>| {
            let parsed = parse(body.as_bytes()).map(|shebang| (shebang.flags.map(|flags| flags.0), shebang.len));
            assert_eq!(parsed, expected.map_err(str::to_owned), "{body}");
        };
        check("return 1", Ok((None, 0)));
        check("#!lua\nreturn 1", Ok((Some(0), 5)));
        check("#!lua flags=no-writes,allow-oom\n", Ok((Some(3), 31)));
        check("#!lua flags=\n", Ok((Some(0), 12)));
        check("#!lua flags=nothing\n", Err("ERR Unexpected flag in script shebang: nothing"));
        check("#!lua name=x\n", Err("ERR Unknown lua shebang option: name=x"));
        check("#!js\n", Err("ERR Unexpected engine in script shebang: #!js"));
        check("#!lua", Err("ERR Invalid script shebang"));
    }
}

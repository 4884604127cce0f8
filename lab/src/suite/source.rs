//! Brings a source package of Debian's into a cache folder and makes its suite runnable there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use xtask::process::run_quietly;

use super::start::GENUINE;

/// The project whose test suite runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Of {
    /// Redis, in the version that Debian has.
    #[default]
    Redis,
    /// Valkey, in the newest version that Debian has a source package of; its server is built from it.
    Valkey,
}

impl Of {
    /// The source package.
    fn package(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
        }
    }

    /// Programs that the suite calls as `src/NAME`, and the installed ones that are linked there. A Sentinel is a server by another name,
    /// which Debian has in a package of its own.
    fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Redis => &[
                ("redis-server", "redis-server"),
                ("redis-sentinel", "redis-server"),
                ("redis-cli", "redis-cli"),
                ("redis-benchmark", "redis-benchmark"),
                ("redis-check-aof", "redis-check-aof"),
                ("redis-check-rdb", "redis-check-rdb"),
            ],
            Self::Valkey => &[],
        }
    }

    /// The server below `src` that the suite starts.
    fn server(self) -> &'static str {
        match self {
            Self::Redis => "redis-server",
            Self::Valkey => "valkey-server",
        }
    }

    /// The genuine server.
    pub(super) fn genuine(self, tree: &Path) -> PathBuf {
        match self {
            Self::Redis => GENUINE.into(),
            Self::Valkey => tree.join("src/valkey-server"),
        }
    }

    /// Where what is known of our failures is written.
    pub(super) fn known(self) -> &'static str {
        match self {
            Self::Redis => "lab/suite/known.txt",
            Self::Valkey => "lab/suite/known-valkey.txt",
        }
    }

    /// Arguments of our server besides.
    pub(super) fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Redis => &[],
            // Some tests set `bind`, to this, which cannot be changed while ours runs.
            Self::Valkey => &["--compatibility", "valkey-9", "--bind", "127.0.0.1 ::1"],
        }
    }
}

/// The unpacked source tree below `cache`, fetched when it is not there yet.
///
/// # Errors
/// When apt cannot fetch the package, `dpkg-source` or `tclsh` is missing, or a server cannot be built of it.
pub(super) fn fetch(of: Of, cache: &Path) -> Result<PathBuf> {
    let tree = cache.join(of.package());
    let complete = cache.join("unpacked");
    if complete.exists() {
        link_programs(of, &tree)?;
        return Ok(tree);
    }
    let apt = cache.join("apt");
    fs::create_dir_all(apt.join("lists/partial"))?;
    let entries = source_entries(Path::new("/etc/apt"))?;
    fs::write(apt.join("sources.list"), if of == Of::Redis { entries } else { of_newest(&entries)? })?;
    run_quietly(apt_get(&apt).arg("update"))?;
    run_quietly(apt_get(&apt).args(["source", "--download-only", of.package()]).current_dir(cache))?;
    let description = fs::read_dir(cache)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "dsc"))
        .context("apt-get source left no .dsc file")?;
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    // apt has checked the signature of the list that names this file's hash.
    run_quietly(Command::new("dpkg-source").args(["--no-check", "-x"]).arg(description).arg(&tree))?;
    if of == Of::Valkey {
        // Its speed is not asked for: without its own allocator and TLS it needs nothing but a compiler.
        let how = ["-j2", "MALLOC=libc", "BUILD_TLS=no", "OPTIMIZATION=-O1"];
        run_quietly(Command::new("make").args(how).current_dir(&tree))?;
    }
    link_programs(of, &tree)?;
    fs::write(complete, "")?;
    Ok(tree)
}

/// Of `deb-src` lines the first one, for the newest packages that there are.
fn of_newest(entries: &str) -> Result<String> {
    let first =
        entries.lines().find(|line| line.contains("/debian ")).context("no archive of Debian among apt's sources")?;
    let (head, _) = first.split_once("/debian ").context("a line of apt's sources has no suite")?;
    Ok(format!("{head}/debian sid main\n"))
}

/// A tree at `place`, for a run beside others, in which the suite starts this program where it wants a server.
///
/// # Errors
/// When it cannot be copied.
pub(super) fn copy(of: Of, tree: &Path, place: &Path, program: &Path) -> Result<PathBuf> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    run_quietly(Command::new("cp").arg("-a").arg(tree).arg(place))?;
    let link = place.join("src").join(of.server());
    if link.exists() || link.is_symlink() {
        fs::remove_file(&link)?;
    }
    symlink(program, link)?;
    if of == Of::Valkey && program != of.genuine(tree) {
        // For files that start servers themselves.
        let settings = place.join("tests/assets/default.conf");
        let said =
            of.settings().chunks_exact(2).map(|pair| format!("{} {}\n", pair[0].trim_start_matches('-'), pair[1]));
        let text = fs::read_to_string(&settings)? + "\n" + &said.collect::<String>();
        fs::write(settings, text)?;
    }
    let scripting = place.join("tests/unit/scripting.tcl");
    fs::write(&scripting, without_debugger(&fs::read_to_string(&scripting)?))?;
    Ok(place.to_owned())
}

/// The suite's file about scripts, without what it does with the Lua debugger between two tests: where there is none, all
/// tests behind that would not be reached. The tests of the debugger are named in `known.txt`.
fn without_debugger(text: &str) -> String {
    let between = "    r script debug sync\n    r eval {return 'hello'} 0\n    r eval {return 'hello'} 0\n";
    text.replace(between, "")
}

/// apt-get with lists of its own, so that the machine's configuration stays as it is.
fn apt_get(folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command.arg("-qq");
    for (option, value) in [
        ("Dir::Etc::sourcelist", folder.join("sources.list").display().to_string()),
        ("Dir::Etc::sourceparts", "-".to_owned()),
        ("Dir::State::lists", folder.join("lists").display().to_string()),
    ] {
        command.arg("-o").arg(format!("{option}={value}"));
    }
    command
}

/// `deb-src` lines for every Debian archive that the machine takes binary packages from.
fn source_entries(etc: &Path) -> Result<String> {
    let mut files = vec![etc.join("sources.list")];
    if let Ok(parts) = fs::read_dir(etc.join("sources.list.d")) {
        files.extend(parts.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let mut entries = String::new();
    for file in files.iter().filter(|file| file.exists()) {
        let text = fs::read_to_string(file)?;
        if file.extension().is_some_and(|extension| extension == "sources") {
            text.split("\n\n").for_each(|stanza| entries.push_str(&from_stanza(stanza)));
        } else {
            text.lines().filter_map(from_line).for_each(|line| entries.push_str(&line));
        }
    }
    if entries.is_empty() {
        bail!("no Debian archive among apt's sources: the suite cannot be fetched");
    }
    Ok(entries)
}

/// Other archives (a cloud's, a language's) have no package `redis`.
fn is_debian(uri: &str) -> bool {
    uri.contains("debian") || uri.contains("ubuntu")
}

fn from_line(line: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("deb ")?;
    is_debian(rest).then(|| format!("deb-src {rest}\n"))
}

/// One stanza of the deb822 format as one-line entries.
fn from_stanza(stanza: &str) -> String {
    let field = |name: &str| {
        let line = stanza.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    };
    let (Some(uris), Some(suites), Some(components)) = (field("uris"), field("suites"), field("components")) else {
        return String::new();
    };
    let options = field("signed-by").map_or_else(String::new, |key| format!("[signed-by={key}] "));
    let mut entries = String::new();
    for uri in uris.split_whitespace().filter(|uri| is_debian(uri)) {
        for suite in suites.split_whitespace() {
            entries.push_str(&format!("deb-src {options}{uri} {suite} {components}\n"));
        }
    }
    entries
}

fn link_programs(of: Of, tree: &Path) -> Result<()> {
    for (name, program) in of.programs() {
        let link = tree.join("src").join(name);
        let installed = Path::new("/usr/bin").join(program);
        if installed.exists() && !link.exists() {
            symlink(installed, link)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_sources_become_source_entries() {
        let check = |line: &str, expected: Option<&str>| assert_eq!(from_line(line).as_deref(), expected, "{line}");
        check(
            "deb http://mirror.example/debian stable main",
            Some("deb-src http://mirror.example/debian stable main\n"),
        );
        check("# deb http://mirror.example/debian stable main", None);
        check("deb http://mirror.example/cloud-sdk stable main", None);

        let stanza =
            "Types: deb\n# note\nURIs: http://m.example/debian\nSuites: a b\nComponents: main\nSigned-By: /k.gpg";
        let expected = "deb-src [signed-by=/k.gpg] http://m.example/debian a main\n\
                        deb-src [signed-by=/k.gpg] http://m.example/debian b main\n";
        assert_eq!(from_stanza(stanza), expected);
        assert_eq!(from_stanza("Types: deb"), "");
        assert_eq!(of_newest(expected).unwrap(), "deb-src [signed-by=/k.gpg] http://m.example/debian sid main\n");
        assert!(of_newest("deb-src http://m.example/ubuntu a main\n").is_err());
    }
}

//! Debian packages (cargo-deb) of the stripped programs, under names that no other package has.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::process::run_quietly;

use super::program::{PROGRAMS, Program};
use super::{completions, man};

/// The content of the packages beside the programs: pages and completions under the installed names, in `folder`.
pub(super) fn files(folder: &Path, programs: &Path) -> Result<()> {
    let (names, texts) = (folder.join("names"), folder.join("debian"));
    for place in [&names, &texts] {
        fs::create_dir_all(place)?;
    }
    for Program { name, installed, completes, .. } in &PROGRAMS {
        // A program's help has the name by which it was started.
        let link = names.join(installed);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(programs.join(name), &link)?;
        let help = run_quietly(Command::new(&link).arg("--help").env("COLUMNS", "100"))?;
        let page = texts.join(format!("{installed}.1"));
        fs::write(&page, man::page(installed, &help))?;
        man::check(&page)?;
        let script = if *completes {
            renamed(&run_quietly(Command::new(&link).args(["completions", "bash"]))?, name, installed)?
        } else {
            completions::bash(installed, &help)
        };
        fs::write(texts.join(format!("{installed}.bash")), script)?;
    }
    Ok(())
}

/// A script of completions that is bound to another name of its program.
fn renamed(script: &str, name: &str, installed: &str) -> Result<String> {
    let mut is_bound = false;
    let lines = script.lines().map(|line| match line.strip_suffix(&format!(" {name}")) {
        Some(head) if line.trim_start().starts_with("complete ") => {
            is_bound = true;
            format!("{head} {installed}\n")
        }
        _ => format!("{line}\n"),
    });
    let script = lines.collect();
    if is_bound { Ok(script) } else { bail!("{name}: its completions are bound to another name") }
}

/// Builds the packages; returns how many there are.
pub(super) fn packages(folder: &Path) -> Result<usize> {
    let target = folder.join("deb");
    let _ = fs::remove_dir_all(&target);
    fs::create_dir_all(&target)?;
    let mut packages: Vec<&str> = PROGRAMS.iter().map(|program| program.package).collect();
    packages.dedup();
    for package in &packages {
        let mut command = xtask::workspace::cargo();
        command.args(["deb", "--no-build", "--no-strip", "--package", package, "--output"]).arg(&target);
        run_quietly(&mut command).context("cargo-deb builds packages: cargo install --locked cargo-deb")?;
    }
    Ok(packages.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_bound_to_the_installed_name() {
        let script = "_a() {\n    echo a\n}\n    complete -F _a -o bashdefault a\n";
        let expected = "_a() {\n    echo a\n}\n    complete -F _a -o bashdefault our-a\n";
        assert_eq!(renamed(script, "a", "our-a").unwrap(), expected);
        assert!(renamed("complete -F _b b\n", "a", "our-a").is_err());
    }
}

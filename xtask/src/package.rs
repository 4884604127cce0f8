//! The crates that others take: what their tarballs say of them and hold, and that each builds by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use xtask::process::run_quietly;

/// Crates for others; all others are of use in this workspace alone.
const CRATES: [&str; 10] = [
    "echonet",
    "echonet-lite",
    "grpc-server",
    "http-server",
    "http2",
    "loadgen",
    "query-engine",
    "redis-server",
    "serve",
    "server-runtime",
];

/// Files at the top of each tarball.
const FILES: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Files that are the workspace's own, word for word.
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// The limit of registries in bytes: 10 MiB on crates.io. A larger tarball of ours holds a file that should not be there.
const MAX_TARBALL: u64 = 2 << 20;

/// Keywords and categories that crates.io takes at most, each.
const MAX_WORDS: usize = 5;

/// Options of `cargo xtask package`.
#[derive(Args)]
pub(crate) struct Options {
    /// Builds each tarball as well, with nothing of the workspace beside it: minutes.
    #[arg(long)]
    build: bool,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A manifest.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    description: Option<String>,
    license: Option<String>,
    readme: Option<String>,
    rust_version: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
}

/// Packs all crates and looks at what has come of it.
///
/// # Errors
/// When a manifest lacks something, a tarball cannot be made or built, or lacks a file.
pub(crate) fn run(options: &Options) -> Result<()> {
    let packages = packages()?;
    let mut faults: Vec<String> = packages.values().flat_map(faults_of_manifest).collect();
    let folder = xtask::workspace::target_dir().join("package");
    let mut package = xtask::workspace::cargo();
    package.args(["package", "--allow-dirty", "--offline", "--quiet"]);
    package.args(CRATES.iter().flat_map(|name| ["--package", name]));
    if options.build {
        // Built together with what README's crates outside of the workspace need, by the same profile.
        let target = xtask::workspace::target_dir().join("tmp/outside-target");
        package.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_BUILD_BUILD_DIR", &target);
        forget(&cargo_home()?.join("registry/src"), &target.join("debug/.fingerprint"))?;
    } else {
        package.arg("--no-verify");
    }
    run_quietly(&mut package)?;
    let mut bytes = 0;
    for package in packages.values() {
        let tarball = folder.join(format!("{}-{}.crate", package.name, package.version));
        bytes += fs::metadata(&tarball).with_context(|| tarball.display().to_string())?.len();
        faults.extend(faults_of_tarball(&tarball, package)?);
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    let built = if options.build { "built" } else { "made" };
    println!("package: {} tarballs {built}, {} KiB", CRATES.len(), bytes / 1024);
    Ok(())
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("CARGO_HOME") {
        return Ok(folder.into());
    }
    let home = env::home_dir().context("HOME and CARGO_HOME are not set: where does cargo unpack tarballs?")?;
    Ok(home.join(".cargo"))
}

/// Removes what cargo has unpacked of tarballs of ours, and built of that. It takes what is in a registry for the same for ever, and
/// would build a crate against the one beside it as that was at an earlier time.
fn forget(unpacked: &Path, fingerprints: &Path) -> Result<()> {
    // Registries in folders have no name in front of the hash.
    for registry in entries(unpacked)?.into_iter().filter(|(name, _)| name.starts_with('-')) {
        remove(entries(&registry.1)?)?;
    }
    remove(entries(fingerprints)?)
}

/// Removes the folders that belong to crates of ours.
fn remove(folders: Vec<(String, PathBuf)>) -> Result<()> {
    let is_ours = |name: &str| name.rsplit_once('-').is_some_and(|(name, _)| CRATES.contains(&name));
    for (_, path) in folders.into_iter().filter(|(name, _)| is_ours(name)) {
        fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Names and paths of what is in a folder; nothing, where there is none.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let named = entries.map(|entry| {
        let entry = entry?;
        Ok((entry.file_name().display().to_string(), entry.path()))
    });
    named.collect()
}

fn packages() -> Result<BTreeMap<String, Package>> {
    let mut metadata = xtask::workspace::cargo();
    let output = metadata.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]).output()?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let ours = metadata.packages.into_iter().filter(|package| CRATES.contains(&package.name.as_str()));
    let packages: BTreeMap<_, _> = ours.map(|package| (package.name.clone(), package)).collect();
    match CRATES.iter().find(|name| !packages.contains_key(**name)) {
        Some(missing) => bail!("the workspace has no package {missing}"),
        None => Ok(packages),
    }
}

/// Faults of the data that registries show of a crate.
fn faults_of_manifest(package: &Package) -> Vec<String> {
    let is_some = |field: &Option<String>| field.as_ref().is_some_and(|text| !text.is_empty());
    let is_few = |words: &[String]| (1..=MAX_WORDS).contains(&words.len());
    let rules = [
        (is_some(&package.description), "description: expected a sentence"),
        (is_some(&package.license), "license: expected one"),
        (is_some(&package.readme), "readme: expected a file"),
        (is_some(&package.rust_version), "rust-version: expected a version"),
        (is_few(&package.keywords), "keywords: expected one to five"),
        (package.keywords.iter().all(|word| word.len() <= 20), "keywords: expected at most 20 letters in each"),
        (is_few(&package.categories), "categories: expected one to five"),
    ];
    let broken = rules.iter().filter(|(holds, _)| !holds);
    broken.map(|(_, rule)| format!("{}/Cargo.toml: {rule}", package.name)).collect()
}

/// Files that a tarball lacks, or has too many of.
fn faults_of_tarball(tarball: &Path, package: &Package) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let name = tarball.file_name().unwrap_or_default().display().to_string();
    let top = format!("{}-{}", package.name, package.version);
    let list = run_quietly(Command::new("tar").arg("tzf").arg(tarball))?;
    let missing = FILES.iter().filter(|file| !list.lines().any(|line| line == format!("{top}/{file}")));
    faults.extend(missing.map(|file| format!("{name}: has no {file}")));
    for file in LICENSES.iter().filter(|file| list.contains(**file)) {
        let text = run_quietly(Command::new("tar").arg("xzOf").arg(tarball).arg(format!("{top}/{file}")))?;
        if text != fs::read_to_string(xtask::workspace::root().join(file))? {
            faults.push(format!("{name}: {file} is not the workspace's"));
        }
    }
    let length = fs::metadata(tarball)?.len();
    if length > MAX_TARBALL {
        faults.push(format!("{name}: {length} bytes, more than {MAX_TARBALL}"));
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_unpacked_crates_are_removed() {
        let top = env::temp_dir().join(format!("xtask-package-{}", std::process::id()));
        let folders =
            ["src/-1/http2-0.1.0", "src/-1/h2-0.1.0", "src/index-1/http2-0.1.0", "built/http2-1a", "built/h2-1a"];
        folders.iter().for_each(|folder| fs::create_dir_all(top.join(folder)).unwrap());
        forget(&top.join("src"), &top.join("built")).unwrap();
        forget(&top.join("none"), &top.join("neither")).unwrap();
        let left: Vec<_> = folders.into_iter().filter(|folder| top.join(folder).exists()).collect();
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(left, ["src/-1/h2-0.1.0", "src/index-1/http2-0.1.0", "built/h2-1a"]);
    }

    #[test]
    fn a_manifest_without_words_is_named() {
        let package = Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            description: None,
            license: Some("MIT".to_owned()),
            readme: Some("README.md".to_owned()),
            rust_version: Some("1.95".to_owned()),
            keywords: vec!["a word that is much too long".to_owned()],
            categories: vec!["network-programming".to_owned(); 6],
        };
        let expected = [
            "a/Cargo.toml: description: expected a sentence",
            "a/Cargo.toml: keywords: expected at most 20 letters in each",
            "a/Cargo.toml: categories: expected one to five",
        ];
        assert_eq!(faults_of_manifest(&package), expected);
    }
}

//! `cargo run` to the program that it would build.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The packages of the workspace, by what `cargo metadata` says.
#[derive(Deserialize)]
pub(super) struct Packages {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
    features: BTreeMap<String, Vec<String>>,
    default_run: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    #[serde(default, rename = "required-features")]
    required_features: Vec<String>,
}

impl Packages {
    /// # Errors
    /// When cargo does not say.
    pub(super) fn read() -> Result<Self> {
        let mut metadata = xtask::workspace::cargo();
        let output = metadata.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]).output()?;
        serde_json::from_slice(&output.stdout).context("cargo metadata")
    }

    /// The names of all programs.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        let targets = self.packages.iter().flat_map(|package| &package.targets);
        targets.filter(|target| target.is("bin")).map(|target| target.name.as_str())
    }

    /// The command with the program's path in the place of `cargo run …`, if it begins with that.
    ///
    /// # Errors
    /// When there is no such package, feature or target, or the target needs features that are not given.
    pub(super) fn substitute(&self, command: &str, programs: &Path) -> Result<String> {
        let Some(rest) = command.strip_prefix("cargo run ") else { return Ok(command.to_owned()) };
        let (options, arguments) = rest.split_once(" -- ").unwrap_or((rest, ""));
        let (mut package, mut features, mut bin, mut example) = (None, Vec::new(), None, None);
        let mut words = options.split_whitespace().filter(|word| *word != "--");
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word}: expected a name behind it"));
            match word {
                "-p" | "--package" => package = Some(value()?),
                "--features" => features.extend(value()?.split(',')),
                "--bin" => bin = Some(value()?),
                "--example" => example = Some(value()?),
                "--release" => {}
                _ => bail!("{word}: an option of cargo that cannot be substituted"),
            }
        }
        let package = package.context("expected -p PACKAGE")?;
        let package =
            self.packages.iter().find(|one| one.name == package).with_context(|| format!("no package {package}"))?;
        let target = package.target(bin, example)?;
        package.check_features(target, &features)?;
        let folder = if example.is_some() { "examples/" } else { "" };
        let path = programs.join(format!("{folder}{}", target.name));
        if !path.is_file() {
            bail!("{} is not built", path.display());
        }
        Ok(format!("{} {arguments}", path.display()))
    }
}

impl Package {
    fn target(&self, bin: Option<&str>, example: Option<&str>) -> Result<&Target> {
        if let Some(name) = example {
            let found = self.targets.iter().find(|target| target.is("example") && target.name == name);
            return found.with_context(|| format!("{} has no example {name}", self.name));
        }
        let mut bins = self.targets.iter().filter(|target| target.is("bin"));
        let wanted = bin.or(self.default_run.as_deref());
        let found = bins.find(|target| wanted.is_none_or(|name| target.name == name));
        found.with_context(|| format!("{} has no program {}", self.name, wanted.unwrap_or_default()))
    }

    /// Given features exist, and with the default ones and all that they bring hold what the target requires.
    fn check_features(&self, target: &Target, given: &[&str]) -> Result<()> {
        if let Some(unknown) = given.iter().find(|name| !self.features.contains_key(**name)) {
            bail!("{} has no feature {unknown}", self.name);
        }
        let mut on: Vec<&str> = [given, &["default"]].concat();
        let mut next = 0;
        while next < on.len() {
            let brings = self.features.get(on[next]).into_iter().flatten().map(String::as_str);
            let new: Vec<&str> = brings.filter(|name| !on.contains(name)).collect();
            on.extend(new);
            next += 1;
        }
        match target.required_features.iter().find(|name| !on.contains(&name.as_str())) {
            Some(missing) => bail!("{} needs --features {missing}", target.name),
            None => Ok(()),
        }
    }
}

impl Target {
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cargo_run_is_the_program_that_it_would_build() {
        let folder = xtask::workspace::target_dir().join("readme-substitute");
        fs::create_dir_all(folder.join("examples")).unwrap();
        for name in ["redis-server", "grpc-server", "grpc-client", "echonet", "examples/light"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let packages = Packages::read().unwrap();
        let check = |command: &str, expected: &str| {
            let found = packages.substitute(command, &folder).map_err(|error| format!("{error:#}"));
            let found = found.unwrap_or_else(|error| error).replace(&format!("{}/", folder.display()), "");
            assert_eq!(found.trim_end(), expected, "{command}");
        };
        check("ls -l", "ls -l");
        check("cargo run -p redis-server --release", "redis-server");
        check("cargo run -p grpc-server --release -- --listen a", "grpc-server --listen a");
        check("cargo run -p grpc-server --bin grpc-client -- say-hello", "grpc-client say-hello");
        check("cargo run -p echonet-lite --example light", "light".replace("light", "examples/light").as_str());
        check("cargo run -p echonet --features mqtt -- bridge", "echonet bridge");
        check("cargo run -p echonet-lite --example smart_meter", "smart_meter needs --features serial");
        check("cargo run -p redis-server --features none", "redis-server has no feature none");
        check("cargo run -p nobody", "no package nobody");
        check("cargo run -p redis-server --bin none", "redis-server has no program none");
        check("cargo run --frozen", "--frozen: an option of cargo that cannot be substituted");
        fs::remove_dir_all(folder).unwrap();
    }
}

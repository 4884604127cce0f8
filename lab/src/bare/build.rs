//! Compilers that can build for a Cortex-M4.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::process::run_quietly;

/// The target of the light: Cortex-M4 and M7 with floating-point unit.
const TARGET: &str = "thumbv7em-none-eabihf";
/// Other chips that the library is checked for: Cortex-M0, whose atomics cannot compare and exchange, and small RISC-V such as
/// the ESP32-C3.
const OTHER_TARGETS: [&str; 2] = ["thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];
/// The ESP32-C3 with ESP-IDF, which has `std`.
const IDF_TARGET: &str = "riscv32imc-esp-espidf";

/// One program of the light's package.
pub(super) struct Binary {
    name: &'static str,
    features: &'static [&'static str],
}

/// The light on a serial line: wire, node and one class table, nothing else.
pub(super) const SERIAL: Binary = Binary { name: "light-serial", features: &[] };
/// The light on Ethernet, with smoltcp.
#[cfg(test)]
pub(super) const ETHERNET: Binary = Binary { name: "light-ethernet", features: &["--features", "ethernet"] };

/// A light and a thermometer on embassy.
pub(super) const EMBASSY: Binary = Binary { name: "light-embassy", features: &["--features", "embassy"] };

/// Where Debian's rustc-web and rust-web-src put the compiler and the sources of `core`.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/core/src/lib.rs";

/// A cargo with its compiler and a linker.
pub(super) struct Toolchain {
    /// Debian's, which must build `core` itself; else that of the workspace.
    debian: bool,
    linker: PathBuf,
}

impl Toolchain {
    /// The workspace's own, where `rustup target add` brought the target; else Debian's with the sources of `core`.
    ///
    /// # Errors
    /// The missing tools.
    pub(super) fn find() -> Result<Self, String> {
        let linker = linker().ok_or("the toolchain has no rust-lld")?;
        let core = ask_rustc(&["--print", "target-libdir", "--target", TARGET]);
        if core.is_some_and(|folder| Path::new(&folder).exists()) {
            return Ok(Self { debian: false, linker });
        }
        let missing = [DEBIAN_RUSTC, DEBIAN_CARGO, DEBIAN_SOURCES].into_iter().find(|path| !Path::new(path).exists());
        match missing {
            None => Ok(Self { debian: true, linker }),
            Some(path) => Err(format!(
                "neither the target {TARGET} nor {path} of Debian's rustc-web, cargo-web, rust-web-src is installed"
            )),
        }
    }

    /// For people.
    pub(super) fn name(&self) -> &'static str {
        if self.debian { "Debian's rustc with -Zbuild-std=core" } else { "the workspace's toolchain" }
    }

    /// Builds one binary of the light in the profile that is measured and returns its path.
    ///
    /// # Errors
    /// With the compiler's output.
    pub(super) fn build(&self, binary: &Binary) -> Result<PathBuf> {
        let folder = xtask::workspace::root().join("echonet-lite/examples-bare/light-node");
        let mut command = self.cargo();
        command.args(["build", "--release", "--target", TARGET, "--bin", binary.name]).args(binary.features);
        command.current_dir(folder);
        self.finish(command)?;
        let path = target_dir().join(TARGET).join("release").join(binary.name);
        ensure!(path.exists(), "{} was not built", path.display());
        Ok(path)
    }

    /// Checks that the library compiles where there is nothing but `core`: with Debian's sources `alloc` is not even built.
    ///
    /// # Errors
    /// With the compiler's output.
    pub(super) fn check_library(&self) -> Result<()> {
        let check = |target: &str, kind: &str| {
            let mut command = self.cargo();
            command.args([
                kind,
                "--package",
                "echonet-lite",
                "--no-default-features",
                "--features",
                "skstack,serde,defmt",
            ]);
            command.args(["--target", target]).current_dir(xtask::workspace::root());
            self.finish(command)
        };
        check(TARGET, "build")?;
        if !self.debian {
            // The toolchain has other targets only where a user has added them.
            println!("skipped: {} (only Debian's toolchain checks them)", OTHER_TARGETS.join(", "));
            return Ok(());
        }
        OTHER_TARGETS.iter().try_for_each(|target| check(target, "check"))
    }

    /// Checks the light on the sockets of `std` for ESP-IDF. Only Debian's toolchain has the sources of `std`.
    ///
    /// # Errors
    /// With the compiler's output.
    pub(super) fn check_idf(&self) -> Result<()> {
        if !self.debian {
            println!("skipped: {IDF_TARGET} (only Debian's toolchain checks it)");
            return Ok(());
        }
        let mut command = self.cargo();
        command.args(["check", "-Zbuild-std=std,panic_abort", "--target", IDF_TARGET]);
        command.current_dir(xtask::workspace::root().join("echonet-lite/examples-bare/light-idf"));
        run_quietly(&mut command).context("the check for ESP-IDF")?;
        println!("a light on std's sockets: checked for {IDF_TARGET}");
        Ok(())
    }

    fn cargo(&self) -> Command {
        let mut command = Command::new(if self.debian { DEBIAN_CARGO } else { "cargo" });
        if self.debian {
            // The flag is what -Zbuild-std needs of a stable compiler.
            command.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
        }
        // A folder of its own: the workspace's is locked while a test of the workspace calls this.
        command.env("CARGO_TARGET_DIR", target_dir()).env_remove("CARGO_BUILD_BUILD_DIR");
        command.env("CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER", &self.linker);
        // Flags for the host would replace those that name the linker script.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        command
    }

    fn finish(&self, mut command: Command) -> Result<()> {
        if self.debian {
            command.arg("-Zbuild-std=core");
        }
        run_quietly(&mut command).context("the build for a microcontroller").map(drop)
    }
}

/// Builds the light on the sockets of `std` for this machine; the path of the program.
///
/// # Errors
/// With the compiler's output.
pub(super) fn build_idf() -> Result<PathBuf> {
    let folder = xtask::workspace::root().join("echonet-lite/examples-bare/light-idf");
    let mut command = xtask::workspace::cargo();
    command.args(["build", "--quiet"]).current_dir(&folder).env("CARGO_TARGET_DIR", target_dir());
    run_quietly(&mut command).context("the light on std's sockets")?;
    Ok(target_dir().join("debug/light-idf"))
}

/// Apart from the workspace's, which is locked while a test of the workspace builds here.
pub(super) fn target_dir() -> PathBuf {
    xtask::workspace::target_dir().join("bare")
}

/// The linker that rustup brings with every toolchain; Debian's compiler has none for this target.
fn linker() -> Option<PathBuf> {
    let libraries = Path::new(&ask_rustc(&["--print", "target-libdir"])?).parent()?.join("bin/rust-lld");
    libraries.exists().then_some(libraries)
}

/// The answer of the workspace's compiler.
fn ask_rustc(arguments: &[&str]) -> Option<String> {
    let output = Command::new("rustc").args(arguments).current_dir(xtask::workspace::root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

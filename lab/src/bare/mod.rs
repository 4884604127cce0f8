//! The bare-metal light (`echonet-lite/examples-bare/light-node`): built for a Cortex-M4, measured, and run in qemu.

mod build;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod ethernet;
mod no_std;
#[cfg(test)]
mod qemu;
mod size;

use anyhow::{Result, ensure};
use clap::Args;

/// Flash for wire, node and the tables of one class with its super class; the light's own code comes on top.
const MAX_FLASH: u64 = 16 * 1024;
/// Statics of the same light: its buffers, its tables, its state.
const MAX_RAM: u64 = 2 * 1024;
/// Flash of the crate on embassy: the same, its adapter, the code that keeps and checks values, and all constants of the image, because
/// their owner is not known. embassy's own share is not counted.
const MAX_FLASH_EMBASSY: u64 = 26 * 1024;

/// Options of `cargo xtask bare`.
#[derive(Args)]
pub(crate) struct Options {
    /// List the largest symbols too.
    #[arg(long, default_value_t = 0)]
    symbols: usize,
    /// Only prove that the library without features is `core` alone.
    #[arg(long)]
    library: bool,
}

/// Builds the light and prints what it takes of a chip.
///
/// # Errors
/// When it does not build or takes more than its share; or when nothing here can build for a Cortex-M and
/// `REQUIRE_PEERS` is set.
pub(crate) fn run(options: &Options) -> Result<()> {
    no_std::check()?;
    build::build_idf()?;
    let Some(toolchain) = needed(build::Toolchain::find())? else { return Ok(()) };
    // Here the other crates do not even exist.
    toolchain.check_library()?;
    toolchain.check_idf()?;
    if options.library {
        return Ok(());
    }
    println!("built by {}:", toolchain.name());
    let image = size::Image::read(&toolchain.build(&build::SERIAL)?)?;
    image.print(options.symbols);
    let (flash, ram) = (image.library_flash(), image.ram());
    ensure!(flash <= MAX_FLASH, "{flash} bytes of flash without the light itself, more than {MAX_FLASH}");
    ensure!(ram <= MAX_RAM, "{ram} bytes of static RAM, more than {MAX_RAM}");
    println!("a light and a thermometer on embassy:");
    let image = size::Image::read(&toolchain.build(&build::EMBASSY)?)?;
    image.print(options.symbols);
    let flash = image.own_flash();
    ensure!(flash <= MAX_FLASH_EMBASSY, "{flash} bytes of flash for the crate, more than {MAX_FLASH_EMBASSY}");
    Ok(())
}

/// The found tool; otherwise its absence is printed, or an error where peers are required.
fn needed<T>(found: Result<T, String>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(reason) => {
            ensure!(std::env::var_os("REQUIRE_PEERS").is_none(), "the bare-metal light is required: {reason}");
            println!("skipped: the bare-metal light ({reason})");
            Ok(None)
        }
    }
}

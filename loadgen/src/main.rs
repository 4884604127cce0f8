//! The `loadgen` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    loadgen::cli::main()
}

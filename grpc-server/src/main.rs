//! `grpc-server`: starts the greeter from its flags.

use clap::Parser;
use grpc_server::{Args, serve, tuning};
use server_runtime::{Allocator, allow_huge_pages, init_logging, shutdown_on_signals, suggest};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> anyhow::Result<()> {
    // Before the first large allocation; see `tuning::HUGE_PAGES`.
    allow_huge_pages(tuning::HUGE_PAGES);
    let args = Args::parse();
    init_logging(&args.runtime.log_options())?;
    let running = serve(args.routes(), args.options()?)?;
    shutdown_on_signals(&running)?;
    for addr in running.local_addrs() {
        tracing::info!("ready to accept connections on {addr}");
    }
    if args.runtime.tls_cert.is_empty() {
        suggest(running.local_addrs(), |at| format!("{} --address {at} say-hello --name Ann", client()));
    }
    if running.wait() {
        tracing::warn!("some connections did not end in time and were cut");
    }
    tracing::info!("bye");
    Ok(())
}

/// The command of the client. `cargo run` builds the server alone, so that the client needs a run of its own.
fn client() -> &'static str {
    let is_cargo_run = std::env::var_os("CARGO").is_some();
    if is_cargo_run { "cargo run -p grpc-server --release --bin grpc-client --" } else { "grpc-client" }
}

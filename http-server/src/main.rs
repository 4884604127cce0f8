//! `http-server`: starts the server from its flags.

use clap::Parser;
use http_server::{Args, api, serve, tuning};
use server_runtime::{Allocator, allow_huge_pages, init_logging, shutdown_on_signals, suggest};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> anyhow::Result<()> {
    // Before the first large allocation; see `tuning::HUGE_PAGES`.
    allow_huge_pages(tuning::HUGE_PAGES);
    let args = Args::parse();
    init_logging(&args.runtime.log_options())?;
    let mut options = args.options()?;
    let router = args.router()?.merge(api::routes(&args.redis, &mut options)?);
    let has_tls = !args.runtime.tls_cert.is_empty();
    let running = serve(router, options)?;
    shutdown_on_signals(&running)?;
    for addr in running.local_addrs() {
        tracing::info!("ready to accept connections on {addr}");
    }
    if !has_tls {
        suggest(running.local_addrs(), |at| format!("curl http://{at}/json"));
    }
    if running.wait() {
        tracing::warn!("some connections did not end in time and were cut");
    }
    tracing::info!("bye");
    Ok(())
}

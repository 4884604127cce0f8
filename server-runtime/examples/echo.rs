//! An echo server with every flag of the runtime: `cargo run -p server-runtime --example echo -- --help`.

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use clap::Parser;
use server_runtime::{Connection, RuntimeArgs, Service, init_logging, shutdown_on_signals, start};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::info;

/// Sends back what it is sent.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    runtime: RuntimeArgs,
}

struct Echo;

impl Service for Echo {
    type Worker = ();
    type Carried = ();

    fn worker(self: &Arc<Self>, _index: usize) {}

    async fn serve(self: Arc<Self>, _worker: Rc<()>, mut connection: Connection) {
        let mut bytes = [0; 1024];
        while let Ok(count @ 1..) = connection.stream.read(&mut bytes).await {
            if connection.stream.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    }
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<(), Box<dyn std::error::Error>> {
    init_logging(&flags.runtime.log_options())?;
    let running = start(flags.runtime.options("localhost:7007".parse()?)?, Arc::new(Echo))?;
    shutdown_on_signals(&running)?;
    info!("listening on {:?}", running.local_addrs());
    running.wait();
    Ok(())
}

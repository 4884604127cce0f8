//! `echonet emulate`: a virtual home from a file.

use std::path::Path;

use echonet_lite::emulate::{Device, Home};
use echonet_lite::net::Endpoint;
use echonet_lite::node::Object;
use serde_json::json;

use crate::commands::{Emulate, Options};
use crate::failure::Failure;
use crate::link;
use crate::output::Output;
use crate::render;

pub(crate) async fn run(args: &Emulate, options: &Options, out: &Output) -> Result<(), Failure> {
    let _home = play(&args.file, options, out).await?;
    link::after(options.timeout).await;
    Ok(())
}

/// Serves the nodes of a file for as long as what it returns lives, each at the address that the file gives it, or at those
/// of the options.
pub(crate) async fn play(file: &Path, options: &Options, out: &Output) -> Result<Vec<Endpoint<Device>>, Failure> {
    let wrong = |error: &dyn core::fmt::Display| Failure::Input(format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let home: Home = text.parse().map_err(|error| wrong(&error))?;
    let mut serving = Vec::new();
    for plan in &home.nodes {
        let addresses = plan.address.map_or_else(|| options.address.clone(), |address| vec![address]);
        let device = Device::new(plan);
        let eojs: Vec<_> = device.objects().iter().map(Object::eoj).collect();
        serving.push(link::builder_at(options, &addresses).serve(device).bind().await?);
        let address = plan.address.map(|address| address.to_string());
        for eoj in eojs {
            let at = address.as_deref().unwrap_or("all addresses");
            out.result(
                || json!({ "event": "serving", "address": address, "object": render::object_json(eoj) }),
                || format!("serving {} at {at}", render::object(eoj)),
            )?;
        }
    }
    Ok(serving)
}

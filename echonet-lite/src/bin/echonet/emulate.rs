//! `echonet emulate`: a virtual home from a file.

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
    let wrong = |error: &dyn core::fmt::Display| Failure::Input(format!("{}: {error}", args.file.display()));
    let text = std::fs::read_to_string(&args.file).map_err(|error| wrong(&error))?;
    let home: Home = text.parse().map_err(|error| wrong(&error))?;
    let mut serving: Vec<Endpoint<Device>> = Vec::new();
    for plan in &home.nodes {
        let mut builder = link::builder(options);
        if let Some(address) = plan.address {
            builder = builder.address(address);
        }
        let device = Device::new(plan);
        let eojs: Vec<_> = device.objects().iter().map(Object::eoj).collect();
        serving.push(builder.serve(device).bind().await?);
        let address = plan.address.map(|address| address.to_string());
        for eoj in eojs {
            let at = address.as_deref().unwrap_or("all addresses");
            out.result(
                || json!({ "event": "serving", "address": address, "object": render::object_json(eoj) }),
                || format!("serving {} at {at}", render::object(eoj)),
            )?;
        }
    }
    link::after(options.timeout).await;
    Ok(())
}

//! stub
use crate::{commands::{Serve,Options}, failure::Failure, output::Output};
pub(crate) async fn run(_: &Serve, _: &Options, _: &Output) -> Result<(), Failure> { Ok(()) }

//! stub
use crate::{commands::{Dump,Options}, failure::Failure, output::Output};
pub(crate) async fn run(_: &Dump, _: &Options, _: &Output) -> Result<(), Failure> { Ok(()) }

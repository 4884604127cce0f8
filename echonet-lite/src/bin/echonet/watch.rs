//! stub
use crate::{commands::{Watch,Options}, failure::Failure, output::Output};
pub(crate) async fn run(_: &Watch, _: &Options, _: &Output) -> Result<(), Failure> { Ok(()) }

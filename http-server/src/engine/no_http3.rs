//! In the place of HTTP/3 where it is not built in.

use std::rc::Rc;

use http::HeaderValue;
use server_runtime::{Bound, Error, Running, Shutdown};

use super::worker::Worker;
use crate::options::Options;

/// There is none.
pub(super) enum Gate {}

/// There are none.
pub(super) enum Arrivals {}

pub(super) fn open(options: &Options, _bound: &Bound, _workers: usize) -> Result<Option<(Gate, Arrivals)>, Error> {
    match options.http3 {
        true => Err(Error::Flags("HTTP/3 is not in this build: it needs the feature http3".to_owned())),
        false => Ok(None),
    }
}

impl Gate {
    pub(super) fn alt_svc(&self) -> HeaderValue {
        match *self {}
    }

    pub(super) fn run(self, _running: &mut Running) -> Result<(), Error> {
        match self {}
    }
}

impl Arrivals {
    pub(super) fn serve(&self, _worker: &Rc<Worker>, _shutdown: &Shutdown) {
        match *self {}
    }
}

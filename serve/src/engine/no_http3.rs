//! In the place of HTTP/3 where it is not built in.

use std::io;
use std::rc::Rc;

use http::HeaderValue;
use server_runtime::{Bound, Error, Handle, Shutdown};

use super::app::App;
use super::worker::Worker;
use crate::options::Options;

/// There is none.
pub(super) enum Gate {}

pub(super) fn open(options: &Options, _bound: &Bound, _workers: usize) -> Result<Option<Gate>, Error> {
    match options.http3 {
        true => Err(Error::Flags("HTTP/3 is not in this build: it needs the feature http3".to_owned())),
        false => Ok(None),
    }
}

impl Gate {
    pub(super) fn alt_svc(&self) -> HeaderValue {
        match *self {}
    }

    pub(super) fn starting(&self, _handle: &Handle) {
        match *self {}
    }

    pub(super) fn serve<A: App>(&self, _app: &Rc<A>, _worker: &Rc<Worker>, _shutdown: &Shutdown) -> io::Result<()> {
        match *self {}
    }
}

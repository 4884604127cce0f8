//! A node held against the specification: a table of requests with the answers that are allowed, for the node profile, for
//! every object that it names, and for every property of each by the tables of classes.
//!
//! It speaks by a socket of its own, because some of its messages, sent and read, are ones that no controller would
//! send or accept. The items are those of ECHONET Lite Specification 1.14, Part II, and of the device objects; nothing
//! in it replaces the Consortium's own certification.
//!
//! ```no_run
//! use echonet_lite::certify::{Settings, certify};
//!
//! let report = certify("192.168.1.5".parse()?, &Settings::default())?;
//! for item in report.failed() {
//!     println!("{item}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod items;
mod link;
mod object;
mod pattern;
mod profile;
mod report;

pub use link::{Settings, Transport};
pub use report::{Exchange, Item, Outcome, Report};

use core::net::IpAddr;
use std::io;

use link::{Link, Sockets};

/// Holds the node at an address against the specification.
///
/// It writes: each writable property its own value, impossible values, and the operation status of each device there and back,
/// unless [`Settings::writes`] is false. A request that is not answered is sent again ([`Settings::tries`]): a datagram that was
/// lost is no verdict.
///
/// # Errors
/// The socket cannot be opened. Of an address without a node the report says that none [is there](Report::is_there).
pub fn certify(node: IpAddr, settings: &Settings) -> io::Result<Report> {
    let mut sockets = Sockets::open(node, settings)?;
    let is_shared = sockets.is_shared;
    let mut report = certify_by(&mut sockets, node, settings)?;
    report.is_shared = is_shared;
    Ok(report)
}

/// [`certify`] by another transport than sockets, such as a simulated network in virtual time. The report says that it is about
/// `node`.
///
/// # Errors
/// The transport fails.
pub fn certify_by(transport: &mut dyn Transport, node: IpAddr, settings: &Settings) -> io::Result<Report> {
    let mut link = Link::new(transport, settings);
    let mut report = Report::new(node);
    let is_alive = link.is_alive()?;
    if !is_alive && !link.is_there {
        report.is_there = false;
        return Ok(report);
    }
    let (objects, profile) = profile::examine(&mut link, &mut report)?;
    let mut places = std::vec![profile];
    for eoj in objects {
        places.push(object::examine(&mut link, eoj, &mut report)?);
    }
    // Last, because there are nodes that end by a malformed frame: of these all else is known then.
    for place in &places {
        items::examine_silence(&mut link, place, &mut report)?;
    }
    items::examine_survival(&mut link, &mut report)?;
    report.items.sort_by_key(|item| places.iter().position(|place| place.eoj == item.eoj));
    report.repeated = link.repeated;
    Ok(report)
}

//! Virtual homes: nodes of any classes on the network, with values that change by a script and with faults that real
//! devices have, for tests of controllers, gateways and testers.
//!
//! A [`Home`] is read from TOML, as `echonet emulate FILE.toml` does:
//!
//! ```
//! use echonet_lite::emulate::{Home, Kind};
//!
//! let home: Home = r#"
//! [[node]]
//! address = "127.0.0.2"       # each on an address of its own; without one on all interfaces
//! serial = 7                  # what tells it from others
//!
//! [[node.object]]
//! class = "generalLighting"   # every property of its table is there, with a plausible value
//! instance = 1                # 1 if not given
//! mandatory = true            # only the properties that every device of the class has
//! values = { operationMode = "normal" }
//! script = [{ after = 2.5, set = { operationStatus = "off" } }]   # seconds from the start; announced
//!
//! [[node.object]]
//! class = "lvSmartElectricEnergyMeter"
//! live = true                 # the energy grows with the power, which changes with the hour
//!
//! [[node.fault]]
//! kind = "missing"
//! object = "generalLighting"
//! property = "operationMode"
//! "#
//! .parse()?;
//! assert_eq!(home.nodes[0].faults[0].kind, Kind::Missing);
//! # Ok::<(), echonet_lite::emulate::HomeError>(())
//! ```
//!
//! # Values that change with time
//!
//! Objects with `live = true` change by themselves:
//!
//! - Meters (0280, 0287, 0288, 028D, 028E) and solar power (0279) count the energy of their instantaneous power, in their own unit
//!   and with their coefficient. Half-hour histories are readings of the same count. A power that the plan gives, or that is
//!   written, holds. Otherwise it follows the hour of the day.
//! - Boards (0287) share the power between the channels that B1 and B8 announce. Lists have the range that was chosen.
//! - Storage batteries (027D) charge and discharge as their operation mode says, until they are full or empty.
//! - Blinds, shutters and rain doors (0260, 0261, 0263) move for the operation time (D2), or 20 s, from one end to the other.
//!   They announce that they open, close, arrive or stop.
//!
//! [`Device::starting_at`] sets the clock, which is in universal time.
//!
//! [`Device`] is one node of it, to be served by any endpoint: `Endpoint::builder().serve(Device::new(&home.nodes[0]))`.
#![forbid(unsafe_code)]

mod answer;
mod defaults;
mod device;
mod fault;
mod home;
mod live;
mod object;
mod time;

pub use device::Device;
pub use fault::{Fault, Kind};
pub use home::{Home, HomeError, NodePlan, ObjectPlan, Step};
pub use object::Emulated;
pub use time::Moment;

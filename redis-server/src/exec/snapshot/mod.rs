//! Snapshots: the data of all databases, and the function libraries, in a file, and back.
//!
//! SAVE locks what it saves as a whole meanwhile; BGSAVE and save points let the server go on ([`Background`]). Either way the file
//! shows one moment. A server that was started from its configuration loads the file before it serves, saves at its save
//! points and when it ends; one that is part of another program touches files only when a client says so.

mod automatic;
mod background;
mod encoder;
mod file;
mod files;
mod handover;
mod insert;
mod load;
mod position;
mod save;
mod shutdown;
mod stand_in;
mod state;
mod target;
mod walk;

pub use automatic::{begin_if_due, begin_now, flushed, job};
pub use background::{AtCut, Create, Ended, Job, Record, start, start_now};
pub use encoder::Format;
pub(in crate::exec) use files::delay;
pub use files::{path, size};
#[cfg(test)]
pub(crate) use load::begin_from;
pub(crate) use load::load_alone;
pub use load::{Aside, LoadError, Merge, check_file, empty, is_empty, load, load_aside, load_at_start, load_in_place};
#[cfg(test)]
pub(crate) use save::whole;
pub(crate) use save::{functions_only, write_empty};
pub use save::{locked, save_views};
pub use shutdown::{GOES_ON, Leave, SaveAtEnd, Shutdown, forget_temporary, prepare_shutdown, shut_down};
pub use stand_in::{ARGUMENT as STAND_IN, run as stand_in};
pub use state::{Background, Ending, NoSnapshot, Occupied, Purpose, Running};
pub use target::Target;

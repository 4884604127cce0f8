//! A run as people meet it: the view while it goes on, Ctrl-C, the files, the verdict, the exit code.

mod interrupt;
mod limits;
mod metrics;
mod run;
mod search;
mod view;

pub use interrupt::hold;
pub(crate) use limits::allow_connections;
pub use run::{Exit, Wanted, run, show};
pub use search::{Search, Step};
pub use view::{Show, View};

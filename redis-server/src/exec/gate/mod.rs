//! The way to the data: all workers at once, slow calls beside them, or one thread alone. Global switches take the proof that it is.

mod exclusive;
mod lend;
mod marks;
mod still;
mod units;

pub use exclusive::{Activity, Alone, Busy, Exclusive, Held, Hindered, Inside, Occupation, Slow};
pub(super) use lend::lend;
pub use marks::Marks;
pub use still::{Still, stand_still};
pub use units::{BetweenUnits, Units};

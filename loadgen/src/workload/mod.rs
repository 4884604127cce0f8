//! The keys and values of requests, drawn from a seed.

mod keys;
mod mix;
mod recording;
mod source;
mod template;
mod values;

pub use keys::{Distribution, Keys};
pub use mix::Mix;
pub use recording::{Line, Recording, Words, logged, monitored};
pub use source::Source;
pub use template::{DIGITS, Subjects, Template};
pub use values::{Sizes, Values};

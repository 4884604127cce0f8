//! Device classes as constant tables, and the typed values of their properties.
//!
//! The tables hold the facts of the ECHONET device objects. They are made from one file, `classes.tsv`, when the crate is
//! built. Nothing is built or allocated at run time, and a class that a program does not name is not in it: the linker
//! leaves it out. [`find`], [`by_name`] and [`all`] name all of them.
//!
//! ```
//! use echonet_lite::class;
//!
//! let super_class = class::by_name("common").expect("the super class is always there");
//! let status = super_class.property(0x80).expect("every device has an operation status");
//! assert_eq!(status.short_name, "operationStatus");
//! assert!(status.access.get.is_required());
//! ```
//!
//! Each class has a module with its codes as constants and its properties as types, whose values are right once they are
//! there: `general_lighting::LIGHT_LEVEL`, [`general_lighting::LightLevel`], [`general_lighting::OperationStatus`].
#![forbid(unsafe_code)]

mod data;
mod device_class;
mod index;
mod property;
mod table;
mod tables;
mod typed;
mod value;

pub use data::{Array, Bitmap, Data, Field, Flag, Format, Level, Number, Numeric, State, States, TimeFormat, Unit};
pub use device_class::Class;
pub use property::{Access, PropertyAccess, PropertySpec, Releases, Rule};
pub use tables::*;
pub use typed::{EdtError, Property, Quantity, Record, Spec};
pub use value::{
    Cause, Date, DateTime, Excerpt, Fields, Flags, Items, Json, Named, Scaled, Step, Time, Value, ValueError,
};

#[cfg(feature = "serde")]
pub(crate) use value::parse_text;

use crate::wire::ClassCode;

/// The class with this code.
pub fn find(code: ClassCode) -> Option<&'static Class> {
    index::find(code)
}

/// The class with this short name, whatever the case, or code in hex (`0130`, `0x0130`).
pub fn by_name(name: &str) -> Option<&'static Class> {
    let named = ALL.iter().copied().find(|class| class.short_name.eq_ignore_ascii_case(name));
    named.or_else(|| {
        let [group, class] = device_class::hex(name)?.to_be_bytes();
        find(ClassCode::new(group, class))
    })
}

/// Every class, sorted by code: the super class first, the node profile last.
pub fn all() -> &'static [&'static Class] {
    ALL
}

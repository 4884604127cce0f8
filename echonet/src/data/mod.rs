//! Makers, classes and makers' properties of a file of the user's (`--data`), beside those of the tables.
//!
//! A class with the properties of a maker is a [`Class`] of its own, with the code of the class that it extends. So everything that decodes,
//! encodes or shows properties by their class knows these, too.

mod contents;
mod file;
mod make;
mod types;

use std::path::Path;
use std::sync::OnceLock;

use echonet_lite::class::Class;
#[cfg(feature = "web")]
use echonet_lite::class::PropertySpec;
use echonet_lite::wire::ClassCode;

use contents::{Data, Variant};

use crate::failure::Failure;

/// The data of the file that the command was started with; empty without one.
static DATA: OnceLock<Data> = OnceLock::new();

/// Reads the file, once, at the start of the command.
///
/// # Errors
/// The file cannot be read, or has a mistake.
pub(crate) fn load(file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let failed = |why: &dyn std::fmt::Display| Failure::Input(format!("--data {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    let data = make::data(&text).map_err(|mistake| failed(&mistake))?;
    // The command loads one file.
    let _ = DATA.set(data);
    Ok(())
}

fn data() -> Option<&'static Data> {
    DATA.get()
}

/// The name of a maker.
pub(crate) fn maker(code: [u8; 3]) -> Option<&'static str> {
    data()?.makers.get(&code).copied()
}

/// The user's own classes.
pub(crate) fn classes() -> &'static [&'static Class] {
    data().map_or(&[], |data| &data.classes)
}

/// The user's own class of a code.
pub(crate) fn class(code: ClassCode) -> Option<&'static Class> {
    classes().iter().copied().find(|class| class.code == code)
}

/// True if some class has properties of a maker.
pub(crate) fn has_variants() -> bool {
    data().is_some_and(|data| !data.variants.is_empty())
}

/// True if a class has properties of a maker.
pub(crate) fn varies(code: ClassCode) -> bool {
    variants(code).next().is_some()
}

/// The class with the properties that a maker's devices, or those of a product code (0x8C), have besides its own. The class itself if the
/// file has none of this maker.
pub(crate) fn variant(class: &'static Class, maker: Option<[u8; 3]>, product: Option<&[u8]>) -> &'static Class {
    data().map_or(class, |data| data.variant(class, maker, product))
}

/// True if the file has a property of this name for some devices of a class.
#[cfg(feature = "mqtt")]
pub(crate) fn names_property(code: ClassCode, name: &str) -> bool {
    variants(code).any(|variant| variant.class.property_by_name(name).is_some())
}

/// The devices of a class that the file has a property of this name for, as people know them; none if it has none.
pub(crate) fn devices_with(code: ClassCode, name: &str) -> Option<String> {
    let variant = variants(code).find(|variant| variant.class.property_by_name(name).is_some())?;
    let [a, b, c] = variant.maker;
    let product = variant.product.as_ref().map(|product| format!(", product {product}"));
    Some(format!("maker {a:02X}{b:02X}{c:02X}{}", product.unwrap_or_default()))
}

/// True for the properties of a class that the file has, and not the tables.
#[cfg(feature = "mqtt")]
pub(crate) fn is_users(class: &Class, epc: u8) -> bool {
    let has = |variant: &Variant| std::ptr::eq(variant.class, class) && variant.own.contains(epc);
    data().is_some_and(|data| {
        let is_own = data.classes.iter().any(|own| std::ptr::eq(*own, class));
        data.variants.iter().any(has) || (is_own && class.properties.iter().any(|spec| spec.epc == epc))
    })
}

/// The properties that devices of a class have by the file, with the codes of their makers.
#[cfg(feature = "web")]
pub(crate) fn of_makers(code: ClassCode) -> impl Iterator<Item = ([u8; 3], &'static PropertySpec)> {
    let of = |variant: &'static Variant| {
        let own = variant.class.properties.iter().filter(|spec| variant.own.contains(spec.epc));
        own.map(|spec| (variant.maker, spec))
    };
    variants(code).flat_map(of)
}

fn variants(code: ClassCode) -> impl Iterator<Item = &'static Variant> {
    data().into_iter().flat_map(|data| &data.variants).filter(move |variant| variant.class.code == code)
}

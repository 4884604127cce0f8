//! Writes a module for each class: its codes as constants, and its properties as types.

use std::collections::HashSet;

use crate::facts::{Class, Data, Flag, Property, State};
use crate::names::{constant, module, pascal, snake};
use crate::tables::{Statics, join, line};

/// The modules of all classes; the paths of all types.
pub(crate) fn modules(out: &mut String, classes: &[Class], statics: &mut Statics) -> Vec<String> {
    let mut paths = Vec::new();
    let super_class = classes.iter().find(|class| class.code == 0).expect("the super class is there");
    for class in classes {
        let Class { code, short_name, names: [english, japanese], .. } = class;
        let name = module(short_name);
        let is_device = !matches!(code, 0x0000 | 0x0EF0);
        line(out, &format!("/// {english} ({japanese}), class 0x{code:04X}: its codes, and its properties as types."));
        line(out, &format!("pub mod {name} {{ pub use super::{};", constant(&name)));
        if is_device {
            line(out, "#[doc(no_inline)] pub use super::super_class::*;");
        }
        let mut specs = String::new();
        let mut taken = HashSet::new();
        for property in class.properties.iter().filter(|property| !property.is_superseded()) {
            // A property that a class has in the form of the super class is one type for all devices.
            let is_inherited = |other: &Property| {
                (other.epc, &other.short_name, &other.data) == (property.epc, &property.short_name, &property.data)
            };
            if is_device && super_class.properties.iter().any(|other| !other.is_superseded() && is_inherited(other)) {
                continue;
            }
            assert!(taken.insert(pascal(&property.short_name)), "{short_name}: two {}", property.short_name);
            paths.push(format!("{name}::{}", pascal(&property.short_name)));
            constants(out, property);
            type_of(out, &mut specs, class, property, statics);
        }
        if !specs.is_empty() {
            line(out, &format!("#[doc(hidden)] pub mod spec {{ use super::super::*; {specs} }}"));
        }
        line(out, "}");
    }
    paths
}

fn constants(out: &mut String, property: &Property) {
    line(out, &doc(property));
    line(out, &format!("pub const {}: u8 = {:#04X};", constant(&property.short_name), property.epc));
}

/// The documentation of a property; its names are no Markdown.
fn doc(property: &Property) -> String {
    let [english, japanese] = &property.names;
    let text = format!("{english} ({japanese}), 0x{:02X}.", property.epc);
    let escaped = text.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<");
    format!("#[doc = {escaped:?}]")
}

fn type_of(out: &mut String, specs: &mut String, class: &Class, property: &Property, statics: &mut Statics) {
    let name = pascal(&property.short_name);
    let Property { epc, data, .. } = property;
    if let Data::State { size, all } = data
        && matches!(size, 1 | 2 | 4)
        && all.iter().all(|state| state.code == state.last)
    {
        return enumeration(out, class.code, property, *size, all);
    }
    let arms = data.arms();
    let [least, most] = data.sizes();
    let is_code =
        |arm: &Data| matches!(arm, Data::Number { .. } | Data::Numeric(_) | Data::State { .. } | Data::Level { .. });
    let family = if least == most && most <= 4 && arms.iter().all(is_code) {
        format!("Quantity<spec::{name}>")
    } else {
        format!("Record<spec::{name}, {most}>")
    };
    line(out, &doc(property));
    line(out, &format!("pub type {name} = super::{family};"));
    line(
        specs,
        &format!(
            "#[derive(Debug)] pub enum {name} {{}} impl Spec for {name} {{ const EPC: u8 = {epc:#04X}; const CLASS: ClassCode = \
         ClassCode::from_u16({:#06X}); const DATA: &'static Data = {}; }}",
            class.code,
            statics.reference(data)
        ),
    );
    match data {
        Data::Bitmap { flags, .. } => bits(out, &name, most, flags),
        _ if family.starts_with('Q') => named_codes(out, &name, arms),
        _ => {}
    }
}

/// States alone: an enum.
fn enumeration(out: &mut String, class: u16, property: &Property, size: usize, all: &[State]) {
    let is_switch = matches!(all, [State { code: 0x30, name: on, .. }, State { code: 0x31, name: off, .. }] if on == "true" && off == "false");
    let mut taken = HashSet::new();
    let variants: Vec<(String, &State)> = all
        .iter()
        .map(|state| {
            let name = match (is_switch, state.name.as_str()) {
                (true, "true") => "On".to_owned(),
                (true, _) => "Off".to_owned(),
                (false, name) => pascal(name),
            };
            // Several codes of one name are told apart by the code.
            let name = if taken.contains(&name) { format!("{name}{:02X}", state.code) } else { name };
            assert!(taken.insert(name.clone()), "two states {name}");
            (name, state)
        })
        .collect();
    let name = pascal(&property.short_name);
    let list = variants.iter().map(|(name, state)| format!("{name} = {:#04X},", state.code)).collect::<String>();
    let fixed = join(variants.iter().filter(|(_, state)| state.read_only).map(|(name, _)| name.clone()));
    let (bits, epc) = (size * 8, property.epc);
    line(
        out,
        &format!(
            "super::states! {{ {} {name}, u{bits}, {class:#06X}, {epc:#04X}, {{ {list} }}, [{fixed}] }}",
            doc(property)
        ),
    );
    for [on, off] in [["On", "Off"], ["True", "False"]] {
        if variants.len() == 2 && variants.iter().all(|(name, _)| name == on || name == off) {
            line(
                out,
                &format!(
                    "impl From<bool> for {name} {{ fn from(is: bool) -> Self {{ if is {{ Self::{on} }} else {{ Self::{off} }} }} }} \
                 impl From<{name}> for bool {{ fn from(value: {name}) -> Self {{ value == {name}::{on} }} }}"
                ),
            );
        }
    }
}

/// The states beside numbers and levels: constants.
fn named_codes(out: &mut String, name: &str, arms: &[Data]) {
    let mut taken = HashSet::new();
    let mut constants = String::new();
    for arm in arms {
        let Data::State { all, .. } = arm else { continue };
        for state in all.iter().filter(|state| state.code == state.last) {
            if taken.insert(&state.name) {
                let what = pascal(&state.name);
                let constant = constant(&what);
                line(&mut constants, &format!("/// `{}`, {:#04X}.", state.name, state.code));
                line(&mut constants, &format!("pub const {constant}: Self = Self::raw({:#04X});", state.code));
            }
        }
    }
    if !constants.is_empty() {
        line(out, &format!("impl super::Quantity<spec::{name}> {{ {constants} }}"));
    }
}

/// The bits of a bitmap: one bit as `bool`, several as their number.
fn bits(out: &mut String, name: &str, size: usize, flags: &[Flag]) {
    line(
        out,
        &format!("impl super::Record<spec::{name}, {size}> {{ /// All bits 0.\npub const EMPTY: Self = Self::zeros();"),
    );
    for Flag { index, mask, name, .. } in flags {
        let method = snake(name);
        let (kind, read, write) = if mask.count_ones() == 1 { ("bool", " != 0", "is as u8") } else { ("u8", "", "is") };
        line(
            out,
            &format!(
                "/// The bits `{name}`.\npub const fn {method}(&self) -> {kind} {{ self.bits({index}, {mask:#04X}){read} }}\n\
             /// This value with the bits `{name}` set so.\n#[must_use]\n\
             pub const fn with_{method}(self, is: {kind}) -> Self {{ self.with_bits({index}, {mask:#04X}, {write}) }}"
            ),
        );
    }
    line(out, "}");
}

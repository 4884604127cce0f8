//! The share of the chip that an image takes, by owner.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use addr2line::Loader;
use anyhow::{Context, Result, anyhow};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, SymbolKind};

/// The bytes of an image, by owner.
pub(super) struct Image {
    flash: u64,
    ram: u64,
    parts: BTreeMap<Owner, u64>,
    symbols: Vec<(u64, String)>,
}

/// The owner of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// wire, node and class.
    Library,
    /// `core` and what the compiler calls, such as memcpy.
    Core,
    /// Other crates: embassy, smoltcp and what they use.
    Others,
    /// Strings, and what tables point to.
    Constants,
    /// The example: its object, its line, the board.
    Light,
}

impl Image {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(&*bytes).with_context(|| format!("{} is no ELF file", path.display()))?;
        let mut image = Self { flash: 0, ram: 0, parts: BTreeMap::new(), symbols: Vec::new() };
        for section in file.sections().filter(|section| is_loaded(section.flags())) {
            let writable = matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData);
            // Statics with a value lie in both: RAM holds them, flash brings the value.
            image.ram += if writable { section.size() } else { 0 };
            image.flash += if section.kind() == SectionKind::UninitializedData { 0 } else { section.size() };
        }
        // Its error is no `std::error::Error`.
        let lines = Loader::new(path).map_err(|error| anyhow!("no line tables in {}: {error}", path.display()))?;
        // Several names of one address are one function.
        let mut seen = BTreeSet::new();
        for symbol in file.symbols().filter(|symbol| symbol.size() > 0) {
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name()?));
            // The lowest bit says Thumb.
            let (start, size) = (symbol.address() & !1, symbol.size());
            if symbol.kind() == SymbolKind::Text && seen.insert(start) {
                for half_word in (start..start + size).step_by(2) {
                    *image.parts.entry(owner_of_code(&lines, half_word, &name)).or_default() += 2;
                }
                image.symbols.push((size, name));
            }
        }
        let code: u64 = image.parts.values().sum();
        image.parts.insert(Owner::Constants, image.flash.saturating_sub(code));
        image.symbols.sort_by(|a, b| b.cmp(a));
        Ok(image)
    }

    /// Bytes of statics.
    pub(super) fn ram(&self) -> u64 {
        self.ram
    }

    /// Bytes of code and constants without the example itself: what a device pays for the library.
    pub(super) fn library_flash(&self) -> u64 {
        self.flash - self.part(Owner::Light)
    }

    /// Bytes of the crate's code and of all constants, beside what others bring.
    pub(super) fn own_flash(&self) -> u64 {
        self.part(Owner::Library) + self.part(Owner::Constants)
    }

    /// Prints totals, parts, and the `largest` functions.
    pub(super) fn print(&self, largest: usize) {
        println!("flash: {:6} bytes, without the light itself {}", self.flash, self.library_flash());
        for (owner, name) in [
            (Owner::Library, "wire, node, class: code"),
            (Owner::Constants, "class tables and other constants"),
            (Owner::Core, "core and what the compiler calls"),
            (Owner::Others, "other crates: code"),
            (Owner::Light, "the light, its line and its board: code"),
        ] {
            println!("       {:6} {name}", self.part(owner));
        }
        println!("RAM:   {:6} bytes of statics", self.ram);
        for (size, name) in self.symbols.iter().take(largest) {
            println!("{size:6} {name}");
        }
    }

    fn part(&self, owner: Owner) -> u64 {
        self.parts.get(&owner).copied().unwrap_or(0)
    }
}

/// The owner of the source that an instruction comes from. Functions are inlined across crates, so that the name of the function around it
/// says little: what counts is the innermost inlined source that is not of `core`.
fn owner_of_code(lines: &Loader, address: u64, around: &str) -> Owner {
    if let Ok(mut frames) = lines.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            match frame.location.and_then(|location| location.file).map(owner_of_file) {
                None | Some(Owner::Core) => {}
                Some(owner) => return owner,
            }
        }
    }
    owner_of_name(around)
}

fn owner_of_file(path: &str) -> Owner {
    if path.contains("light-node/src/") {
        Owner::Light
    } else if path.contains("echonet-lite/src/") {
        Owner::Library
    } else if path.contains("/registry/src/") {
        Owner::Others
    } else {
        Owner::Core
    }
}

fn owner_of_name(name: &str) -> Owner {
    match crate_of(name) {
        "echonet_lite" => Owner::Library,
        "core" | "compiler_builtins" | "memcpy" | "memset" | "memmove" | "memcmp" | "bcmp" => Owner::Core,
        name if name.starts_with("__aeabi") => Owner::Core,
        _ => Owner::Light,
    }
}

/// The crate that a demangled path begins with, also in `<crate::Type as other::Trait>::function`.
pub(super) fn crate_of(name: &str) -> &str {
    let path = name.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let path = path.strip_prefix("mut ").unwrap_or(path);
    path.split("::").next().unwrap_or(path)
}

fn is_loaded(flags: SectionFlags) -> bool {
    matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & object::elf::SHF_ALLOC.0 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_the_crate_of_their_path() {
        let check = |name: &str, expected: Owner| assert_eq!(owner_of_name(name), expected, "{name}");
        check("echonet_lite::wire::frame::parse", Owner::Library);
        check("<echonet_lite::node::Node<light_serial::Light>>::handle", Owner::Library);
        check("<light_serial::Light as echonet_lite::node::Object>::get", Owner::Light);
        check("<&mut echonet_lite::wire::Eoj as core::fmt::Display>::fmt", Owner::Library);
        check("core::slice::index::slice_index_fail", Owner::Core);
        check("__aeabi_memcpy4", Owner::Core);
        check("main", Owner::Light);
    }
}

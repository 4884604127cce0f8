//! Libraries of functions, by name.

use std::collections::{BTreeMap, HashMap};

use super::raw::Ref;
use super::shebang::ScriptFlags;

/// The error for an invalid name.
pub(super) const BAD_NAME: &str =
    "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// A library: code that has registered functions.
#[derive(Clone, Debug)]
pub struct Library {
    /// Its name.
    pub name: Vec<u8>,
    /// Its code, with the first line.
    pub code: Box<[u8]>,
    /// Its functions.
    pub functions: Vec<Function>,
}

/// A function of a library.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, unique among all libraries.
    pub name: Vec<u8>,
    /// Its own description.
    pub description: Option<Vec<u8>>,
    /// Its declared flags.
    pub flags: ScriptFlags,
    pub(super) callback: Ref,
}

/// All libraries.
#[derive(Debug, Default)]
pub struct Libraries {
    libraries: BTreeMap<Vec<u8>, Library>,
    /// The library of each function, whose name is in lower case here, and the function's place in it.
    functions: HashMap<Vec<u8>, (Vec<u8>, usize)>,
}

/// Whether a library or function may have this name.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

impl Libraries {
    /// Their number.
    pub fn count(&self) -> usize {
        self.libraries.len()
    }

    /// Number of their functions.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Bytes that their code and names take.
    pub fn bytes(&self) -> usize {
        let of_function = |function: &Function| function.name.len() + size_of::<Function>();
        let of_library = |library: &Library| {
            library.name.len() + library.code.len() + library.functions.iter().map(of_function).sum::<usize>()
        };
        self.libraries.values().map(of_library).sum()
    }

    /// The libraries, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Library> {
        self.libraries.values()
    }

    /// The library of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Library> {
        self.libraries.get(name)
    }

    /// The function of this name, in any case of letters.
    pub fn find(&self, name: &[u8]) -> Option<&Function> {
        let (library, at) = self.functions.get(&name.to_ascii_lowercase())?;
        self.libraries.get(library)?.functions.get(*at)
    }

    /// Name of the library that the function of this name belongs to.
    pub(super) fn find_with_library(&self, name: &[u8]) -> Option<&[u8]> {
        self.functions.get(&name.to_ascii_lowercase()).map(|(library, _)| library.as_slice())
    }

    pub(super) fn add(&mut self, library: Library) {
        for (at, function) in library.functions.iter().enumerate() {
            self.functions.insert(function.name.to_ascii_lowercase(), (library.name.clone(), at));
        }
        self.libraries.insert(library.name.clone(), library);
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Library> {
        let library = self.libraries.remove(name)?;
        for function in &library.functions {
            self.functions.remove(&function.name.to_ascii_lowercase());
        }
        Some(library)
    }

    pub(super) fn take(&mut self) -> Vec<Library> {
        self.functions.clear();
        std::mem::take(&mut self.libraries).into_values().collect()
    }
}

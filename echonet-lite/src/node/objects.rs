//! The objects of a node, if there are several.

use super::{Object, PropertyAccess, Refused};
use crate::wire::Eoj;

/// The objects of a node, in the order in which they are announced and answer: `[Light; 3]`, `[&mut dyn Object; 2]`,
/// `&mut [&mut dyn Object]`, and with std `Vec<Box<dyn Object + Send>>`.
pub trait Objects {
    /// How many there are.
    fn len(&self) -> usize;

    /// The object at `index`.
    fn get(&self, index: usize) -> Option<&dyn Object>;

    /// The object at `index`.
    fn get_mut(&mut self, index: usize) -> Option<&mut dyn Object>;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first object at `from` or behind it that a message to `deoj` is for. The default looks at each; a collection of
    /// hundreds may know better.
    #[inline]
    fn find(&self, deoj: Eoj, from: usize) -> Option<usize> {
        (from..self.len()).find(|&index| self.get(index).is_some_and(|object| deoj.addresses(object.eoj())))
    }
}

impl<O: Object> Objects for [O] {
    #[inline]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&dyn Object> {
        <[O]>::get(self, index).map(|object| object as &dyn Object)
    }

    #[inline]
    fn get_mut(&mut self, index: usize) -> Option<&mut dyn Object> {
        <[O]>::get_mut(self, index).map(|object| object as &mut dyn Object)
    }

    #[inline]
    fn find(&self, deoj: Eoj, from: usize) -> Option<usize> {
        let rest = self.get(from..)?;
        rest.iter().position(|object| deoj.addresses(object.eoj())).map(|index| from + index)
    }
}

/// Passes every method on to the slice of all objects.
macro_rules! objects_by_slice {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> Objects for $type {
            #[inline]
            fn len(&self) -> usize {
                self[..].len()
            }

            #[inline]
            fn get(&self, index: usize) -> Option<&dyn Object> {
                Objects::get(&self[..], index)
            }

            #[inline]
            fn get_mut(&mut self, index: usize) -> Option<&mut dyn Object> {
                Objects::get_mut(&mut self[..], index)
            }

            #[inline]
            fn find(&self, deoj: Eoj, from: usize) -> Option<usize> {
                Objects::find(&self[..], deoj, from)
            }
        }
    };
}

objects_by_slice!([O: Object, const N: usize] [O; N]);
objects_by_slice!([O: Object] &mut [O]);
#[cfg(feature = "std")]
objects_by_slice!([O: Object] std::vec::Vec<O>);

/// A pointer to an object is an object.
macro_rules! object_by_pointer {
    ($pointer:ty) => {
        impl<O: Object + ?Sized> Object for $pointer {
            fn eoj(&self) -> Eoj {
                (**self).eoj()
            }

            fn access(&self) -> &PropertyAccess {
                (**self).access()
            }

            fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
                (**self).get(epc, edt)
            }

            fn check(&self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
                (**self).check(epc, edt)
            }

            fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
                (**self).set(epc, edt)
            }
        }
    };
}

object_by_pointer!(&mut O);
#[cfg(feature = "std")]
object_by_pointer!(std::boxed::Box<O>);

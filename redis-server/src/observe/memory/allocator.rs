//! Mimalloc's statistics, and its release of free memory. In a process that has another allocator it has nothing to say and nothing to
//! give.
#![allow(unsafe_code, reason = "mimalloc is written in C")]

use std::ffi::{CStr, c_char, c_void};

use libmimalloc_sys::{mi_collect, mi_stats_print_out, mi_version};

/// Longest report: several times what a version prints, which does not grow with what is allocated.
const REPORT_MAX: usize = 32 * 1024;

/// Has the allocator give back to the system what this thread does not use any more: all of it at once, or as a rule what has been
/// free for a second, without going through pages that are full.
pub fn give_back(all: bool) {
    // SAFETY: any thread may call it at any time; it takes no pointer.
    unsafe { mi_collect(all) };
}

/// The allocator's name and version.
pub fn version() -> String {
    // SAFETY: it returns a constant, two digits for each of minor version and patch.
    let number = unsafe { mi_version() };
    format!("mimalloc-{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}

/// The allocator's report on its pages and arenas, as it prints it.
pub fn report() -> String {
    let mut text = Vec::<u8>::with_capacity(REPORT_MAX);
    let place: *mut Vec<u8> = &mut text;
    // SAFETY: `append` is called by this thread during this call alone, with `place`, which lives longer and is not touched
    // meanwhile.
    unsafe { mi_stats_print_out(Some(append), place.cast()) };
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends a piece of the report to the `Vec<u8>` at `place`, as far as it has room: nothing is allocated while the
/// allocator speaks.
///
/// # Safety
/// `piece` is a string that ends in a zero byte, `place` a vector that nobody else uses.
unsafe extern "C" fn append(piece: *const c_char, place: *mut c_void) {
    // SAFETY: the caller's promise.
    let (piece, text) = unsafe { (CStr::from_ptr(piece).to_bytes(), &mut *place.cast::<Vec<u8>>()) };
    let room = text.capacity() - text.len();
    text.extend_from_slice(&piece[..piece.len().min(room)]);
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc as _, Layout};

    use server_runtime::Allocator;

    use super::*;

    #[test]
    fn it_reports_what_it_holds_and_gives_it_back() {
        let layout = Layout::from_size_align(1 << 20, 8).unwrap();
        // SAFETY: the layout is not empty, and each block is freed once with it.
        unsafe {
            let blocks: Vec<_> = (0..64).map(|_| Allocator.alloc_zeroed(layout)).collect();
            let report = report();
            for part in ["pages", "committed", "process"] {
                assert!(report.contains(part), "{part} in\n{report}");
            }
            assert!(report.len() < REPORT_MAX / 2, "{} bytes", report.len());
            blocks.into_iter().for_each(|block| Allocator.dealloc(block, layout));
        }
        give_back(true);
        let version = version();
        assert!(version.starts_with("mimalloc-3."), "{version}");
    }

    #[test]
    fn listpacks_grow_to_its_sizes() {
        for bytes in 9..100_000 {
            // SAFETY: any number may be asked about.
            let size = unsafe { libmimalloc_sys::mi_good_size(bytes) };
            assert_eq!(crate::types::allocated(bytes), size, "{bytes}");
        }
    }

    #[test]
    fn a_report_that_is_too_long_is_cut() {
        let mut text = Vec::<u8>::with_capacity(8);
        let place: *mut Vec<u8> = &mut text;
        for _ in 0..5 {
            // SAFETY: a C string, and a vector that is not used meanwhile.
            unsafe { append(c"abc".as_ptr(), place.cast()) };
        }
        assert_eq!((text.len(), &text[..8]), (text.capacity(), &b"abcabcab"[..]));
    }
}

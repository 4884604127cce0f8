//! The servers' allocator.
#![allow(unsafe_code, reason = "an allocator hands out pointers, and mimalloc is written in C")]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{mi_malloc, mi_realloc, mi_zalloc};
use mimalloc::MiMalloc;

/// Alignment of mimalloc's plain blocks (bytes), except blocks smaller than that: those are aligned to their size.
///
/// Source: `MI_MAX_ALIGN_SIZE` of mimalloc.
const PLAIN: usize = 16;

/// mimalloc. An aligned block is asked for only where a plain one would not do. `mimalloc::MiMalloc` always asks for aligned blocks,
/// which take more instructions.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: server_runtime::Allocator = server_runtime::Allocator;
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

/// True if each plain block of this size (bytes) has this alignment (bytes).
#[inline]
const fn is_plain(size: usize, align: usize) -> bool {
    align <= PLAIN && align <= size
}

// SAFETY: mimalloc's blocks are as large as asked for, and unique until they are freed. Plain ones have the alignment by `is_plain`, others
// by `MiMalloc`; `mi_free` takes both.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            unsafe { mi_malloc(layout.size()) }.cast()
        } else {
            // SAFETY: the caller's promise.
            unsafe { MiMalloc.alloc(layout) }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            unsafe { mi_zalloc(layout.size()) }.cast()
        } else {
            // SAFETY: the caller's promise.
            unsafe { MiMalloc.alloc_zeroed(layout) }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; the block is of mimalloc.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if is_plain(new_size, layout.align()) {
            // SAFETY: the caller's promise; the block is of mimalloc. A block that stays where it is has its alignment already.
            unsafe { mi_realloc(block.cast(), new_size) }.cast()
        } else {
            // SAFETY: the caller's promise; the block is of mimalloc.
            unsafe { MiMalloc.realloc(block, layout, new_size) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size and alignment that may be plain, and some that may not: blocks are aligned, zeroed where asked, and keep their bytes when
    /// they grow and shrink.
    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in (1..=300).chain([1000, 4096, 100_000, 1 << 20]) {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: no layout is empty, writes stay within the blocks, and each block is freed once.
                unsafe {
                    let zeroed = Allocator.alloc_zeroed(layout);
                    assert!(std::slice::from_raw_parts(zeroed, size).iter().all(|byte| *byte == 0), "{layout:?}");
                    let mut blocks: Vec<_> = (0..4).map(|_| Allocator.alloc(layout)).collect();
                    blocks.push(zeroed);
                    for (number, block) in blocks.into_iter().enumerate() {
                        assert!(block.addr().is_multiple_of(align), "{layout:?}");
                        block.write_bytes(number as u8, size);
                        let mut layout = layout;
                        let mut block = block;
                        for new_size in [size + 1, size * 3, 1.max(size / 2), 1] {
                            block = Allocator.realloc(block, layout, new_size);
                            assert!(block.addr().is_multiple_of(align), "{layout:?} to {new_size}");
                            let kept = std::slice::from_raw_parts(block, new_size.min(layout.size()));
                            assert!(kept.iter().all(|byte| *byte == number as u8), "{layout:?} to {new_size}");
                            block.write_bytes(number as u8, new_size);
                            layout = Layout::from_size_align(new_size, align).unwrap();
                        }
                        Allocator.dealloc(block, layout);
                    }
                }
            }
        }
    }
}

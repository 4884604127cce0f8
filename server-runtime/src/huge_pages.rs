//! Whether the kernel may back this process' memory with huge pages.

/// Allows transparent huge pages for this process, or forbids them: before the first large allocation, because what is
/// mapped already stays as it is. Where the kernel cannot be told, a line on standard error says so and nothing changes; systems
/// other than Linux are left alone.
///
/// Source: `PR_SET_THP_DISABLE` of prctl(2).
pub fn allow_huge_pages(allowed: bool) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!allowed) {
        eprintln!("huge pages stay as they are: {error}");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = allowed;
}

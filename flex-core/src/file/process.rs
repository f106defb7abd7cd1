//! Telling a forked child from the process that opened the space.
//!
//! One page of memory that the kernel empties in a forked child (`MADV_WIPEONFORK`): it holds 1 here and 0 there.
//! No handler stays in the host, and asking costs one load. Where the kernel refuses the advice, process ids are compared.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Knows in which process it was made.
pub struct ForkGuard {
    page: Option<NonNull<AtomicU64>>,
    pid: u32,
}

const PAGE: usize = 4096;

// SAFETY: the page is only ever read and written through an atomic.
unsafe impl Send for ForkGuard {}
// SAFETY: as above.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// A guard of this process.
    pub fn new() -> ForkGuard {
        ForkGuard { page: wiped_on_fork(), pid: std::process::id() }
    }

    /// Whether this is another process than the one that made the guard.
    #[inline]
    pub fn is_forked(&self) -> bool {
        match self.page {
            // SAFETY: the page is mapped until the guard is dropped, and aligned as a page.
            Some(page) => unsafe { page.as_ref() }.load(Ordering::Relaxed) == 0,
            None => std::process::id() != self.pid,
        }
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        if let Some(page) = self.page {
            // SAFETY: it was mapped by `wiped_on_fork` with this length, and nobody refers to it any more.
            unsafe { libc::munmap(page.as_ptr().cast(), PAGE) };
        }
    }
}

fn wiped_on_fork() -> Option<NonNull<AtomicU64>> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new private mapping touches no other memory; its result is checked before use.
    let page = unsafe {
        let page = libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return None;
        }
        if libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) != 0 {
            libc::munmap(page, PAGE);
            return None;
        }
        NonNull::new(page.cast::<AtomicU64>())?
    };
    // SAFETY: mapped just now, zeroed, aligned, and shared with nobody yet.
    unsafe { page.as_ref() }.store(1, Ordering::Relaxed);
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_knows() {
        let guard = ForkGuard::new();
        assert!(!guard.is_forked());
        // SAFETY: the child only loads a word and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: leaves without running anything of the parent's.
            unsafe { libc::_exit(if guard.is_forked() { 42 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: waits for the child above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 42);
    }
}

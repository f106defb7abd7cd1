//! Functions for the C tests only: not in the header, exported under the feature `test_hooks`.

#![allow(unsafe_code)] // `no_mangle`

use crate::panic::guarded;

/// Panics, to prove that a panic becomes a status.
#[unsafe(no_mangle)]
pub extern "C" fn flexfile_test_panic() -> i32 {
    guarded! { panic!("asked for by flexfile_test_panic") }
}

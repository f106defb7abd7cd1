//! FlexFile's engine: files whose bytes can be inserted and removed anywhere in O(log N).
//!
//! Layers, arrows downward only: `file` -> `tree` -> { `codec`, `io`, `error` }.
//! `tree` is pure (no I/O, no locks, no clock); `file` reaches the disk only through the `io` traits.

pub mod address;
pub mod codec;
pub mod error;
pub mod file;
pub mod io;
pub mod limits;
pub mod options;
pub mod stats;
mod sync;
pub mod tree;

pub use error::{Error, ErrorKind, Result};

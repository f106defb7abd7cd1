//! The locks of the small state machines that are model-checked: `parking_lot`'s here.
//!
//! fuzz/shuttle compiles those modules (`file/writer_lock.rs`, `file/wake.rs`) with a module of this name over shuttle's locks,
//! so they name nothing else to wait with. Everything else takes `parking_lot` directly.

pub use parking_lot::{Condvar, Mutex, MutexGuard};
pub use std::sync::atomic::{AtomicBool, Ordering};
pub use std::thread::{ThreadId, current};

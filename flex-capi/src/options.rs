//! Options for opening: an opaque builder with defaults that suit most programs.

#![allow(unsafe_code)]

use crate::ffi;
use crate::panic::guarded;
use crate::status::FLEXFILE_OK;
use flex_core::file::{Durability, LogCallback, LogLevel, SpaceOptions};
use flex_core::{Error, Result};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

/// How to open a space. The functions that open take a copy; one builder serves any number of them.
pub struct flexfile_options {
    options: SpaceOptions,
}

/// Open only what exists: FLEXFILE_NOT_FOUND otherwise. By default a missing space is created.
pub const FLEXFILE_OPEN_EXISTING: u32 = 1;
/// Create only: FLEXFILE_ALREADY_EXISTS when there is a space. Not together with the other two FLEXFILE_OPEN_* flags
/// about existence and reading.
pub const FLEXFILE_OPEN_EXCLUSIVE: u32 = 2;
/// For reading only; any number of processes may do so at once. Implies FLEXFILE_OPEN_EXISTING.
pub const FLEXFILE_OPEN_READ_ONLY: u32 = 4;
/// Start no thread for upkeep (idle sync, checkpoints, GC): the calls that write do it in passing, or you do, with
/// sync, checkpoint and gc.
pub const FLEXFILE_OPEN_NO_BACKGROUND: u32 = 8;

/// What the calls since the last flush or sync wrote may be lost with the machine; the state is a prefix of the calls.
pub const FLEXFILE_DURABILITY_MANUAL: i32 = 0;
/// Each call that writes is durable when it returns.
pub const FLEXFILE_DURABILITY_EVERY_COMMIT: i32 = 1;
/// A sync in the background, at most interval_ms after a call that wrote.
pub const FLEXFILE_DURABILITY_INTERVAL: i32 = 2;

/// Log level: something failed.
pub const FLEXFILE_LOG_ERROR: i32 = 1;
/// Log level: something needs attention.
pub const FLEXFILE_LOG_WARNING: i32 = 2;
/// Log level: what the library does by itself.
pub const FLEXFILE_LOG_INFO: i32 = 3;

/// Receives the library's log lines. level: FLEXFILE_LOG_*. text: UTF-8, valid during the call only.
///
/// It is called from any thread, the library's own included, and from several at once; it must not call the library,
/// throw, or longjmp.
pub type flexfile_log_callback = Option<unsafe extern "C" fn(ctx: *mut c_void, level: i32, text: *const c_char)>;

/// Makes a builder with the defaults: create when missing, FLEXFILE_DURABILITY_MANUAL, segments of 4 MiB, upkeep in the
/// background, no log. Free it with flexfile_options_free().
///
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any; the builder itself is for one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_options_new(out_options: *mut *mut flexfile_options) -> i32 {
    guarded! {
        ffi::out(out_options, "out_options")?.write_handle(flexfile_options { options: SpaceOptions::default() });
        Ok(FLEXFILE_OK)
    }
}

/// Frees a builder and sets the variable to NULL. Spaces opened with it are not affected. NULL does nothing.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_options_free(options: *mut *mut flexfile_options) {
    guarded! {
        drop(ffi::take(options, "options")?);
        Ok(FLEXFILE_OK)
    };
}

/// Sets the flags: FLEXFILE_OPEN_* joined by |, in place of those set before.
///
/// Errors: FLEXFILE_INVALID_ARGUMENT for an unknown flag, or FLEXFILE_OPEN_EXCLUSIVE beside FLEXFILE_OPEN_EXISTING or
/// FLEXFILE_OPEN_READ_ONLY; the builder is unchanged then. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_options_set_flags(options: *mut flexfile_options, flags: u32) -> i32 {
    guarded! {
        let options = &mut ffi::handle_mut(options, "options")?.options;
        let unknown = flags
            & !(FLEXFILE_OPEN_EXISTING
                | FLEXFILE_OPEN_EXCLUSIVE
                | FLEXFILE_OPEN_READ_ONLY
                | FLEXFILE_OPEN_NO_BACKGROUND);
        if unknown != 0 {
            return Err(Error::invalid(format!("unknown flags {unknown:#x}")));
        }
        let exclusive = flags & FLEXFILE_OPEN_EXCLUSIVE != 0;
        let existing = flags & (FLEXFILE_OPEN_EXISTING | FLEXFILE_OPEN_READ_ONLY) != 0;
        if exclusive && existing {
            return Err(Error::invalid("EXCLUSIVE creates a space; EXISTING and READ_ONLY want one that is there"));
        }
        options.create = !existing;
        options.exclusive = exclusive;
        options.read_only = flags & FLEXFILE_OPEN_READ_ONLY != 0;
        options.background = flags & FLEXFILE_OPEN_NO_BACKGROUND == 0;
        Ok(FLEXFILE_OK)
    }
}

/// Sets when calls become durable.
///
/// mode: FLEXFILE_DURABILITY_*. interval_ms: with FLEXFILE_DURABILITY_INTERVAL above 0, else 0.
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_options_set_durability(
    options: *mut flexfile_options,
    mode: i32,
    interval_ms: u32,
) -> i32 {
    guarded! {
        let options = &mut ffi::handle_mut(options, "options")?.options;
        options.durability = durability(mode, interval_ms)?;
        Ok(FLEXFILE_OK)
    }
}

fn durability(mode: i32, interval_ms: u32) -> Result<Durability> {
    match (mode, interval_ms) {
        (FLEXFILE_DURABILITY_MANUAL, 0) => Ok(Durability::Manual),
        (FLEXFILE_DURABILITY_EVERY_COMMIT, 0) => Ok(Durability::EveryCommit),
        (FLEXFILE_DURABILITY_INTERVAL, 1..) => Ok(Durability::Interval(Duration::from_millis(interval_ms.into()))),
        (FLEXFILE_DURABILITY_MANUAL..=FLEXFILE_DURABILITY_INTERVAL, _) => Err(Error::invalid(format!(
            "interval_ms is {interval_ms}; it is above 0 with FLEXFILE_DURABILITY_INTERVAL and 0 otherwise"
        ))),
        _ => Err(Error::invalid(format!("unknown durability mode {mode}"))),
    }
}

/// Sets the size of segments, the unit in which a space takes room on disk and gives it back. Used when a space is
/// created; one that exists keeps its own.
///
/// bytes: a power of two from 64 KiB to 64 MiB.
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_options_set_segment_size(options: *mut flexfile_options, bytes: u32) -> i32 {
    guarded! {
        let options = &mut ffi::handle_mut(options, "options")?.options;
        if !bytes.is_power_of_two() || !(64 << 10..=64 << 20).contains(&bytes) {
            return Err(Error::invalid(format!("a segment of {bytes} bytes: want a power of two, 64 KiB to 64 MiB")));
        }
        options.segment_size_bytes = bytes;
        Ok(FLEXFILE_OK)
    }
}

/// Sets where log lines go; callback NULL: nowhere (the default).
///
/// ctx is passed to each call of the callback; it must stay valid, and usable from any thread, until each space that
/// was opened with this builder is closed.
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_options_set_log(
    options: *mut flexfile_options,
    callback: flexfile_log_callback,
    ctx: *mut c_void,
) -> i32 {
    guarded! {
        let options = &mut ffi::handle_mut(options, "options")?.options;
        options.log = callback.map(|callback| log_into(callback, ctx));
        Ok(FLEXFILE_OK)
    }
}

/// The caller's pointer, for its own callback only.
struct Context(*mut c_void);

// SAFETY: the library never looks at what it points to; the caller promises that the callback may use it on any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The pointer. A method, so that closures hold the whole `Context` and not the bare field.
    fn get(&self) -> *mut c_void {
        self.0
    }
}

fn log_into(callback: unsafe extern "C" fn(*mut c_void, i32, *const c_char), ctx: *mut c_void) -> LogCallback {
    let ctx = Context(ctx);
    Arc::new(move |level, text| {
        let level = match level {
            LogLevel::Error => FLEXFILE_LOG_ERROR,
            LogLevel::Warning => FLEXFILE_LOG_WARNING,
            LogLevel::Info => FLEXFILE_LOG_INFO,
        };
        let text = c_text(text);
        // SAFETY: the caller's function with the caller's context; the text outlives the call.
        unsafe { callback(ctx.get(), level, text.as_ptr()) }
    })
}

/// A text for C; a NUL inside of it is left out.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// The caller's options, or the defaults for NULL.
pub(crate) unsafe fn options_or_default(options: *const flexfile_options) -> Result<SpaceOptions> {
    if options.is_null() {
        return Ok(SpaceOptions::default());
    }
    // SAFETY: passed on.
    Ok(unsafe { ffi::handle(options, "options") }?.options.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_modes_are_checked_with_their_interval() {
        assert_eq!(durability(0, 0).unwrap(), Durability::Manual);
        assert_eq!(durability(1, 0).unwrap(), Durability::EveryCommit);
        assert_eq!(durability(2, 5).unwrap(), Durability::Interval(Duration::from_millis(5)));
        for (mode, interval) in [(0, 1), (1, 1), (2, 0), (3, 0), (-1, 0), (i32::MIN, 7)] {
            assert!(durability(mode, interval).is_err(), "{mode} {interval}");
        }
    }
}

//! The border: every exported body runs in [`guarded!`], so that no panic unwinds into C.

use crate::{last_error, status};
use flex_core::Result;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a body that ends in `flex_core::Result<i32>` and makes a status of it: of an error, by its kind; of a panic,
/// `FLEXFILE_PANIC`. The text goes to the thread's last error.
///
/// The body may call the conversions of `ffi` without more ado: they are unsafe because a pointer that is not NULL is
/// taken to be what the header says it is. That promise is the C caller's, made once for all arguments of the call.
macro_rules! guarded {
    ($($body:tt)*) => {
        $crate::panic::to_status(|| {
            // SAFETY: the C caller passes pointers that are NULL or what the header asks for.
            #[allow(unused_unsafe)]
            unsafe { $($body)* }
        })
    };
}
pub(crate) use guarded;

/// See [`guarded!`].
pub(crate) fn to_status(body: impl FnOnce() -> Result<i32>) -> i32 {
    // Unwind-safe by the core's own rule: its locks don't poison, and it publishes a change in one step or not at all.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
            last_error::set_error(&error);
            status::of(&error)
        }
        Err(payload) => {
            last_error::set(&format!("defect of the library: {}", text_of(payload.as_ref())), 0);
            // Dropping a payload may run code that panics again; leaking what that leaves is the safe end.
            if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(again);
            }
            status::FLEXFILE_PANIC
        }
    }
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flex_core::Error;
    use std::ffi::CStr;

    #[test]
    #[allow(unsafe_code)]
    fn a_panic_becomes_a_status_with_its_text() {
        assert_eq!(to_status(|| Ok(7)), 7);
        assert_eq!(to_status(|| Err(Error::invalid("bad"))), status::FLEXFILE_INVALID_ARGUMENT);
        assert_eq!(to_status(|| panic!("number {}", 3)), status::FLEXFILE_PANIC);
        // SAFETY: a NUL-terminated text of this thread.
        let text = unsafe { CStr::from_ptr(last_error::flexfile_last_error_message()) };
        assert_eq!(text, c"defect of the library: number 3");
        assert_eq!(to_status(|| std::panic::panic_any(1u8)), status::FLEXFILE_PANIC);
    }
}

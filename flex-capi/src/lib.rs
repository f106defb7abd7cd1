//! The C ABI of FlexFile: `flexfile_*` and `flexspace_*`, a thin layer over `flex-core`.
//!
//! The contract with the C caller is the header (`include/flexfile.h`, made from these modules by `tests/header.sh`).
//! Its manual, at the top, is `header_manual.h`. Each exported function converts its arguments with the checked
//! functions of [`ffi`], calls the core once, and turns the answer into a status: [`panic`] catches what unwinds,
//! [`last_error`] keeps the text.
//!
//! `unsafe` is allowed in the modules that export functions: the conversions trust that a pointer which is not NULL is
//! what the header says, and nothing else in here is unsafe.

// The header's documentation is the contract; a "Safety" section per function would only repeat its manual.
#![allow(clippy::missing_safety_doc)]
// C names.
#![allow(non_camel_case_types)]

pub mod buf;
pub mod check;
pub mod cursor;
pub mod edit;
mod ffi;
pub mod file;
pub mod file_snapshot;
pub mod group;
pub mod last_error;
pub mod list;
pub mod options;
mod panic;
pub mod read;
pub mod snapshot;
pub mod space;
pub mod stats;
pub mod status;
pub mod tag;
#[cfg(feature = "test_hooks")]
pub mod test_hooks;
pub mod version;

//! FlexSpace and FlexFile: crash-consistent files whose bytes can be inserted and removed anywhere.
//!
//! Reading order: `geometry`, `segment`, `segment_table` and `segment_writer` (`DATA`); `log_record`, `logical_log` and
//! `log_reader` (the log); `superblock`, `catalog` and `page_store` (`TREE`); `change`, `core`, `shared` and `edit` (one
//! operation); `checkpoint` and `recovery`; `read`, `view`, `snapshot` and `group`; `gc`, `upkeep` and `check`. The terms, the
//! write path and the recovery argument are in docs/design.md, the bytes in docs/format.md.

mod callbacks;
mod catalog;
mod change;
mod check;
mod checkpoint;
mod core;
mod cursor;
mod edit;
mod flex_file;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod gc;
mod geometry;
mod group;
mod log_reader;
mod log_record;
mod logical_log;
mod open;
mod page_store;
mod process;
mod read;
mod recovery;
mod segment;
mod segment_table;
mod segment_writer;
mod shared;
mod snapshot;
mod snapshots;
mod space;
mod summary;
mod superblock;
mod upkeep;
mod view;
mod wake;
mod writer_lock;

pub use crate::options::{Durability, LogCallback, LogLevel, SpaceOptions};
pub use crate::stats::{CheckReport, GcReport, Problem, Progress, SpaceStats};
pub use cursor::ExtentCursor;
pub use flex_file::FlexFile;
pub use group::Group;
pub use snapshot::{FileEntry, FileSnapshot, SpaceSnapshot};
pub use space::FlexSpace;
pub use superblock::FORMAT_VERSION;
pub use view::ExtentInfo;

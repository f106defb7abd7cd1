//! How a space is opened: plain data, checked by `open`.

use crate::limits;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// When operations become durable without a call of `sync`. Every operation is atomic in all three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// By `sync`, by `close`, and by the space itself when much waits or after an idle second.
    Manual,
    /// Before the operation returns.
    EveryCommit,
    /// At most this long after the operation (needs the background thread).
    Interval(Duration),
}

/// How urgent a message to the log callback is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something was repaired or left out.
    Warning,
    /// What the space did.
    Info,
}

/// Receives messages, from any thread of the library. Calls that it makes into the same space are answered `Busy`.
pub type LogCallback = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// How to open a space. [`Default`] creates it when it is missing.
#[derive(Clone)]
pub struct SpaceOptions {
    /// Create the space when there is none (default: true).
    pub create: bool,
    /// Refuse a space that exists already (default: false).
    pub exclusive: bool,
    /// Take a shared lock and change nothing on disk (default: false).
    pub read_only: bool,
    /// When operations become durable (default: manual).
    pub durability: Durability,
    /// Segment size of a new space: a power of two from 64 KiB to 64 MiB (default: 4 MiB). An existing space keeps its own.
    pub segment_size_bytes: u32,
    /// Run upkeep (idle sync, checkpoints, collection) on a thread of the space (default: true);
    /// otherwise the operations that make it due run it.
    pub background: bool,
    /// Where messages go (default: nowhere).
    pub log: Option<LogCallback>,
}

impl Default for SpaceOptions {
    fn default() -> SpaceOptions {
        SpaceOptions {
            create: true,
            exclusive: false,
            read_only: false,
            durability: Durability::Manual,
            segment_size_bytes: limits::DEFAULT_SEGMENT_BYTES,
            background: true,
            log: None,
        }
    }
}

impl fmt::Debug for SpaceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpaceOptions")
            .field("create", &self.create)
            .field("exclusive", &self.exclusive)
            .field("read_only", &self.read_only)
            .field("durability", &self.durability)
            .field("segment_size_bytes", &self.segment_size_bytes)
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

//! A cursor over the extents of a file, as it was when the cursor was made.
//!
//! It holds a snapshot, so that it is neither disturbed by writers nor holds them up.

use super::snapshot::FileSnapshot;
use super::view::ExtentInfo;
use crate::Result;

/// See the module. One thread at a time.
pub struct ExtentCursor {
    snapshot: FileSnapshot,
    current: Option<ExtentInfo>,
}

impl ExtentCursor {
    pub(super) fn new(snapshot: FileSnapshot, offset: u64) -> Result<ExtentCursor> {
        let mut cursor = ExtentCursor { snapshot, current: None };
        cursor.seek(offset)?;
        Ok(cursor)
    }

    /// The extent under the cursor; `None` past either end.
    pub fn current(&self) -> Option<ExtentInfo> {
        self.current
    }

    /// The file that it goes over.
    pub fn snapshot(&self) -> &FileSnapshot {
        &self.snapshot
    }

    /// Goes to the extent that covers `offset`; past the end there is none.
    pub fn seek(&mut self, offset: u64) -> Result<()> {
        let space = self.snapshot.space();
        let _entered = space.enter()?;
        self.current = self.snapshot.tree().lookup(&space.pages, offset)?.map(ExtentInfo::from);
        Ok(())
    }

    /// Goes to the next extent; past the last there is none, and only `seek` leads back.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<()> {
        match self.current {
            Some(extent) => self.seek(extent.offset + extent.len),
            None => Ok(()),
        }
    }

    /// Goes to the previous extent; before the first there is none, and only `seek` leads back.
    pub fn prev(&mut self) -> Result<()> {
        match self.current {
            Some(extent) if extent.offset > 0 => self.seek(extent.offset - 1),
            _ => {
                self.current = None;
                Ok(())
            }
        }
    }

    /// Reads the current extent from its beginning; returns how many bytes, 0 where there is no extent.
    pub fn read(&self, buf: &mut [u8]) -> Result<usize> {
        match self.current {
            Some(extent) => {
                let len = (buf.len() as u64).min(extent.len) as usize;
                self.snapshot.read(extent.offset, &mut buf[..len])
            }
            None => Ok(0),
        }
    }
}

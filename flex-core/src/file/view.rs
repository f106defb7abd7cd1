//! What can be asked of a file's tree, whoever holds it: the file as it is now, a snapshot, or a group's private state.

use super::edit::out_of_range;
use super::read::ReadPlan;
use super::shared::Shared;
use crate::Result;
use crate::address::Tag;
use crate::tree::{Extent, FlexTree};

/// One extent, as a cursor and `read_extent` show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentInfo {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The tag of its first byte.
    pub tag: Tag,
    /// Whether it has no bytes on disk and reads as zeros.
    pub is_hole: bool,
}

impl From<Extent> for ExtentInfo {
    fn from(extent: Extent) -> ExtentInfo {
        ExtentInfo { offset: extent.offset, len: extent.len, tag: extent.tag, is_hole: extent.is_hole() }
    }
}

/// The extent that covers `offset`; an error at or behind the end.
pub fn extent_at(shared: &Shared, tree: &FlexTree, offset: u64) -> Result<Extent> {
    let found = tree.lookup(&shared.pages, offset)?;
    found.ok_or_else(|| out_of_range(format!("offset {offset} is not inside the file, which has {} bytes", tree.len())))
}

/// The tag of a byte; an error at or behind the end.
pub fn tag_at(shared: &Shared, tree: &FlexTree, offset: u64) -> Result<Tag> {
    extent_at(shared, tree, offset)?;
    tree.tag(&shared.pages, offset)
}

/// The next hole at or after `offset`, where the end of the file counts as one; `None` behind the end.
pub fn next_hole(shared: &Shared, tree: &FlexTree, offset: u64) -> Result<Option<u64>> {
    if offset >= tree.len() {
        return Ok(None);
    }
    Ok(Some(tree.next_hole(&shared.pages, offset)?.unwrap_or(tree.len())))
}

/// The extent that covers `offset` and a plan to read it from its beginning, at most `len` bytes.
pub fn plan_extent<'a>(
    shared: &'a Shared,
    tree: &FlexTree,
    offset: u64,
    len: usize,
) -> Result<(ExtentInfo, ReadPlan<'a>)> {
    let extent = extent_at(shared, tree, offset)?;
    let plan = ReadPlan::new(shared, tree, extent.offset, extent.len.min(len as u64))?;
    Ok((extent.into(), plan))
}

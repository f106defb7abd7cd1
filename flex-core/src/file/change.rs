//! A change of one file's address space: what a log record says and what it does to a tree.
//!
//! An operation is one or more changes. They are made on the tree that readers see, on a group's private one, and on
//! the one that a recovery rebuilds: the same code in all three, so that replay gives what was there.

use crate::Result;
use crate::address::{PhysicalOffset, Tag};
use crate::tree::limits::LEAF_MIN;
use crate::tree::{FlexTree, NodeSource, Released};
use smallvec::SmallVec;

/// Bytes that lie together in `DATA`: one extent, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where.
    pub address: PhysicalOffset,
    /// How many.
    pub len: u32,
}

/// The pieces of one write, in file order.
pub type Pieces = SmallVec<[Piece; 2]>;

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Bytes came in; what was behind `offset` moved up.
    Insert {
        /// Where.
        offset: u64,
        /// The bytes.
        pieces: Pieces,
    },
    /// Zeros came in.
    InsertHole {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Bytes went; what was behind them moved down.
    Collapse {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Bytes were overwritten, or moved in `DATA`.
    Replace {
        /// Where.
        offset: u64,
        /// The bytes.
        pieces: Pieces,
    },
    /// Bytes became zeros.
    ReplaceHole {
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// A byte got a tag, or lost it.
    SetTag {
        /// Which byte.
        offset: u64,
        /// The tag, or none.
        tag: Tag,
    },
}

impl Change {
    /// The pieces that it links.
    pub fn pieces(&self) -> &[Piece] {
        match self {
            Change::Insert { pieces, .. } | Change::Replace { pieces, .. } => pieces,
            _ => &[],
        }
    }

    /// The range of the tree, as it is before the change, whose boundaries the change touches.
    pub fn range(&self) -> (u64, u64) {
        match self {
            Change::Insert { offset, .. } | Change::InsertHole { offset, .. } => (*offset, 0),
            Change::Collapse { offset, len } | Change::ReplaceHole { offset, len } => (*offset, *len),
            Change::Replace { offset, pieces } => (*offset, pieces.iter().map(|p| p.len as u64).sum()),
            Change::SetTag { offset, .. } => (*offset, 1),
        }
    }

    /// How many steps it takes on the tree; one step happens as a whole or not at all.
    pub fn steps(&self) -> usize {
        self.pieces().len().max(1)
    }

    /// Upper bound of the tree nodes that it makes dirty, splits and merges counted on average.
    pub fn dirty_bound(&self) -> u64 {
        const PATHS: u64 = if cfg!(feature = "small_limits") { 12 } else { 3 };
        PATHS + 2 * self.steps().div_ceil(LEAF_MIN) as u64
    }

    /// Upper bound of its bytes in a log record.
    pub fn record_bound(&self) -> u64 {
        48 + 16 * self.pieces().len() as u64
    }

    /// Makes the change. When a later step of several fails, the steps before it stay.
    pub fn apply(&self, tree: &mut FlexTree, source: &dyn NodeSource, out: &mut Released) -> Result<()> {
        match self {
            Change::Insert { offset, pieces } => {
                let mut at = *offset;
                for piece in pieces {
                    tree.insert(source, at, piece.len as u64, piece.address, Tag::NONE, out)?;
                    at += piece.len as u64;
                }
                Ok(())
            }
            Change::InsertHole { offset, len } => {
                tree.insert(source, *offset, *len, PhysicalOffset::HOLE, Tag::NONE, out)
            }
            Change::Collapse { offset, len } => tree.collapse(source, *offset, *len, out),
            Change::Replace { offset, pieces } => {
                let mut at = *offset;
                for piece in pieces {
                    tree.replace(source, at, piece.len as u64, piece.address, out)?;
                    at += piece.len as u64;
                }
                Ok(())
            }
            Change::ReplaceHole { offset, len } => tree.replace(source, *offset, *len, PhysicalOffset::HOLE, out),
            Change::SetTag { offset, tag } => tree.set_tag(source, *offset, *tag, out),
        }
    }
}

/// Makes several changes as a whole: when one fails, the tree and `out` are as before.
pub fn apply_all(changes: &[Change], tree: &mut FlexTree, source: &dyn NodeSource, out: &mut Released) -> Result<()> {
    let steps: usize = changes.iter().map(Change::steps).sum();
    if steps <= 1 || tree.is_resident() {
        // One step is atomic by itself, and nothing can fail where no page has to be loaded.
        return changes.iter().try_for_each(|change| change.apply(tree, source, out));
    }
    let before = tree.clone();
    let mut released = Released::default();
    match changes.iter().try_for_each(|change| change.apply(tree, source, &mut released)) {
        Ok(()) => {
            out.absorb(released);
            Ok(())
        }
        Err(error) => {
            *tree = before;
            Err(error)
        }
    }
}

//! Reading a range of a tree: first which bytes, under the tree's lock; then the bytes, under no lock.
//!
//! The plan pins the segments that it names until it is dropped, so that nothing that it reads is written again, even
//! when the file changes or shrinks meanwhile: a read shows the file as it was at one moment.

use super::change::Piece;
use super::geometry::SegmentId;
use super::shared::Shared;
use crate::Result;
use crate::address::PhysicalOffset;
use crate::tree::FlexTree;
use smallvec::SmallVec;
use std::io::IoSliceMut;
use std::ops::ControlFlow;

/// Where the bytes of a range lie, in order.
pub struct ReadPlan<'a> {
    shared: &'a Shared,
    runs: SmallVec<[Run; 4]>,
    len: u64,
}

#[derive(Clone, Copy)]
struct Run {
    address: PhysicalOffset,
    len: u64,
}

impl<'a> ReadPlan<'a> {
    /// Plans `len` bytes from `offset` on, fewer at the end. The caller holds the tree.
    pub fn new(shared: &'a Shared, tree: &FlexTree, offset: u64, len: u64) -> Result<ReadPlan<'a>> {
        let len = len.min(tree.len().saturating_sub(offset));
        let mut plan = ReadPlan { shared, runs: SmallVec::new(), len };
        if len > 0 {
            tree.for_each_in(&shared.pages, offset, len, &mut |extent| {
                plan.push(extent.address, extent.len);
                ControlFlow::Continue(())
            })?;
        }
        Ok(plan)
    }

    fn push(&mut self, address: PhysicalOffset, len: u64) {
        if !address.is_hole() {
            self.shared.data.segment(self.segment_of(address)).pin();
        }
        self.runs.push(Run { address, len });
    }

    fn segment_of(&self, address: PhysicalOffset) -> SegmentId {
        self.shared.data.geometry.locate(address).0
    }

    /// Reads into one buffer, which has room for `len` bytes.
    pub fn read(&self, buf: &mut [u8]) -> Result<usize> {
        let mut rest = &mut buf[..self.len as usize];
        for run in &self.runs {
            let (part, behind) = rest.split_at_mut(run.len as usize);
            self.read_run(run.address, part)?;
            rest = behind;
        }
        Ok(self.len as usize)
    }

    /// Reads into several buffers, which have room for `len` bytes together.
    pub fn read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> Result<usize> {
        let mut runs = self.runs.iter().copied();
        let mut run = Run { address: PhysicalOffset::HOLE, len: 0 };
        for buf in bufs {
            let mut rest = &mut buf[..];
            while !rest.is_empty() {
                if run.len == 0 {
                    match runs.next() {
                        Some(next) => run = next,
                        None => return Ok(self.len as usize),
                    }
                }
                let take = (rest.len() as u64).min(run.len);
                let (part, behind) = rest.split_at_mut(take as usize);
                self.read_run(run.address, part)?;
                run = Run { address: run.address.advance(take), len: run.len - take };
                rest = behind;
            }
        }
        Ok(self.len as usize)
    }

    fn read_run(&self, address: PhysicalOffset, buf: &mut [u8]) -> Result<()> {
        if address.is_hole() {
            buf.fill(0);
            return Ok(());
        }
        self.shared.data.read(Piece { address, len: buf.len() as u32 }, buf)
    }
}

impl Drop for ReadPlan<'_> {
    fn drop(&mut self) {
        for run in self.runs.iter().filter(|run| !run.address.is_hole()) {
            self.shared.data.segment(self.segment_of(run.address)).unpin();
        }
    }
}

//! Operations on a FlexTree against the sorted array, with a small fan-out: mappings and invariants after each list.
#![no_main]

use arbitrary::Arbitrary;
use flex_core::address::{PhysicalOffset, Tag};
use flex_core::tree::model::{ArrayModel, canonical};
use flex_core::tree::{Extent, FlexTree, NoPages, Released, TreeLimits};
use libfuzzer_sys::fuzz_target;
use std::ops::ControlFlow;

#[derive(Arbitrary, Debug)]
enum Op {
    Insert { at: u16, len: u16, hole: bool, tag: Option<u8> },
    InsertFar { at: u16, len_log2: u8 },
    Append { len: u8, follows: bool },
    Collapse { at: u16, len: u16 },
    Replace { at: u16, len: u16, hole: bool },
    SetTag { at: u16, tag: u8 },
    Lookup { at: u16 },
    Clone,
}

struct State {
    tree: FlexTree,
    model: ArrayModel,
    next_address: u64,
    kept: Vec<(FlexTree, Vec<Extent>)>,
}

impl State {
    fn place(&self, at: u16, room: u64) -> u64 {
        // Spread over the whole file, however long it is.
        if room == 0 { 0 } else { (u128::from(at) * u128::from(room) / (1 << 16)) as u64 }
    }

    fn address(&mut self, len: u64, hole: bool) -> PhysicalOffset {
        if hole {
            return PhysicalOffset::HOLE;
        }
        let address = PhysicalOffset(self.next_address);
        self.next_address += len + 7;
        address
    }

    fn tag(tag: Option<u8>) -> Tag {
        tag.map_or(Tag::NONE, |tag| Tag(u16::from(tag) + 1))
    }

    fn step(&mut self, op: &Op) {
        let (len, out) = (self.tree.len(), &mut Released::default());
        match *op {
            Op::Insert { at, len: added, hole, tag } => {
                let (at, added) = (self.place(at, len + 1), u64::from(added) + 1);
                let address = self.address(added, hole);
                let tag = State::tag(tag);
                self.tree.insert(&NoPages, at, added, address, tag, out).unwrap();
                self.model.insert(at, added, address, tag);
            }
            Op::InsertFar { at, len_log2 } => {
                let (at, added) = (self.place(at, len + 1), 1u64 << (len_log2 % 50));
                if len < 1 << 55 {
                    self.tree.insert(&NoPages, at, added, PhysicalOffset::HOLE, Tag::NONE, out).unwrap();
                    self.model.insert(at, added, PhysicalOffset::HOLE, Tag::NONE);
                }
            }
            Op::Append { len: added, follows } => {
                let added = u64::from(added) + 1;
                self.next_address -= if follows && self.next_address >= 7 { 7 } else { 0 };
                let address = self.address(added, false);
                self.tree.insert(&NoPages, len, added, address, Tag::NONE, out).unwrap();
                self.model.insert(len, added, address, Tag::NONE);
            }
            Op::Collapse { at, len: removed } => {
                let at = self.place(at, len);
                let removed = u64::from(removed).min(len - at);
                if removed > 0 {
                    self.tree.collapse(&NoPages, at, removed, out).unwrap();
                    self.model.collapse(at, removed);
                }
            }
            Op::Replace { at, len: replaced, hole } => {
                let at = self.place(at, len);
                let replaced = u64::from(replaced).min(len - at);
                if replaced > 0 {
                    let address = self.address(replaced, hole);
                    self.tree.replace(&NoPages, at, replaced, address, out).unwrap();
                    self.model.replace(at, replaced, address);
                }
            }
            Op::SetTag { at, tag } if len > 0 => {
                let (at, tag) = (self.place(at, len), State::tag((tag > 0).then_some(tag)));
                self.tree.set_tag(&NoPages, at, tag, out).unwrap();
                self.model.set_tag(at, tag);
            }
            Op::Lookup { at } if len > 0 => {
                let at = self.place(at, len);
                let (found, known) = (self.tree.lookup(&NoPages, at).unwrap(), self.model.lookup(at));
                let byte = |e: Extent| if e.is_hole() { e.address } else { e.address.advance(at - e.offset) };
                assert_eq!(found.map(byte), known.map(byte), "at {at}");
            }
            Op::SetTag { .. } | Op::Lookup { .. } => {}
            Op::Clone if self.kept.len() < 4 => self.kept.push((self.tree.clone(), mapping(&self.tree))),
            Op::Clone => self.kept.clear(),
        }
    }
}

fn mapping(tree: &FlexTree) -> Vec<Extent> {
    let mut extents = Vec::new();
    if tree.len() > 0 {
        let each = &mut |extent| {
            extents.push(extent);
            ControlFlow::Continue(())
        };
        tree.for_each_in(&NoPages, 0, tree.len(), each).unwrap();
    }
    canonical(extents.into_iter())
}

fuzz_target!(|ops: Vec<Op>| {
    let tree = FlexTree::new(TreeLimits { max_extent_len: 128 << 10 });
    let mut state = State { tree, model: ArrayModel::new(), next_address: 0, kept: Vec::new() };
    for op in ops.iter().take(300) {
        state.step(op);
        assert_eq!(state.tree.len(), state.model.len());
    }
    state.tree.check(&NoPages).unwrap();
    assert_eq!(mapping(&state.tree), state.model.mapping());
    for (tree, extents) in &state.kept {
        assert_eq!(&mapping(tree), extents, "an older version changed");
    }
});

//! FlexTree against the sorted array: random operations, every answer compared, every invariant checked.
//!
//! Old versions (clones) are kept and must stay as they were; the tree is stored into a map of pages and opened again
//! at any point; what leaves it must be what the model says left, and each page must leave once. Run with and without
//! the feature `small_limits`.

use flex_core::address::{PageId, PhysicalOffset, Tag};
use flex_core::tree::model::{ArrayModel, canonical};
use flex_core::tree::{
    Extent, FlexTree, NodeImage, NodeSource, PageSink, Released, Subtree, TreeLimits, TreeReport, node_codec,
};
use flex_core::{Error, ErrorKind, Result};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Pages in memory; fails at the n-th load when told to.
#[derive(Default)]
struct Pages {
    pages: BTreeMap<u64, Vec<u8>>,
    next: u64,
    loads: Cell<u64>,
    fail_at: Cell<Option<u64>>,
}

impl NodeSource for Pages {
    fn load(&self, page: PageId) -> Result<NodeImage> {
        self.loads.set(self.loads.get() + 1);
        if self.fail_at.get() == Some(self.loads.get()) {
            return Err(Error::new(ErrorKind::Io, "told to fail"));
        }
        match self.pages.get(&page.0) {
            Some(bytes) => node_codec::decode(bytes),
            None => Err(Error::corruption(format!("page {} was never stored", page.0))),
        }
    }
}

impl PageSink for Pages {
    fn store(&mut self, kind_level: u8, payload: &[u8]) -> Result<PageId> {
        assert_eq!(kind_level, payload[0]);
        assert!(payload.len() <= node_codec::MAX_PAYLOAD_BYTES);
        self.next += 1;
        self.pages.insert(self.next, payload.to_vec());
        Ok(PageId(self.next))
    }
}

/// Insertions per step of a run: enough for many nodes at either fan-out.
const RUN: u64 = if cfg!(feature = "small_limits") { 1 } else { 60 };

#[derive(Clone, Debug)]
enum Op {
    Insert { at: u32, len: u64, hole: bool, tag: u16, run: u8 },
    Append { len: u64, run: u8 },
    Collapse { at: u32, len: u32 },
    Replace { at: u32, len: u64, hole: bool },
    SetTag { at: u32, tag: u16 },
    SplitJoin { at: u32, swap: bool },
    Snapshot,
    Store,
    Reopen,
}

/// Lengths of all sizes: bytes, thousands, and what is near the limits of a leaf.
fn length() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1..6u64, 3 => 1..300u64, 2 => 1..20_000u64, 1 => 1..1u64 << 30]
}

fn hole_length() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1..50u64, 3 => 1..9000u64, 2 => 1..1u64 << 31, 1 => 1..1u64 << 40]
}

fn op() -> impl Strategy<Value = Op> {
    let tag = || prop_oneof![3 => Just(0u16), 1 => 1..4u16];
    prop_oneof![
        8 => (any::<u32>(), length(), tag(), 0..12u8)
            .prop_map(|(at, len, tag, run)| Op::Insert { at, len, hole: false, tag, run }),
        3 => (any::<u32>(), hole_length(), tag(), 0..2u8)
            .prop_map(|(at, len, tag, run)| Op::Insert { at, len, hole: true, tag, run }),
        4 => (length(), 0..20u8).prop_map(|(len, run)| Op::Append { len, run }),
        6 => (any::<u32>(), any::<u32>()).prop_map(|(at, len)| Op::Collapse { at, len }),
        4 => (any::<u32>(), length()).prop_map(|(at, len)| Op::Replace { at, len, hole: false }),
        3 => (any::<u32>(), hole_length()).prop_map(|(at, len)| Op::Replace { at, len, hole: true }),
        4 => (any::<u32>(), tag()).prop_map(|(at, tag)| Op::SetTag { at, tag }),
        2 => (any::<u32>(), any::<bool>()).prop_map(|(at, swap)| Op::SplitJoin { at, swap }),
        1 => Just(Op::Snapshot),
        1 => Just(Op::Store),
        1 => Just(Op::Reopen),
    ]
}

/// Scales a random number to `[0, below]`, often to an extent's border.
fn scale(model: &ArrayModel, at: u32, below: u64) -> u64 {
    let raw = ((u128::from(at) * (u128::from(below) + 1)) >> 32) as u64;
    match model.lookup(raw) {
        Some(extent) if at.is_multiple_of(3) => extent.offset.min(below),
        Some(extent) if at.is_multiple_of(7) => extent.end().min(below),
        _ => raw,
    }
}

struct World {
    tree: FlexTree,
    model: ArrayModel,
    pages: Pages,
    versions: Vec<(FlexTree, Vec<Extent>)>,
    released_pages: BTreeSet<u64>,
    next_physical: u64,
    limits: TreeLimits,
    /// The most underfull nodes that any check counted.
    underfull_seen: u64,
}

impl World {
    fn new(limits: TreeLimits) -> World {
        World {
            tree: FlexTree::new(limits),
            model: ArrayModel::new(),
            pages: Pages::default(),
            versions: Vec::new(),
            released_pages: BTreeSet::new(),
            next_physical: 1 << 40,
            limits,
            underfull_seen: 0,
        }
    }

    /// New physical bytes: now and then right behind the last ones.
    fn place(&mut self, len: u64, hole: bool) -> PhysicalOffset {
        if hole {
            return PhysicalOffset::HOLE;
        }
        self.next_physical += if len.is_multiple_of(3) { 0 } else { 7 };
        let at = self.next_physical;
        self.next_physical += len;
        PhysicalOffset(at)
    }

    fn insert(&mut self, at: u64, len: u64, hole: bool, tag: u16, out: &mut Released) {
        let len = if hole { len } else { len.min(u64::from(self.limits.max_extent_len)) };
        let address = self.place(len, hole);
        self.tree.insert(&self.pages, at, len, address, Tag(tag), out).unwrap();
        self.model.insert(at, len, address, Tag(tag));
    }

    fn apply(&mut self, op: &Op, out: &mut Released) -> Vec<(PhysicalOffset, u64)> {
        let len_now = self.model.len();
        match *op {
            Op::Insert { at, len, hole, tag, run } => {
                let at = scale(&self.model, at, len_now);
                for k in 0..=u64::from(run) * RUN {
                    self.insert(at, len + k, hole, if k == 0 { tag } else { 0 }, out);
                }
            }
            Op::Append { len, run } => {
                for k in 0..=u64::from(run) * RUN {
                    self.insert(self.model.len(), len + k, false, 0, out);
                }
            }
            Op::Collapse { at, len } => return self.collapse(at, len, out),
            Op::Replace { at, len, hole } => return self.replace(at, len, hole, out),
            Op::SetTag { at, tag } => {
                let at = scale(&self.model, at, len_now.saturating_sub(1));
                if len_now > 0 {
                    self.tree.set_tag(&self.pages, at, Tag(tag), out).unwrap();
                    self.model.set_tag(at, Tag(tag));
                }
            }
            Op::SplitJoin { at, swap } => self.split_join(scale(&self.model, at, len_now), swap, out),
            Op::Snapshot => self.versions.push((self.tree.clone(), self.model.mapping())),
            Op::Store => self.store(),
            Op::Reopen => self.reopen(),
        }
        Vec::new()
    }

    fn collapse(&mut self, at: u32, len: u32, out: &mut Released) -> Vec<(PhysicalOffset, u64)> {
        let all = self.model.len();
        let at = scale(&self.model, at, all);
        let most = if len.is_multiple_of(8) { all - at } else { (all - at).min(all / 8 + 3) };
        let len = scale(&self.model, len, most).min(all - at);
        self.tree.collapse(&self.pages, at, len, out).unwrap();
        self.model.collapse(at, len)
    }

    fn replace(&mut self, at: u32, len: u64, hole: bool, out: &mut Released) -> Vec<(PhysicalOffset, u64)> {
        let all = self.model.len();
        let at = scale(&self.model, at, all);
        let most = if hole { u64::MAX } else { u64::from(self.limits.max_extent_len) };
        let len = match self.model.lookup(at) {
            Some(extent) if len.is_multiple_of(2) => (extent.end() - at).min(most),
            _ => len.min(all - at).min(most),
        };
        let address = self.place(len, hole);
        self.tree.replace(&self.pages, at, len, address, out).unwrap();
        self.model.replace(at, len, address)
    }

    fn split_join(&mut self, at: u64, swap: bool, out: &mut Released) {
        let mut right = self.tree.split_off(&self.pages, at, out).unwrap();
        let mut right_model = self.model.split_off(at);
        for (tree, model) in [(&self.tree, &self.model), (&right, &right_model)] {
            tree.check(&self.pages).unwrap();
            assert_eq!(mapping(tree, &self.pages), model.mapping());
        }
        if swap {
            std::mem::swap(&mut self.tree, &mut right);
            std::mem::swap(&mut self.model, &mut right_model);
        }
        self.tree.join(&self.pages, right, out).unwrap();
        self.model.join(right_model);
    }

    fn settle(&mut self) {
        let mut out = Released::default();
        self.tree.settle(&mut out);
        self.account(out, Vec::new());
    }

    fn store(&mut self) {
        self.settle();
        let dirty = self.tree.dirty_nodes();
        let before = self.pages.next;
        self.tree.clone().store(&mut self.pages).unwrap();
        assert_eq!(self.pages.next - before, dirty);
        assert_eq!(self.tree.dirty_nodes(), 0);
    }

    fn reopen(&mut self) {
        self.settle();
        let root = self.tree.store(&mut self.pages).unwrap();
        let epoch = self.tree.epoch();
        self.tree = FlexTree::from_stored(self.limits, root);
        self.tree.set_epoch(epoch + 1);
        assert_eq!(self.tree.store(&mut self.pages).unwrap(), root);
    }

    /// Takes everything apart and compares what left with what the model lost.
    fn account(&mut self, mut out: Released, lost: Vec<(PhysicalOffset, u64)>) {
        while let Some(subtree) = out.subtrees.pop() {
            // A subtree that is stored as a whole survives a restart as a list of pages.
            let listed = subtree.stored_parts().map(|parts| Subtree::from_stored_parts(&parts));
            let mut left = Some(listed.unwrap_or(subtree));
            while let Some(subtree) = left {
                left = subtree.take_apart(&self.pages, 3, &mut out).unwrap();
            }
        }
        let released = out.extents.iter().map(|&(address, len)| (address, u64::from(len)));
        assert_eq!(ranges(released), ranges(lost.into_iter()));
        let pages = out.pages.iter().copied().chain(out.superseded.iter().filter_map(|node| node.page()));
        for page in pages {
            assert!(self.released_pages.insert(page.0), "page {} was released twice", page.0);
        }
    }

    /// Compares everything, and requires every page to be either in the tree or released, not both.
    fn check(&self) -> TreeReport {
        let report = self.tree.check(&self.pages).unwrap();
        assert_eq!(self.tree.len(), self.model.len());
        let expected = self.model.mapping();
        assert_eq!(mapping(&self.tree, &self.pages), expected);
        let mapped = expected.iter().filter(|extent| !extent.is_hole()).map(|extent| extent.len).sum::<u64>();
        assert_eq!(report.mapped_bytes, mapped);
        self.check_reads(&expected);
        let mut pages = self.released_pages.clone();
        self.tree
            .visit_pages(&self.pages, &mut |page| assert!(pages.insert(page.0), "page {} is used", page.0))
            .unwrap();
        assert_eq!(pages.len() as u64, self.pages.next);
        report
    }

    fn check_reads(&self, expected: &[Extent]) {
        let (tree, pages) = (&self.tree, &self.pages);
        let tags = self.model.tags();
        let probes = expected
            .iter()
            .flat_map(|e| [e.offset, e.offset + e.len / 2, e.end() - 1, e.end()])
            .step_by(if cfg!(feature = "small_limits") { 3 } else { 257 });
        for at in probes {
            let found = tree.lookup(pages, at).unwrap();
            let wanted = self.model.lookup(at);
            assert_eq!(found.is_some(), wanted.is_some());
            if let (Some(found), Some(wanted)) = (found, wanted) {
                assert!(found.offset <= at && at < found.end());
                let byte = |e: &Extent| e.address.advance(at - e.offset);
                assert_eq!(byte(&found), byte(&wanted));
                let tag = tags.iter().find(|tag| tag.0 == at).map_or(Tag::NONE, |tag| tag.1);
                assert_eq!(tree.tag(pages, at).unwrap(), tag);
            }
            let before = tags.iter().rfind(|tag| tag.0 <= at).copied();
            assert_eq!(tree.tagged_at_or_before(pages, at).unwrap(), before);
            let after = tags.iter().find(|tag| tag.0 >= at).copied();
            assert_eq!(tree.tagged_at_or_after(pages, at).unwrap(), after);
            let next = |hole: bool| expected.iter().find(|e| e.end() > at && e.is_hole() == hole);
            assert_eq!(tree.next_mapped(pages, at).unwrap(), next(false).map(|e| e.offset.max(at)));
            assert_eq!(tree.next_hole(pages, at).unwrap(), next(true).map(|e| e.offset.max(at)));
        }
    }
}

/// The bytes of a list of ranges, as merged ranges.
fn ranges(list: impl Iterator<Item = (PhysicalOffset, u64)>) -> Vec<(u64, u64)> {
    let mut list: Vec<(u64, u64)> = list.map(|(at, len)| (at.0, len)).collect();
    list.sort_unstable();
    list.dedup_by(|next, last| {
        let merge = last.0 + last.1 == next.0;
        if merge {
            last.1 += next.1;
        }
        merge
    });
    list
}

fn extents(tree: &FlexTree, src: &dyn NodeSource) -> Vec<Extent> {
    let mut list = Vec::new();
    tree.for_each_in(src, 0, u64::MAX, &mut |extent| {
        list.push(extent);
        ControlFlow::Continue(())
    })
    .unwrap();
    list
}

fn mapping(tree: &FlexTree, src: &dyn NodeSource) -> Vec<Extent> {
    canonical(extents(tree, src).into_iter())
}

fn walk_both_ways(tree: &FlexTree, src: &dyn NodeSource) {
    let list = extents(tree, src);
    assert_eq!(list.len() as u64, tree.extent_count());
    let mut cursor = tree.cursor(src);
    cursor.seek_to_first().unwrap();
    for extent in &list {
        assert_eq!(cursor.current().as_ref(), Some(extent));
        cursor.next().unwrap();
    }
    assert!(cursor.current().is_none());
    cursor.seek_to_last().unwrap();
    for extent in list.iter().rev() {
        assert_eq!(cursor.current().as_ref(), Some(extent));
        cursor.prev().unwrap();
    }
    assert!(cursor.current().is_none());
    if let Some(extent) = list.get(list.len() / 2) {
        cursor.seek(extent.end() - 1).unwrap();
        assert_eq!(cursor.current().as_ref(), Some(extent));
    }
    cursor.seek(tree.len()).unwrap();
    assert!(cursor.current().is_none());
}

fn run(ops: &[Op], limits: TreeLimits) -> World {
    let mut world = World::new(limits);
    for op in ops {
        let mut out = Released::default();
        let lost = world.apply(op, &mut out);
        world.account(out, lost);
        let report = world.check();
        world.underfull_seen = world.underfull_seen.max(report.underfull);
    }
    walk_both_ways(&world.tree, &world.pages);
    for (version, expected) in &world.versions {
        version.check(&world.pages).unwrap();
        assert_eq!(&mapping(version, &world.pages), expected);
    }
    world
}

/// One operation on a tree whose source may fail.
fn fallible(tree: &mut FlexTree, model: &ArrayModel, pages: &Pages, op: &Op, out: &mut Released) -> Result<()> {
    let place = PhysicalOffset(5 << 40);
    let all = model.len();
    match *op {
        Op::Insert { at, tag, .. } => tree.insert(pages, scale(model, at, all), 5, place, Tag(tag), out),
        Op::Collapse { at, len } => {
            let at = scale(model, at, all);
            tree.collapse(pages, at, scale(model, len, all - at).min(all - at), out)
        }
        Op::Replace { at, len, .. } => {
            let at = scale(model, at, all);
            tree.replace(pages, at, len.min(100).min(all - at), place, out)
        }
        Op::SetTag { at, tag } if all > 0 => tree.set_tag(pages, scale(model, at, all - 1), Tag(tag), out),
        Op::SplitJoin { at, .. } => tree.split_off(pages, scale(model, at, all), out).map(|_| ()),
        Op::Snapshot => {
            let other = tree.clone();
            tree.join(pages, other, out)
        }
        _ => tree.insert(pages, all, 9, place, Tag::NONE, out),
    }
}

/// `PROPTEST_CASES` sets the number of cases; without it, what takes a few seconds.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = if cfg!(feature = "small_limits") { 400 } else { 24 };
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_operations(ops in prop::collection::vec(op(), 1..60)) {
        run(&ops, TreeLimits { max_extent_len: 1 << 30 });
    }

    #[test]
    fn any_operations_with_short_extents(ops in prop::collection::vec(op(), 1..60)) {
        run(&ops, TreeLimits { max_extent_len: 100 });
    }

    /// Without holes and stored nodes, minimum fill holds everywhere but on the edges (the edges are not counted).
    #[test]
    fn minimum_fill(ops in prop::collection::vec(op(), 1..120)) {
        let excusing = |op: &Op| {
            matches!(op, Op::Insert { hole: true, .. } | Op::Replace { hole: true, .. } | Op::Reopen)
        };
        let ops: Vec<Op> = ops.into_iter().filter(|op| !excusing(op)).collect();
        let world = run(&ops, TreeLimits { max_extent_len: 100 });
        prop_assert_eq!(world.underfull_seen, 0);
    }

    /// A load that fails leaves the tree as it was.
    #[test]
    fn a_failed_load_changes_nothing(
        ops in prop::collection::vec(op(), 1..40), last in op(), fail_at in 1..12u64,
    ) {
        let mut world = run(&ops, TreeLimits { max_extent_len: 100 });
        world.reopen();
        let expected = world.model.mapping();
        let mut tree = world.tree.clone();
        world.pages.loads.set(0);
        world.pages.fail_at.set(Some(fail_at));
        let mut out = Released::default();
        let result = fallible(&mut tree, &world.model, &world.pages, &last, &mut out);
        world.pages.fail_at.set(None);
        if result.is_err() {
            prop_assert_eq!(mapping(&tree, &world.pages), expected);
            prop_assert!(out.extents.is_empty() && out.pages.is_empty());
            prop_assert!(out.subtrees.is_empty() && out.superseded.is_empty());
        }
        tree.check(&world.pages).unwrap();
    }
}

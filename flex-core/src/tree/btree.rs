//! The second baseline of the paper's Table 1: a plain B+-tree whose leaves hold absolute offsets.
//!
//! It has FlexTree's fan-out, its layout of a leaf (an array of starts, an array of packed addresses and tags) and its
//! search. Inserting anywhere but at the end adds to every offset behind, leaf by leaf: O(N). It exists for comparison
//! alone: it inserts at borders of extents only, merges nothing and removes nothing.

use super::Extent;
use super::extent::{address_of, pack, tag_of};
use super::limits::{INTERNAL_CAPACITY, LEAF_CAPACITY};
use super::search::last_at_most;
use crate::address::{PhysicalOffset, Tag};

const LEAF_WIDE: usize = if LEAF_CAPACITY < 16 { LEAF_CAPACITY } else { 16 };
const LEAF_NARROW: usize = if LEAF_CAPACITY < 16 { LEAF_CAPACITY } else { 4 };
const INTERNAL_WIDE: usize = if INTERNAL_CAPACITY < 32 { INTERNAL_CAPACITY } else { 32 };
const INTERNAL_NARROW: usize = if INTERNAL_CAPACITY < 32 { INTERNAL_CAPACITY } else { 8 };

struct Leaf {
    len: usize,
    starts: [u64; LEAF_CAPACITY],
    packed: [u64; LEAF_CAPACITY],
}

struct Internal {
    len: usize,
    keys: [u64; INTERNAL_CAPACITY],
    children: [Option<Node>; INTERNAL_CAPACITY],
}

enum Node {
    Leaf(Box<Leaf>),
    Internal(Box<Internal>),
}

/// A plain B+-tree of extents.
pub struct BPlusTree {
    root: Node,
    len: u64,
}

impl Leaf {
    fn new() -> Box<Leaf> {
        Box::new(Leaf { len: 0, starts: [u64::MAX; LEAF_CAPACITY], packed: [0; LEAF_CAPACITY] })
    }

    fn find(&self, at: u64) -> usize {
        last_at_most::<u64, LEAF_CAPACITY, LEAF_WIDE, LEAF_NARROW>(&self.starts, at)
    }

    /// Inserts before extent `i`, adding `len` to the starts behind it.
    fn insert(&mut self, i: usize, at: u64, packed: u64, len: u64) {
        let n = self.len;
        self.starts.copy_within(i..n, i + 1);
        self.packed.copy_within(i..n, i + 1);
        self.starts[i + 1..=n].iter_mut().for_each(|start| *start += len);
        self.starts[i] = at;
        self.packed[i] = packed;
        self.len += 1;
    }

    fn split(&mut self, keep: usize) -> Box<Leaf> {
        let mut right = Leaf::new();
        right.len = self.len - keep;
        right.starts[..right.len].copy_from_slice(&self.starts[keep..self.len]);
        right.packed[..right.len].copy_from_slice(&self.packed[keep..self.len]);
        self.starts[keep..self.len].fill(u64::MAX);
        self.len = keep;
        right
    }
}

impl Internal {
    fn new() -> Box<Internal> {
        Box::new(Internal {
            len: 0,
            keys: [u64::MAX; INTERNAL_CAPACITY],
            children: [const { None }; INTERNAL_CAPACITY],
        })
    }

    fn find(&self, at: u64) -> usize {
        last_at_most::<u64, INTERNAL_CAPACITY, INTERNAL_WIDE, INTERNAL_NARROW>(&self.keys, at)
    }

    fn find_last_first(&self, at: u64) -> usize {
        if self.keys[self.len - 1] <= at { self.len - 1 } else { self.find(at) }
    }

    fn put(&mut self, i: usize, key: u64, child: Node) {
        let n = self.len;
        self.keys.copy_within(i..n, i + 1);
        self.children[i..=n].rotate_right(1);
        self.keys[i] = key;
        self.children[i] = Some(child);
        self.len += 1;
    }

    fn split(&mut self, keep: usize) -> Box<Internal> {
        let mut right = Internal::new();
        right.len = self.len - keep;
        for k in 0..right.len {
            right.keys[k] = self.keys[keep + k];
            right.children[k] = self.children[keep + k].take();
        }
        self.keys[keep..self.len].fill(u64::MAX);
        self.len = keep;
        right
    }
}

/// A new right sibling and its key.
type Split = Option<(u64, Node)>;

fn insert(node: &mut Node, at: u64, len: u64, packed: u64, append: bool) -> Split {
    match node {
        Node::Leaf(leaf) => insert_leaf(leaf, at, len, packed, append),
        Node::Internal(internal) => {
            let i = internal.find_last_first(at.saturating_sub(1));
            let child = internal.children[i].as_mut()?;
            let split = insert(child, at, len, packed, append);
            if !append {
                for k in i + 1..internal.len {
                    internal.keys[k] += len;
                    if let Some(child) = &mut internal.children[k] {
                        shift(child, len);
                    }
                }
            }
            let (key, right) = split?;
            if internal.len < INTERNAL_CAPACITY {
                internal.put(i + 1, key, right);
                return None;
            }
            let keep = if append { INTERNAL_CAPACITY } else { INTERNAL_CAPACITY / 2 };
            let mut sibling = internal.split(keep);
            if i < keep && !append {
                internal.put(i + 1, key, right);
            } else {
                sibling.put(i + 1 - keep, key, right);
            }
            Some((sibling.keys[0], Node::Internal(sibling)))
        }
    }
}

fn insert_leaf(leaf: &mut Leaf, at: u64, len: u64, packed: u64, append: bool) -> Split {
    if append {
        if leaf.len < LEAF_CAPACITY {
            leaf.insert(leaf.len, at, packed, len);
            return None;
        }
        let mut right = Leaf::new();
        right.insert(0, at, packed, len);
        return Some((at, Node::Leaf(right)));
    }
    if leaf.len == LEAF_CAPACITY {
        let mut right = leaf.split(leaf.len / 2);
        if at <= right.starts[0] {
            insert_leaf(leaf, at, len, packed, false);
            let n = right.len;
            right.starts[..n].iter_mut().for_each(|start| *start += len);
        } else {
            insert_leaf(&mut right, at, len, packed, false);
        }
        return Some((right.starts[0], Node::Leaf(right)));
    }
    let behind = leaf.starts[leaf.len - 1] < at;
    let i = if behind { leaf.len } else { leaf.find(at) };
    debug_assert!(behind || leaf.starts[i] == at, "an insertion inside an extent");
    leaf.insert(i, at, packed, len);
    None
}

/// Adds to every offset below a node.
fn shift(node: &mut Node, len: u64) {
    match node {
        Node::Leaf(leaf) => {
            let n = leaf.len;
            leaf.starts[..n].iter_mut().for_each(|start| *start += len);
        }
        Node::Internal(internal) => {
            let n = internal.len;
            internal.keys[..n].iter_mut().for_each(|key| *key += len);
            internal.children[..n].iter_mut().flatten().for_each(|child| shift(child, len));
        }
    }
}

impl Default for BPlusTree {
    fn default() -> BPlusTree {
        BPlusTree::new()
    }
}

impl BPlusTree {
    /// An empty one.
    pub fn new() -> BPlusTree {
        BPlusTree { root: Node::Leaf(Leaf::new()), len: 0 }
    }

    /// Bytes of address space.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts at the border of an extent.
    pub fn insert(&mut self, at: u64, len: u64, address: PhysicalOffset, tag: Tag) {
        let append = at == self.len;
        if let Some((key, right)) = insert(&mut self.root, at, len, pack(address, tag), append) {
            let left = std::mem::replace(&mut self.root, Node::Internal(Internal::new()));
            if let Node::Internal(root) = &mut self.root {
                root.put(0, 0, left);
                root.put(1, key, right);
            }
        }
        self.len += len;
    }

    /// The extent that covers `at`.
    #[inline]
    pub fn lookup(&self, at: u64) -> Option<Extent> {
        if at >= self.len {
            return None;
        }
        let (mut node, mut end) = (&self.root, self.len);
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let i = leaf.find(at);
                    let (offset, packed) = (leaf.starts[i], leaf.packed[i]);
                    let end = if i + 1 < leaf.len { leaf.starts[i + 1] } else { end };
                    let (address, tag) = (address_of(packed), tag_of(packed));
                    return Some(Extent { offset, len: end - offset, address, tag });
                }
                Node::Internal(internal) => {
                    let i = internal.find(at);
                    if i + 1 < internal.len {
                        end = internal.keys[i + 1];
                    }
                    node = internal.children[i].as_ref()?;
                }
            }
        }
    }

    /// Bytes of memory that its nodes take.
    pub fn memory_bytes(&self) -> usize {
        node_bytes(&self.root)
    }
}

fn node_bytes(node: &Node) -> usize {
    match node {
        Node::Leaf(_) => size_of::<Leaf>(),
        Node::Internal(internal) => {
            size_of::<Internal>() + internal.children.iter().flatten().map(node_bytes).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::model::ArrayModel;

    #[test]
    fn answers_as_the_array_does() {
        let (mut tree, mut model) = (BPlusTree::new(), ArrayModel::new());
        let mut state = 1u64;
        for k in 0..3000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let wanted = (state >> 33) % (model.len() + 1);
            let at = if k % 5 == 0 { model.len() } else { model.lookup(wanted).map_or(wanted, |e| e.offset) };
            let address = PhysicalOffset(1_000_000 - 10 * k);
            tree.insert(at, k % 4 + 1, address, Tag(0));
            model.insert(at, k % 4 + 1, address, Tag(0));
        }
        assert_eq!(tree.len(), model.len());
        for at in 0..=model.len() {
            assert_eq!(tree.lookup(at), model.lookup(at));
        }
    }
}

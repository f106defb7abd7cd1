//! Storing a tree in pages, and opening one that is stored.
//!
//! A checkpoint calls [`FlexTree::store`] on a clone while the live tree goes on: nodes that both hold are frozen, so
//! their bytes don't change, and each gets its page in one atomic store. Children are stored before their parents.

use super::limits::MAX_HEIGHT;
use super::link::{Link, View};
use super::node::{Body, Entry, Node};
use super::node_codec::{MAX_PAYLOAD_BYTES, NodeSource, PageSink, encode};
use super::{FlexTree, TreeLimits};
use crate::address::PageId;
use crate::{Error, Result};

/// What the root of a stored tree is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RootRef {
    /// There is no byte.
    Empty,
    /// A node.
    Page(PageId),
    /// One hole of this length.
    Hole(u64),
}

/// A stored tree, as the catalog keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredRoot {
    /// The root.
    pub root: RootRef,
    /// Bytes of address space.
    pub len: u64,
    /// Extents, holes included.
    pub extent_count: u64,
    /// Levels of nodes; 0 when there is nothing or one hole.
    pub height: u32,
    /// Whether a byte has a tag.
    pub has_tags: bool,
}

impl FlexTree {
    /// A tree whose nodes are loaded on demand. Whether the root is what the catalog says shows when it is loaded.
    pub fn from_stored(limits: TreeLimits, stored: StoredRoot) -> FlexTree {
        let mut tree = FlexTree::new(limits);
        match stored.root {
            RootRef::Empty => {}
            RootRef::Hole(len) => tree.root = Entry::hole(len),
            RootRef::Page(page) => {
                let link = Link::page(page);
                tree.root = Entry { link, span: stored.len, count: stored.extent_count, tagged: stored.has_tags };
                tree.level = stored.height.clamp(1, MAX_HEIGHT) - 1;
                tree.stored = true;
            }
        }
        tree
    }

    /// Stores every dirty node and says what the catalog has to keep. Nodes stored before an error stay stored. The tree
    /// was [settled](FlexTree::settle) since the last edit.
    pub fn store(&self, sink: &mut dyn PageSink) -> Result<StoredRoot> {
        self.tail.forget();
        if self.tail.lags() {
            return Err(Error::invalid("a tree has to be settled before it is stored"));
        }
        let mut buffer = Vec::with_capacity(MAX_PAYLOAD_BYTES);
        let root = match self.root.link.view() {
            View::Hole if self.is_empty() => RootRef::Empty,
            View::Hole => RootRef::Hole(self.len()),
            View::Page(page) => RootRef::Page(page),
            View::Node(node) => RootRef::Page(store_node(node, sink, &mut buffer)?),
        };
        let (len, extent_count, has_tags) = (self.len(), self.extent_count(), self.has_tags());
        Ok(StoredRoot { root, len, extent_count, height: self.height(), has_tags })
    }

    /// Calls `f` with the page of every stored node. Loads the internal nodes.
    pub fn visit_pages(&self, src: &dyn NodeSource, f: &mut dyn FnMut(PageId)) -> Result<()> {
        let node = self.root.link.resolve(src, || self.expect_root())?;
        if let Some(node) = node { visit_node(node, src, f) } else { Ok(()) }
    }

    /// How many nodes a checkpoint would have to store. Visits only those.
    pub fn dirty_nodes(&self) -> u64 {
        self.root.link.node().map_or(0, count_dirty)
    }

    /// About how much memory its nodes take, those shared with other versions included. Looks at the internal nodes in
    /// memory only.
    pub fn resident_bytes(&self) -> u64 {
        const NODE_BYTES: u64 = (size_of::<Node>() + size_of::<usize>()) as u64;
        self.root.link.node().map_or(0, count_resident) * NODE_BYTES
    }
}

fn store_node(node: &Node, sink: &mut dyn PageSink, buffer: &mut Vec<u8>) -> Result<PageId> {
    if let Some(page) = node.page() {
        return Ok(page);
    }
    if let Body::Internal(internal) = &node.body {
        for link in internal.links() {
            if let Some(child) = link.node() {
                store_node(child, sink, buffer)?;
            }
        }
    }
    buffer.clear();
    encode(node, buffer)?;
    let page = sink.store(node.level() as u8, buffer)?;
    if page.0 == 0 || page.0 > u64::MAX >> 1 {
        return Err(Error::invalid(format!("page {} can't name a tree node", page.0)));
    }
    node.set_page(page);
    Ok(page)
}

fn visit_node(node: &Node, src: &dyn NodeSource, f: &mut dyn FnMut(PageId)) -> Result<()> {
    if let Some(page) = node.page() {
        f(page);
    }
    let Body::Internal(internal) = &node.body else { return Ok(()) };
    for i in 0..internal.len() {
        match internal.link(i).view() {
            View::Page(page) if internal.level() == 1 => f(page),
            View::Hole => {}
            _ => {
                if let Some(child) = internal.link(i).resolve(src, || internal.expect(i))? {
                    visit_node(child, src, f)?;
                }
            }
        }
    }
    Ok(())
}

fn count_dirty(node: &Node) -> u64 {
    if node.page().is_some() {
        return 0;
    }
    match &node.body {
        Body::Leaf(_) => 1,
        Body::Internal(internal) => 1 + internal.links().iter().filter_map(Link::node).map(count_dirty).sum::<u64>(),
    }
}

fn count_resident(node: &Node) -> u64 {
    let Body::Internal(internal) = &node.body else { return 1 };
    let children = internal.links().iter();
    if internal.level() == 1 {
        return 1 + children.filter(|link| matches!(link.view(), View::Node(_))).count() as u64;
    }
    1 + children.filter_map(Link::node).map(count_resident).sum::<u64>()
}
